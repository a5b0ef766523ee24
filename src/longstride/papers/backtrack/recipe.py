"""A search in one thought against many short attempts, on Countdown: the recipe and its claim.

With your own: `longstride train backtrack model=MODEL`, with tasks and traces from files.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.envs.puzzles import PuzzleSource
from longstride.learner.config import LearnerConfig
from longstride.methods import PPO, GroupRelative, Mean, MixedGroups
from longstride.papers.backtrack.method import SearchTraces, WithinTokens
from longstride.run.imitation import Cloning
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.setups.small import FAST
from longstride.starts.scripted import ScriptedDemonstrations
from longstride.stats import Ordering
from longstride.strategies import Direct

TOKENS = (64, 128, 256)
"""Of a task at the test: of one thought, or of attempts one after the other."""
SPENT = (8, 16, 32, *TOKENS)
"""The same of the claims, which read both ways where they have spent alike: from less than the shortest answer takes on, so
that a search that ends early stands beside as few tokens of attempts."""
WAYS = {
    "thought": tuple(Direct(tokens=n) for n in SPENT),
    "attempts": tuple(WithinTokens(tokens=n) for n in SPENT),
}
"""Of the claims: one thought of rising length, or attempts one after the other."""
LONGEST = 320
"""Words of a trace, and tokens of a turn."""


def recipe(name: str, tasks: PuzzleSource, **changes: Any) -> Recipe:
    """Cloning of search traces, then GRPO, and at the test both ways to spend tokens."""
    return puzzles.recipe(
        name,
        iterations=12,
        episodes_per_iteration=128,
        tasks=tasks,
        cloning=Cloning(
            demonstrations=ScriptedDemonstrations(demonstrators=SearchTraces(tasks=tasks, most=LONGEST), page_weight=0),
            episodes=3000,
            learner=LearnerConfig(lr=2e-3, warmup_steps=20, batch_samples=64).replace(**FAST),
        ),
        budget={"turn_tokens": LONGEST},
        test_budget={"turn_tokens": LONGEST},
        replay=MixedGroups(),
        credit=GroupRelative(),
        loss=PPO(aggregation=Mean(over="token")),
        learner={"batch_samples": 64} | FAST,
        evaluation={
            "every": 12,
            "tasks": 150,
            "strategies": (
                Direct(),
                *(Direct(tokens=n) for n in TOKENS),
                *(WithinTokens(tokens=n) for n in TOKENS),
            ),
        },
    ).replace(engine={"processes": "auto"}, **changes)


RECIPE = recipe("backtrack", SearchTraces().tasks)


def shown(**traces: Any) -> dict[str, Any]:
    """The change of a recipe to traces with these fields of `SearchTraces`."""
    return {"cloning": {"demonstrations": {"demonstrators": traces}}}


def under(way: str) -> dict[str, Any]:
    """The change of a recipe to evaluations at its end, along both ways; the first strategy, by which an arm is tuned, is the
    longest of the way that it is compared along."""
    first = WAYS[way][-1]
    others = (strategy for of in WAYS.values() for strategy in of if strategy != first)
    return {"evaluation": {"tasks": 300, "start": False, "strategies": (first, *others)}}


CLONED = RECIPE.replace(**puzzles.UNTRAINED).replace(**under("thought"))
ONE_STEP = {"numbers": (2, 2, 2)}
"""One operation is all: there is nothing to go back to."""
_one_step = CLONED.replace(tasks=ONE_STEP, **shown(tasks=ONE_STEP))
_parallel = "{0}direct@attempts > {0}search@thought"

CLAIM = Claim(
    name="backtrack",
    paper="arXiv 2504.07052, abstract",
    statement="Within as many tokens of a test, a model of Countdown that was shown solutions alone and attempts a task again and again has more "
    "success than one that was shown searches and makes one of them; where a solution has a single step, it has not.",
    recipe=CLONED,
    arms={
        "direct": CLONED.replace(**shown(style="direct"), **under("attempts")),
        "search": CLONED,
        "mixed": CLONED.replace(**shown(order="drawn")),
        "brief": CLONED.replace(**shown(skips=0.5)),
        "one_step_direct": _one_step.replace(**shown(style="direct"), **under("attempts")),
        "one_step_search": _one_step,
        "rl_direct": RECIPE.replace(**shown(style="direct"), **under("attempts")),
        "rl_search": RECIPE.replace(**under("thought")),
    },
    expected=Ordering(relations=(_parallel.format("") + " by 0.05",)),
    control=Ordering(relations=(_parallel.format("one_step_") + " by 0.05",)),
    reported=Ordering(
        relations=(
            "mixed@thought > search@thought",
            "brief@thought > search@thought",
            "rl_search@thought > search@thought",
            "rl_direct@thought > direct@thought",
            "direct@attempts > rl_direct@attempts",
        )
    ),
    ways={name: tuple(strategy.name for strategy in of) for name, of in WAYS.items()},
    along="spent_tokens",
    seeds=tuple(range(2100, 2112)),
    tuning_seeds=(993, 994),
    grid={"cloning.learner.lr": (2e-4, 6e-4, 2e-3, 6e-3, 2e-2)},
    # a search ends by itself long before its limit, and attempts go on until theirs
    cost="spent_tokens",
    equal_cost=True,
)
