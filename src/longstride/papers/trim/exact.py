"""TRIM on tasks that a weak and a strong model solve step by step."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.exact.answers import SEEDS, Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, State, recipe
from longstride.exact.worlds.routing import Routed, needed
from longstride.exact.worlds.steps import Model
from longstride.papers.trim import method
from longstride.stats import Ordering
from longstride.strategies.delegate import StepTaken

GAP = 0.95
"""Share of the strong model's lead that is wanted."""


class RoutedTasks(ExactProblem):
    """Tasks for two models. Measures: `saved`, the share of strong steps that is not needed for `GAP` of the lead of the
    strong model (1 - CPT95; between two routers one is drawn at random), and `reached`, the highest success of a router.
    """

    levels: Annotated[tuple[Chance, ...], Field(min_length=1)] = (0.02, 0.1, 0.3, 0.6, 0.9)
    """Chance of a right solution in one go, of a model of skill 0."""
    length: Count = 6
    """Steps of a solution, which is wrong from its first wrong step on."""
    weak: Model = Model()
    strong: Model = Model(skill=2.0)
    noise: Positive = 1.0
    """Of the scorer, as that of `rewards.simulated.StepScorer`; infinite is at chance."""

    @property
    def chances(self) -> np.ndarray:
        """[2, L] of a right step at each level, of the weak and of the strong model."""
        return np.array([[m.chance(p, self.length) for p in self.levels] for m in (self.weak, self.strong)])

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        played = max(float(solution["played"]), 1.0)
        success_R = solution["won"].mean(1) / played
        share_R = solution["strong"].mean(1) / (played * self.length)
        weak, strong = (self.chances**self.length).mean(1)
        saved = 1 - needed(share_R, success_R, float(weak), float(strong), GAP) if solution["played"] else 0.0
        return {"saved": saved, "reached": float(success_R.max())}


class Router(Component):
    """Family: which model takes which step."""

    @abstractmethod
    def run(self, problem: RoutedTasks, level: int, tasks: Routed) -> None:
        """Takes all steps of tasks of a level, counted from 0."""


class ByScore(Router):
    """Again by the strong model where the score after a step is below a threshold."""

    threshold: Share

    def run(self, problem: RoutedTasks, level: int, tasks: Routed) -> None:
        routed(method.Threshold(below=self.threshold), problem.length, tasks)


class ByTask(Router):
    """Whole tasks by the strong model, where it gains most."""

    levels: Count
    """That it gets."""

    def run(self, problem: RoutedTasks, level: int, tasks: Routed) -> None:
        weak, strong = problem.chances**problem.length
        gets = bool((strong - weak > (strong - weak)[level]).sum() < self.levels)
        for _ in range(problem.length):
            tasks.step(lambda _: gets)


class ByBelief(Router):
    """Again by the strong model where success gains more than the price by it, given all scores so far: the optimum for a
    router that knows the chances of a mean task and how well the scorer sees. What is probably lost it leaves to the weak
    model."""

    price: Weight
    """Of a strong step, in successes."""

    def run(self, problem: RoutedTasks, level: int, tasks: Routed) -> None:
        weak, strong = map(float, problem.chances.mean(1))
        belief = method.Belief(weak=weak, strong=strong, noise=problem.noise, length=problem.length, price=self.price)
        routed(belief, problem.length, tasks)


def routed(
    router: method.StepRouter, length: int, tasks: Routed, rng: np.random.Generator | None = None
) -> list[StepTaken]:
    """Takes all steps of tasks under a router, and returns them, each an array over tasks; a router that explores needs
    `rng`."""
    past: list[StepTaken] = []
    for _ in range(length):
        seen: dict[str, np.ndarray] = {}

        def gives(score_N: np.ndarray, seen: dict[str, np.ndarray] = seen) -> np.ndarray:
            seen["tried"] = score_N
            chance_N = router.chance(past, score_N, 0)
            seen["again"] = chance_N > (0.5 if rng is None else rng.random(len(score_N)))
            return seen["again"]

        kept_N = tasks.step(gives)
        past.append(StepTaken(seen["tried"], 0, seen["again"], kept_N))
    return past


class Routing(ExactMethod[RoutedTasks]):
    """Plays tasks under several routers, whose successes and strong steps make a curve."""

    routers: Annotated[tuple[Router, ...], Field(min_length=1)]
    tasks: Count = 200
    """Of each level under each router, in an iteration."""

    def start(self, problem: RoutedTasks, rng: np.random.Generator) -> State:
        shape = len(self.routers), len(problem.levels)
        return {"won": np.zeros(shape), "strong": np.zeros(shape), "played": np.zeros(())}

    def step(self, problem: RoutedTasks, state: State, rng: np.random.Generator) -> State:
        after = {name: array.copy() for name, array in state.items()} | {"played": state["played"] + self.tasks}
        for at in np.ndindex(after["won"].shape):
            weak, strong = map(float, problem.chances[:, at[1]])
            tasks = Routed((weak, strong), problem.noise, self.tasks, rng)
            self.routers[at[0]].run(problem, at[1], tasks)
            after["won"][at] += tasks.right_N.sum()
            after["strong"][at] += tasks.strong_N.sum()
        return after


THRESHOLDS = 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9
PRICES = 0.2, 0.1, 0.07, 0.05, 0.035, 0.025, 0.015, 0.008, 0.003
RECIPE = recipe(
    "trim/exact",
    RoutedTasks(),
    Routing(routers=tuple(ByScore(threshold=k) for k in THRESHOLDS)),
    iterations=10,
)
_routers = {
    "by_score": RECIPE.method,
    "by_task": Routing(routers=tuple(ByTask(levels=n) for n in range(1, 5))),
}
_blind = {"noise": 1e30}  # what is left of a score is below the last bit of one half

CLAIM = Claim(
    name="trim/exact",
    paper="arXiv 2601.10245",
    statement="Routing single steps by a scorer reaches the strong model's success with fewer of its steps than routing "
    "whole tasks.",
    recipe=RECIPE,
    arms={
        **{name: RECIPE.replace(method=method) for name, method in _routers.items()},
        "by_belief": RECIPE.replace(method=Routing(routers=tuple(ByBelief(price=p) for p in PRICES))),
        **{f"blind_{name}": RECIPE.replace(problem=_blind, method=method) for name, method in _routers.items()},
    },
    measure="saved",
    expected=Ordering(relations=("by_score > by_task by 0.2",)),
    # a scorer at chance
    control=Ordering(relations=("blind_by_score > blind_by_task by 0.02",)),
    reported=Ordering(relations=("by_belief > by_score", "by_belief > by_score in reached")),
    seeds=SEEDS,
)

FINDING = (
    "The effect needs a scorer whose noise is no larger than its label: at twice that it was 0.019, and at four "
    "times -0.125."
)
