"""Priming with behaviours, then reinforcement learning, on Countdown: the recipe and its claim."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative
from longstride.papers.cognitive_behaviours.method import WordsSaid
from longstride.run.imitation import Cloning
from longstride.setups import puzzles
from longstride.starts.puzzle_behaviours import TASKS, Behaviour, PuzzleBehaviours
from longstride.starts.scripted import ScriptedDemonstrations
from longstride.stats import Ordering

KNOWN: tuple[Behaviour, ...] = ("verification", "backtracking", "subgoals")
"""What the start has seen; it cannot chain backward yet, and 1,000 traces do not teach it arithmetic in that order."""

RECIPE = puzzles.recipe(
    "cognitive_behaviours",
    credit=GroupRelative(),
    loss=PPO(),
    iterations=16,
    episodes_per_iteration=128,
    tasks=TASKS,
    cloning=Cloning(
        demonstrations=ScriptedDemonstrations(demonstrators=PuzzleBehaviours(behaviours=KNOWN), page_weight=0),
        episodes=1000,
        learner=LearnerConfig(lr=1e-3, warmup_steps=10, epochs=2, batch_samples=64),
    ),
    learner={"lr": 5e-4, "batch_samples": 64},
    evaluation={"every": 16, "tasks": 300, "measures": (WordsSaid(words=("again",)), WordsSaid(words=("yes", "no")))},
)


def primed(**traces: Any) -> dict[str, Any]:
    """The change of a recipe to traces with these fields of `PuzzleBehaviours`."""
    return {"cloning": {"demonstrations": {"demonstrators": traces}}}


_wrong = {n: RECIPE.replace(**primed(answers="wrong", attempts=n)) for n in (1, 2, 4)}
"""By the most attempts of a trace: with one there is nothing to go back from."""

CLAIM = Claim(
    name="cognitive_behaviours",
    paper="arXiv 2503.01307, abstract, and the released code",
    statement="After as much reinforcement learning, a model that was primed with behaviours in wrong solutions has more "
    "success than one that was primed with right answers after as many tokens that say nothing, or after none, and by the "
    "more the more often the traces go back and try again.",
    recipe=RECIPE,
    arms={
        "right": RECIPE,
        **{f"wrong_{n}": arm for n, arm in _wrong.items()},
        # six attempts, for it stops at its success: as many words as the wrong ones of four
        "filler": RECIPE.replace(**primed(thought="filler", attempts=6)),
        "empty": RECIPE.replace(**primed(thought="empty")),
    },
    expected=Ordering(relations=("wrong_4 > wrong_1 by 0.05", "wrong_4 > filler by 0.05", "wrong_4 > empty by 0.05")),
    dose=tuple(f"wrong_{n} > empty" for n in _wrong),
    reported=Ordering(relations=("right > wrong_4", "right > filler in said_again")),
    seeds=tuple(range(1040, 1052)),
    tuning_seeds=(940, 941),
    grid={"learner.lr": (5e-5, 1.5e-4, 5e-4, 1.5e-3, 5e-3)},
    cost="env_steps",
)
