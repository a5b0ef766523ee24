"""Priming with behaviours, then reinforcement learning, on Countdown: the recipe and its claim."""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Countdown
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


TWO = Countdown(numbers=(2, 2, 2), largest=TASKS.largest, most=TASKS.most)
"""One operation makes the target, so there is nothing to go back to."""
_short = RECIPE.replace(tasks=TWO, **primed(tasks=TWO))

CLAIM = Claim(
    name="cognitive_behaviours",
    paper="arXiv 2503.01307, abstract, and the released code",
    statement="After as much reinforcement learning, a model that was primed with behaviours in wrong solutions has more "
    "success than one that was primed with right answers after as many tokens that say nothing, or after none.",
    recipe=RECIPE,
    arms={
        "right": RECIPE,
        "wrong": RECIPE.replace(**primed(answers="wrong")),
        "filler": RECIPE.replace(**primed(thought="filler")),
        "empty": RECIPE.replace(**primed(thought="empty")),
        "single": RECIPE.replace(**primed(behaviours=("subgoals",))),
        "short_wrong": _short.replace(**primed(answers="wrong")),
        "short_filler": _short.replace(**primed(thought="filler")),
    },
    expected=Ordering(relations=("wrong > filler by 0.05", "wrong > empty by 0.05")),
    # where one operation is all, there is nothing to verify and to go back from
    control=Ordering(relations=("short_wrong > short_filler by 0.05",)),
    reported=Ordering(relations=("right > wrong", "right > single", "wrong > single", "right > filler in said_again")),
    seeds=tuple(range(1040, 1048)),
    tuning_seeds=(940, 941),
    grid={"learner.lr": (5e-5, 1.5e-4, 5e-4, 1.5e-3, 5e-3)},
    cost="env_steps",
)
