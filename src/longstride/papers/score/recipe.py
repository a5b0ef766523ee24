"""SCoRe on puzzles: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, Constant, Reinforce
from longstride.papers.score.method import AttemptCredit, Gain, KLByTurn
from longstride.rewards import Attempts
from longstride.rollout.context import LatestObservation
from longstride.run.recipe import ObjectivePhase
from longstride.setups import puzzles
from longstride.stats import Ordering

BONUS = 5.0
"""Weight of what a second attempt makes of the first, in stage II."""
_PER_EPISODE = Constant(length=puzzles.TOKENS, per="episode")
_HELD = Reinforce(aggregation=_PER_EPISODE, kl=KL(coefficient=0.01))
"""Both attempts are held a little."""


def _second_stage(after: int, bonus: float) -> tuple[ObjectivePhase, ...]:
    """From an iteration on both attempts are credited."""
    return (ObjectivePhase(after=after, credit=AttemptCredit(bonus=bonus), loss=_HELD),)


RECIPE = puzzles.recipe(
    "score",
    tasks=Attempts(),
    budget={"turns": 2},
    test_budget={"turns": 2},
    credit=AttemptCredit(first=0.0),
    loss=Reinforce(aggregation=_PER_EPISODE, kl=KLByTurn(coefficient=0.02, by_turn=(1.0, 0.0))),
    learner=LearnerConfig(lr=3e-4, warmup_steps=5, batch_samples=128),
    objectives=_second_stage(after=20, bonus=BONUS),
    evaluation={"every": 5, "measures": (Gain(),)},
)

ARM = RECIPE.replace(
    iterations=24,
    episodes_per_iteration=128,
    evaluation={"every": 12, "tasks": 300},
    objectives=_second_stage(12, BONUS),
)
_neither = {"objectives": (), "loss": _HELD, "credit": AttemptCredit()}
"""Both attempts are credited with their own reward from the beginning."""
_blind = {"context": LatestObservation()}
"""The second attempt reads the task and that it is to check again, and not the first attempt."""

CLAIM = Claim(
    name="score",
    paper="arXiv 2409.12917, abstract",
    statement="By equal environment steps, second attempts gain more on first ones in two stages with the bonus than where "
    "both attempts are credited with their own reward from the beginning.",
    recipe=ARM,
    arms={
        "two_stages": ARM,
        "no_bonus": ARM.replace(objectives=_second_stage(12, 0.0)),
        "neither": ARM.replace(**_neither),
        "blind_two_stages": ARM.replace(**_blind),
        "blind_neither": ARM.replace(**_blind, **_neither),
    },
    measure="gain",
    expected=Ordering(relations=("two_stages > neither by 0.03",)),
    # what was not read cannot be corrected
    control=Ordering(relations=("blind_two_stages > blind_neither by 0.03",)),
    reported=Ordering(relations=("two_stages > no_bonus", "two_stages > neither in success")),
    seeds=tuple(range(1760, 1780)),
    tuning_seeds=(976, 977),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuned_by="success",
    cost="env_steps",
    scale=(-1.0, 1.0),
)
