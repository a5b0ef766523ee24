"""What more compute buys: searches over tasks that are solved step by step, whose steps have known labels
(`exact.worlds.steps`), and what each spends.

What always holds: a task is one draw of one level, an iteration plays as many of each level; a seed draws steps and
scores. A run takes a second, so a claim can have forty seeds.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.core.generators import driven
from longstride.core.numbers import Count
from longstride.exact.answers import Chance
from longstride.exact.experiment import ExactMethod, ExactProblem, State
from longstride.exact.worlds.steps import RIGHT, Model, Solution, StepWorld
from longstride.rewards.simulated import StepScorer
from longstride.strategies.chosen import crossed
from longstride.strategies.ledger import Ledger
from longstride.strategies.search import Partial, Search

ROOT = Partial(Solution())


class StepSolver:
    """Extends the partials of one task, and counts what that takes in `ledger`.

    Args:
        world: what all tasks have in common.
        success: share of solutions in one go that are right, of a model of skill 0.
        model: takes the steps.
        scorer: scores them.
        rng: for both.
    """

    def __init__(
        self, world: StepWorld, success: float, model: Model, scorer: StepScorer, rng: np.random.Generator
    ) -> None:
        self.world, self.model, self.scorer, self.rng = world, model, scorer, rng
        self.chance = model.chance(success, world.length)
        self.ledger = Ledger()

    def __call__(self, partials: Sequence[Partial]) -> list[Partial]:
        """Each after one more step."""
        n = len(partials)
        self.ledger += Ledger(sampled=n * self.model.tokens, scored=n * self.scorer.tokens, calls=n)
        rights = self.rng.random(n) < self.chance
        return [self._after(p.state, bool(right)) for p, right in zip(partials, rights, strict=True)]

    def _after(self, solution: Solution, right: bool) -> Partial:
        after = self.world.step(solution, right, self.scorer, self.rng)
        answer = self.world.answer(after)
        return Partial(after, self.scorer.score(after.scores), answer is not None, answer)


class StepTasks(ExactProblem):
    """Tasks of several levels. Measures: `success` (mean over levels), `success_1` and so on by level, and for a task
    `tokens`, `sampled` ones among them, and `calls`."""

    levels: Annotated[tuple[Chance, ...], Field(min_length=1)] = (0.02, 0.1, 0.3, 0.6, 0.9)
    """Chance of a right solution in one go, of a model of skill 0."""
    world: StepWorld = StepWorld()
    model: Model = Model()
    scorer: StepScorer = StepScorer()

    @property
    def kinds(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    def solver(self, level: int, rng: np.random.Generator) -> StepSolver:
        """Who extends partials of a task of a level, counted from 0."""
        return StepSolver(self.world, self.levels[level], self.model, self.scorer, rng)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        played = np.maximum(solution["played"], 1)
        success = solution["won"] / played
        sampled, scored, calls = solution["spent"] / played.sum()
        return {
            "success": float(success.mean()),
            **{f"success_{k}": float(s) for k, s in enumerate(success, 1)},
            "tokens": float(sampled + scored),
            "sampled": float(sampled),
            "calls": float(calls),
        }


class Solve(ExactMethod[StepTasks]):
    """Solves tasks by a search."""

    search: Search
    """How."""
    tasks: Count = 20
    """Of each level in an iteration."""

    def start(self, problem: StepTasks, rng: np.random.Generator) -> State:
        levels = problem.kinds
        return {"won": np.zeros(levels), "played": np.zeros(levels), "spent": np.zeros(3)}

    def step(self, problem: StepTasks, state: State, rng: np.random.Generator) -> State:
        after = {name: array.copy() for name, array in state.items()}
        for level in range(problem.kinds):
            for _ in range(self.tasks):
                right, ledger = solved(problem, level, self.search, rng)
                after["won"][level] += right
                after["played"][level] += 1
                after["spent"] += (ledger.sampled, ledger.scored, ledger.calls)
        return after


def solved(problem: StepTasks, level: int, search: Search, rng: np.random.Generator) -> tuple[bool, Ledger]:
    """Whether a search solves a task of a level, and what it spends."""
    solver = problem.solver(level, rng)
    return driven(search.run(ROOT, rng), solver)[0].answer == RIGHT, solver.ledger


class ChosenByLevel(ExactMethod[StepTasks]):
    """Tries all strategies on two folds of tasks; what is measured on each fold is the strategy that was best on the
    other."""

    strategies: Annotated[tuple[Search, ...], Field(min_length=1)]
    by_level: bool = True
    """Whether every level has a strategy of its own."""
    tasks: Count = 4
    """Of each level, strategy and fold in an iteration."""

    def start(self, problem: StepTasks, rng: np.random.Generator) -> State:
        shape = (2, len(self.strategies), problem.kinds)
        return {"won": np.zeros(shape), "played": np.zeros(shape), "spent": np.zeros((*shape, 3))}

    def step(self, problem: StepTasks, state: State, rng: np.random.Generator) -> State:
        after = {name: array.copy() for name, array in state.items()}
        for at in np.ndindex(state["won"].shape):
            for _ in range(self.tasks):
                right, ledger = solved(problem, at[2], self.strategies[at[1]], rng)
                after["won"][at] += right
                after["played"][at] += 1
                after["spent"][at] += (ledger.sampled, ledger.scored, ledger.calls)
        return after

    def solution(self, problem: StepTasks, state: State) -> Mapping[str, np.ndarray]:
        """By level, what the chosen strategies won, in how many tasks, and what they spent in all."""
        best_FL = crossed(state["won"], self.by_level)
        folds, levels = np.indices(best_FL.shape)
        found = {name: array[folds, best_FL, levels].sum(0) for name, array in state.items()}
        return found | {"spent": found["spent"].sum(0)}
