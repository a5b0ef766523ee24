"""SCoRe: self-correction by reinforcement learning in two stages. Kumar et al., 2024, arXiv 2409.12917.

Trained on both attempts at once, a model learns one good answer and says it twice. So stage I teaches the second
attempt alone and holds the first to where it was: what there is to be gained is gained by correcting. Stage II credits
both, with a bonus for what the second attempt makes of the first.

| place | choice | paper (table 5: MATH, Gemini 1.5 Flash) | here |
|---|---|---|---|
| plan | `Attempts`, groups of one task | two attempts, batches of 512 | two, 32 tasks of 8 episodes |
| plan | `Stage` | two stages, 3,000 updates | 20 iterations, then 20 |
| roll out | `KeepAll`, sampling | temperature 1; the second attempt reads the first and is asked to correct it | the same |
| score | `TaskReward` | right or wrong, each attempt | the same |
| credit | `AttemptCredit` | an attempt's own reward, less RLOO's baseline; stage II: r_2 + 10 (r_2 - r_1) for the second | the same, bonus 5 |
| update | `Reinforce` with `KL` | stage I 0.1 on the first attempt, a small one on both; stage II 0.01 on both | 0.02 on the first attempt; 0.01 |
| update | rate | Adam, 5e-6 | 3e-4, as `grpo`, in one pass |

Deviations: model and puzzles are those of `grpo`. The bonus says how much a second attempt weighs against the first
(see `AttemptCredit`): with 10 the first is hardly trained in so few iterations, so that it is half of that. Both
attempts are the work of half a million parameters, so what holds the first one holds the second as well: held by 1
stage I learned nothing in 15 iterations, by 0.1 half as much as by 0.02. In some of the paper's runs second attempts
also follow first ones of the untrained model; here they do not.
"""

from longstride.claims.claim import Claim
from longstride.core.config import override
from longstride.curriculum import Fixed
from longstride.envs.puzzles import Attempts
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, Constant, Reinforce
from longstride.methods.attempts import AttemptCredit
from longstride.recipes import grpo
from longstride.run.recipe import Evaluation, Stage
from longstride.stats import Ordering

BONUS = 5.0
"""Weight of what a second attempt makes of the first, in stage II."""
_PER_EPISODE = Constant(length=grpo.TOKENS, per="episode")


def _second_stage(after: int, bonus: float) -> tuple[Stage, ...]:
    """From an iteration on both attempts are credited, and both are held a little."""
    loss = Reinforce(aggregation=_PER_EPISODE, kl=KL(coefficient=0.01))
    return (Stage(after=after, credit=AttemptCredit(bonus=bonus), loss=loss),)


RECIPE = grpo.RECIPE.model_copy(
    update={
        "name": "score",
        "tasks": Attempts(),
        "horizon": Fixed(limit=2),
        "test_horizon": Fixed(limit=2),
        "credit": AttemptCredit(first=0.0),
        "loss": Reinforce(aggregation=_PER_EPISODE, kl=KL(by_turn=(0.02, 0.0))),
        "learner": LearnerConfig(lr=3e-4, warmup_steps=5, batch_samples=128),
        "stages": _second_stage(after=20, bonus=BONUS),
        "evaluation": Evaluation(every=5, baselines=False),
    }
)

_NEITHER = ("stages=[]", "loss.kl={coefficient=0.01}", "credit={type='attempt_credit'}")
"""Both attempts are credited with their own reward from the beginning."""
_BLIND = "context={type='newest'}"
"""The second attempt reads the task and that it is to check again, and not the first attempt."""

CLAIM = Claim(
    name="score",
    paper="arXiv 2409.12917, abstract",
    statement="Second attempts gain more on first ones in two stages with the bonus than without the bonus, and than where "
    "both attempts are credited with their own reward from the beginning.",
    scale=(
        "iterations=24",
        "episodes=128",
        "evaluation.every=12",
        "evaluation.tasks=300",
        override("stages", _second_stage(12, BONUS)),
    ),
    arms={
        "two_stages": (),
        "no_bonus": (override("stages", _second_stage(12, 0.0)),),
        "neither": _NEITHER,
        "blind_two_stages": (_BLIND,),
        "blind_neither": (_BLIND, *_NEITHER),
    },
    measure="gain",
    expected=Ordering(relations=("two_stages > no_bonus", "two_stages > neither", "two_stages > neither in success")),
    # what was not read cannot be corrected
    control=Ordering(relations=("blind_two_stages > blind_neither by 0.03",)),
    seeds=(0, 1, 2, 3, 4),
)
