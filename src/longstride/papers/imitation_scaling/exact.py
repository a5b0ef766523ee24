"""Data scaling in imitation, on grids with random walls: many layouts, or many walks in each."""

from collections import deque
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.exact.answers import SEEDS
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.forecasts import forecast
from longstride.scaling import Law, Power
from longstride.stats import Ordering

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
AROUND = tuple((r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
VIEWS = 2 ** len(AROUND) * 9
Walls = Annotated[float, Field(ge=0, le=0.9)]
"""Chance that a cell is a wall: with more of them hardly any goal can be reached."""


class Layouts(ExactProblem):
    """Grids with random walls and goals. Measures: `success`, the chance of a right action in a cell of a new layout;
    `accuracy`, `within`, `refused` of the prediction of 1 - success at the last point (see `exact.forecasts`)."""

    side: Annotated[int, Field(ge=3)] = 6
    """Cells of a row."""
    walls: Walls = 0.3
    """Chance that a cell is one."""
    tests: Count = 40
    """New layouts."""
    law: Law = Power()
    """Of 1 - success by walks."""

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """What is seen in each open cell from which the goal can be reached [N], and which of the moves are on a
        shortest way [N, 4]."""
        while True:
            open_ = np.pad(rng.random((self.side, self.side)) >= self.walls, 1)
            goal = tuple(int(v) for v in rng.integers(1, self.side + 1, 2))
            open_[goal] = True
            far = distances(open_, goal)
            cells = [c for c in far if c != goal]
            if cells:
                return (
                    np.array([view(open_, cell, goal) for cell in cells]),
                    np.array([[far.get((r + i, c + j), np.inf) < far[r, c] for i, j in MOVES] for r, c in cells]),
                )

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        done = int(solution["points"])
        walks, loss = solution["walks"][: done + 1], 1 - solution["curve"][: done + 1]
        found = forecast(self.law, walks[1:-1], loss[1:-1], float(walks[-1] or 1), float(loss[-1]))
        return {"success": 1 - float(loss[-1])} | found


def distances(open_: np.ndarray, goal: tuple[int, ...]) -> dict[tuple[int, ...], int]:
    """Steps to the goal of every open cell from which it can be reached."""
    far, waiting = {goal: 0}, deque([goal])
    while waiting:
        r, c = waiting.popleft()
        for i, j in MOVES:
            if open_[r + i, c + j] and (r + i, c + j) not in far:
                far[r + i, c + j] = far[r, c] + 1
                waiting.append((r + i, c + j))
    return far


def view(open_: np.ndarray, cell: tuple[int, ...], goal: tuple[int, ...]) -> int:
    """The number of what is seen: which neighbours are open, and on which side the goal is."""
    r, c = cell
    walls = sum(bool(open_[r + i, c + j]) << k for k, (i, j) in enumerate(AROUND))
    return walls * 9 + int(3 * (np.sign(goal[0] - r) + 1) + np.sign(goal[1] - c) + 1)


class ClonedMoves(ExactMethod[Layouts]):
    """Votes of demonstrated moves by view; a walk is as many of them as a row has cells, and an iteration doubles the
    number of walks."""

    layouts: Count = 512
    """Largest number of layouts: until there are as many, every walk is in a layout of its own, later ones come back to
    them in turn."""

    def start(self, problem: Layouts, rng: np.random.Generator) -> State:
        state = {"votes": np.zeros((VIEWS, 4)), "seed": rng.integers(2**31, size=2).astype(float)}
        state |= {"walks": np.zeros(32), "curve": np.zeros(32), "points": np.zeros(())}
        state["curve"][0] = self._success(problem, state)
        return state

    def step(self, problem: Layouts, state: State, rng: np.random.Generator) -> State:
        k = int(state["points"])
        if k + 1 == len(state["walks"]):
            raise ConfigError(f"walks are doubled at most {k} times; ask for no more iterations")
        first, last = int(state["walks"][k]), 2 ** (k + 1)
        after = {name: value.copy() for name, value in state.items()}
        for walk in range(first, last):
            seed = [int(state["seed"][0]), walk % self.layouts]
            views, right = problem.draw(np.random.default_rng(seed))
            for n in rng.permutation(len(views))[: problem.side]:
                after["votes"][views[n], rng.choice(np.flatnonzero(right[n]))] += 1
        after["walks"][k + 1], after["points"] = last, np.array(k + 1.0)
        after["curve"][k + 1] = self._success(problem, after)
        return after

    def _success(self, problem: Layouts, state: State) -> float:
        votes, total = state["votes"], []
        for k in range(problem.tests):
            views, right = problem.draw(np.random.default_rng([int(state["seed"][1]), k, 1]))
            best = votes[views] == votes[views].max(1, keepdims=True)
            total.append(((best * right).sum(1) / best.sum(1)).mean())
        return float(np.mean(total))


RECIPE = ExactRecipe(name="imitation_scaling/exact", problem=Layouts(), method=ClonedMoves(), iterations=9)
_few = {"layouts": 16}
_open = {"walls": 0.0}

CLAIM = Claim(
    name="imitation_scaling/exact",
    paper="arXiv 2410.18647, abstract",
    statement="At 512 walks, walks in 512 layouts clone better than walks in 16; where layouts are alike, they do not.",
    recipe=RECIPE,
    arms={
        "layouts_512": RECIPE,
        "layouts_16": RECIPE.replace(method=_few),
        "open_512": RECIPE.replace(problem=_open),
        "open_16": RECIPE.replace(problem=_open, method=_few),
    },
    expected=Ordering(relations=("layouts_512 > layouts_16 by 0.05",)),
    # without walls a few layouts show all there is to see
    control=Ordering(relations=("open_512 > open_16 by 0.05",)),
    reported=Ordering(relations=("layouts_512 > layouts_16 in accuracy", "layouts_512 > layouts_16 in within")),
    seeds=SEEDS[:20],
)
