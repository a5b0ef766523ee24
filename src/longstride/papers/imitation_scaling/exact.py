"""Data scaling in imitation, on grids with random walls: many layouts, or many walks in each."""

from collections import deque
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Annotated, cast

import numpy as np
from pydantic import Field

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Share
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.forecasts import forecast
from longstride.scaling import Law, Power
from longstride.stats import Ordering

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
AROUND = tuple((r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
VIEWS = 2 ** len(AROUND) * 9
_bits = np.arange(2 ** len(AROUND))[:, None] >> np.arange(len(AROUND)) & 1
APART = (_bits[:, None] != _bits).sum(-1)
"""[256, 256] in how many neighbours two views differ."""
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


@lru_cache(4096)
def drawn(problem: Layouts, *seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The layout of a seed: walks come back to it, and so do arms that share a world."""
    return problem.draw(np.random.default_rng(seed))


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
    reach: Share = 0.0
    """Weight of a vote in a view with the goal on the same side that differs in one neighbour; in one that differs in k
    it has the k-th power."""

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
            views, right = drawn(cast(Hashable, problem), int(state["seed"][0]), walk % self.layouts)
            for n in rng.permutation(len(views))[: problem.side]:
                after["votes"][views[n], rng.choice(np.flatnonzero(right[n]))] += 1
        after["walks"][k + 1], after["points"] = last, np.array(k + 1.0)
        after["curve"][k + 1] = self._success(problem, after)
        return after

    def _success(self, problem: Layouts, state: State) -> float:
        votes, total = self.reached(state["votes"]), []
        for k in range(problem.tests):
            views, right = drawn(cast(Hashable, problem), int(state["seed"][1]), k, 1)
            best = votes[views] == votes[views].max(1, keepdims=True)
            total.append(((best * right).sum(1) / best.sum(1)).mean())
        return float(np.mean(total))

    def reached(self, votes: np.ndarray) -> np.ndarray:
        """[V, 4] votes of each view, with those that reach it."""
        weights = self.reach ** APART.astype(float)
        return np.tensordot(weights, votes.reshape(len(APART), 9, 4), 1).reshape(votes.shape)

    def spent(self, problem: Layouts, state: State) -> Mapping[str, float]:
        """Walks that were demonstrated."""
        return {"walks": float(state["walks"][int(state["points"])])}


RECIPE = ExactRecipe(name="imitation_scaling/exact", problem=Layouts(), method=ClonedMoves(), iterations=9)
_arm = RECIPE.replace(every=RECIPE.iterations)
_few = {"layouts": 16}
_walled = {name: {"problem": {"walls": walls}} for name, walls in (("open", 0.0), ("sparse", 0.1))}

CLAIM = Claim(
    name="imitation_scaling/exact",
    paper="arXiv 2410.18647, abstract",
    statement="At 512 walks, walks in 512 layouts clone better than walks in 16, each with its own best reach of a vote, in "
    "most of the worlds that are drawn; the less layouts differ, the less.",
    recipe=_arm,
    arms={
        "layouts_512": _arm,
        "layouts_16": _arm.replace(method=_few),
        **{f"{name}_512": _arm.replace(**of) for name, of in _walled.items()},
        **{f"{name}_16": _arm.replace(**of, method=_few) for name, of in _walled.items()},
    },
    expected=Ordering(relations=("layouts_512 > layouts_16 by 0.05",)),
    # without walls a few layouts show all there is to see
    dose=(*(f"{name}_512 > {name}_16" for name in _walled), "layouts_512 > layouts_16"),
    reported=Ordering(relations=("layouts_512 > layouts_16 in accuracy", "layouts_512 > layouts_16 in within")),
    worlds={"problem.side": Between(low=4, high=12), "problem.walls": Between(low=0.15, high=0.45)},
    grid={"method.reach": (0.0, 0.05, 0.1, 0.2, 0.4, 0.7)},
    cost="walks",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "The effect is there and small: 512 layouts clone better than 16 in every world, by 0.041 [0.033, 0.050] (0.904 and 0.864), and by the "
    "margin of 0.05 in 29 % of them [15, 49]. Where votes reach views that differ in a few neighbours, each arm's by its own best "
    "weight, 16 layouts lose little; the 0.29 of the one world was that a view which was not seen was answered at random. Without walls "
    "there is no difference, with few 0.016."
)
