"""What the exact model says of a regime before it is run: `HabitCloning` on `Trails`, from the habits that the start shows there."""

from collections.abc import Mapping
from statistics import fmean

import numpy as np

from longstride.core.seeds import derive
from longstride.curriculum import Schedule
from longstride.envs.dial import Dial
from longstride.exact.experiment import ExactRecipe
from longstride.methods.cloning import FilteredBC
from longstride.rewards import TaskReward
from longstride.run.recipe import Recipe
from longstride.studies.regimes.recipe import HORIZONS, TEST
from longstride.studies.regimes.recipe import RECIPE as MIDDLE
from longstride.studies.tti_map.exact import HabitCloning
from longstride.studies.tti_map.trails import Trails

FAVOUR = 2.0
"""How much more the idle action weighs under 1/|a| where it is `wait`, half as long as a click."""
EVERYWHERE = 100.0
"""`reach` in pages: what is learned of quitting holds on every page."""

RECIPE = ExactRecipe(
    name="regimes/exact",
    problem=Trails(deepest=15, horizon=TEST),
    method=HabitCloning(schedule=HORIZONS["growing"], episodes=MIDDLE.episodes_per_iteration, reach=EVERYWHERE),
    iterations=MIDDLE.iterations,
    every=MIDDLE.iterations,
)


def exact_of(regime: Recipe, habits: Mapping[str, float], schedule: Schedule) -> ExactRecipe:
    """A regime as the exact model has it.

    Args:
        regime: on trails, with a judge and cloning.
        habits: of the start there: `begins`, `goes_on`, `quits`.
        schedule: of the horizon in training.
    """
    tasks, credit, reward = regime.tasks, regime.credit, regime.reward
    assert isinstance(tasks, Dial) and isinstance(credit, FilteredBC) and isinstance(reward, TaskReward)
    nearest, farthest = tasks.distances
    favoured = credit.weight == "by_length" and not tasks.help
    return RECIPE.replace(
        iterations=regime.iterations,
        problem={
            "nearest": nearest - 1,  # of a distance d one action is the answer
            "deepest": farthest - 1,
            "horizon": regime.test_budget.most("turns", 1),
            "false_positive": reward.false_positive,
        },
        method={
            "schedule": schedule,
            "episodes": regime.episodes_per_iteration,
            "favour": FAVOUR if favoured else 1.0,
            **{name: habits[name] for name in ("begins", "goes_on", "quits")},
        },
    )


def at_the_end(recipe: ExactRecipe, seed: int) -> float:
    """Success within the turns of the test after the last iteration; what is cloned is sampled by the seed."""
    problem, method = recipe.problem, recipe.method
    state = method.start(problem, np.random.default_rng(derive(seed, "start")))
    for i in range(1, recipe.iterations + 1):
        state = method.step(problem, state, np.random.default_rng(derive(seed, "step", i)))
    return problem.measures(method.solution(problem, state))["supported"]


def predicted(regime: Recipe, habits: Mapping[str, float], seeds: int = 20) -> dict[str, float]:
    """Success at the end under each of `HORIZONS`, the mean of so many seeds."""
    return {
        name: fmean(at_the_end(exact_of(regime, habits, schedule), seed) for seed in range(seeds))
        for name, schedule in HORIZONS.items()
    }
