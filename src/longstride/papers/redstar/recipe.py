"""Fine-tuning on n long traces, and the claim beside as many short ones.

With your own: `longstride train redstar model=MODEL`, with traces from a file (docs/guides/traces.md).
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import Countdown
from longstride.learner.config import LearnerConfig
from longstride.run.imitation import Cloning
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.starts.puzzle_behaviours import TASKS, PuzzleBehaviours
from longstride.starts.scripted import ScriptedDemonstrations
from longstride.stats import Ordering
from longstride.strategies import Direct

STEPS, BATCH = 64, 32
"""Of fine-tuning, whatever the number of traces."""
LONG = PuzzleBehaviours(behaviours=("verification", "backtracking", "subgoals"))
SHORT = LONG.replace(behaviours=("subgoals",))
"""A single attempt, which is right."""
EASY = Countdown(numbers=(2, 2, 2), largest=TASKS.largest, most=TASKS.most)
"""One operation makes the target."""

RECIPE = puzzles.tested(
    "redstar",
    (Direct(),),
    tasks=TASKS,
    cloning=Cloning(
        demonstrations=ScriptedDemonstrations(demonstrators=LONG, page_weight=0),
        episodes=1024,
        learner=LearnerConfig(lr=1e-3, warmup_steps=10, batch_samples=BATCH, epochs=STEPS * BATCH // 1024),
    ),
)


def traces(count: int, demonstrators: PuzzleBehaviours = LONG, tasks: Countdown = TASKS) -> Recipe:
    """Fine-tuned on so many traces, each seen so often that the steps are as many."""
    changes: dict[str, Any] = {
        "demonstrations": {"demonstrators": demonstrators.replace(tasks=tasks)},
        "episodes": count,
        "learner": {"epochs": STEPS * BATCH // count},
    }
    return RECIPE.replace(tasks=tasks, cloning=changes)


CLAIM = Claim(
    name="redstar",
    paper="arXiv 2501.11284, abstract",
    statement="On hard tasks a model that was fine-tuned on long traces, which check and try again, has more success than one that "
    "was fine-tuned on as many short ones, and the more so the more traces there are; on easy tasks it has not.",
    recipe=RECIPE,
    arms={
        **{f"long_{n}": traces(n) for n in (64, 256, 1024)},
        **{f"short_{n}": traces(n, SHORT) for n in (64, 256, 1024)},
        "easy_long": traces(1024, tasks=EASY),
        "easy_short": traces(1024, SHORT, EASY),
    },
    expected=Ordering(relations=("long_1024 > short_1024 by 0.05", "long_1024 > long_64 by 0.05")),
    # one attempt is enough where one operation is all
    control=Ordering(relations=("easy_long > easy_short by 0.05",)),
    dose=tuple(f"long_{n} > short_{n}" for n in (64, 256, 1024)),
    seeds=tuple(range(1070, 1078)),
    tuning_seeds=(970, 971),
    grid={"cloning.learner.lr": (2e-4, 5e-4, 1e-3, 2e-3, 4e-3)},
    cost="iterations",
)
