"""Why horizon reduction: values that n steps carry along shortest paths, and one step does not (arXiv 2506.04168).

A one-step target carries a success one step back with each update of the target network, so a goal d steps away is
invisible for d of them; n-step targets carry it n steps. With as many updates, values of far states say nothing of
which way is shorter. Here a table takes the place of the networks of `sharsa`, so nothing but the recursion is left:
the data, the relabelled goals, the n-step transitions and the target are the recipe's own.

| place | choice | paper | here |
|---|---|---|---|
| plan | walks without a task as data | OGBench | `PointMaze`, navigate, as in `sharsa` |
| value | `NStep`, `HINDSIGHT` goals, SARSA | n = 25 or 50 against 1 | 25 against 1 |
| value | V(s) toward r + gamma^h V(s') | networks, millions of updates | a table of cells, 10 updates |
| measure | what is compared | success | steps of shortest paths on which the value rises |

Deviations: a state is the cell that the point is in, and a goal too, so the table cannot confuse places, as networks do:
what function approximation adds is not shown. With networks of the size of the claim of `sharsa` it hides the effect
(steps 12 cells or more from the goal in order, seeds 0 and 1: 0.52 with one step, 0.60 with 25). The effect is one of
speed: on seeds 0 to 2 one step has 0.07 of the far steps in order after 10 updates, and 0.72 after 60, where 25 steps have
0.68 after 10. Goals from the walk's own future are reached for sure within n steps, so values of near goals are too high,
the more so the larger n is: in the U-maze, where no goal is far, 25 steps have 0.66 in order, and one step all.
"""

from collections.abc import Hashable, Mapping
from functools import cache
from typing import cast

import numpy as np
import torch

from longstride.claims.claim import Claim
from longstride.control import NStep, PointMaze, TransitionStore
from longstride.control.envs.maze import maze
from longstride.control.targets import bellman_target
from longstride.core.numbers import Count
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.papers.sharsa.method import N
from longstride.papers.sharsa.recipe import HINDSIGHT
from longstride.stats import Ordering


class CellValues(ExactProblem):
    """Values of the cells of a maze toward each of its cells. A solution has `values` [goal, cell]."""

    walks: PointMaze
    """Maze and data."""

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """`order`: share of the cells, over all goals, from which the first step of the shortest path leads to a higher
        value; `far_order`: of those more than six cells away from their goal, where there are any."""
        layout, values = maze(self.walks.maze), solution["values"]
        rises = np.take_along_axis(values, layout.toward, 1) > values
        order = float(rises[layout.distance > 0].mean())
        far = layout.distance > 6
        return {"order": order, "far_order": float(rises[far].mean()) if far.any() else order}


class TabularSarsa(ExactMethod[CellValues]):
    """Replaces every value by the mean of its targets in a batch; where the batch has none it stays what it is."""

    steps: Count = N
    """n."""
    batch: Count = 20_000
    """Transitions of an update."""

    def start(self, problem: CellValues, rng: np.random.Generator) -> State:
        cells = len(maze(problem.walks.maze).centre)
        return {"values": np.zeros((cells, cells)), "data": rng.integers(2**31, size=1)}

    def step(self, problem: CellValues, state: State, rng: np.random.Generator) -> State:
        store, layout, values = (
            _store(cast(Hashable, problem.walks), int(state["data"][0])),
            maze(problem.walks.maze),
            state["values"],
        )
        batch = NStep(goals=HINDSIGHT, steps=self.steps)(store, problem.walks.spec, store.draw(self.batch, rng), rng)
        places = batch.state_BS[:, :2], batch.state_BS[:, -2:], batch.next_state_BS[:, :2]
        here_B, goal_B, after_B = (layout.cell_of(xy.numpy()) for xy in places)
        target_B = bellman_target(batch.reward_B, batch.discount_B, torch.from_numpy(values[goal_B, after_B]))
        total, count = np.zeros_like(values), np.zeros_like(values)
        np.add.at(total, (goal_B, here_B), target_B.numpy())
        np.add.at(count, (goal_B, here_B), 1)
        return state | {"values": np.where(count > 0, total / np.maximum(count, 1), values)}


@cache
def _store(walks: PointMaze, seed: int) -> TransitionStore:
    return TransitionStore.of(walks.dataset(seed))


RECIPE = ExactRecipe(
    name="sharsa/exact",
    problem=CellValues(walks=PointMaze(maze="large", walks="navigate", episodes=100)),
    method=TabularSarsa(),
    iterations=10,
    every=2,
)

_short = RECIPE.replace(problem={"walks": {"maze": "umaze"}})
_one = {"steps": 1}

CLAIM = Claim(
    name="sharsa/exact",
    paper="arXiv 2506.04168, section 4",
    statement="After as many updates, values of 25-step targets rise along more steps of the shortest paths to far goals "
    "than one-step values.",
    recipe=RECIPE,
    arms={
        "n_step": RECIPE,
        "five_steps": RECIPE.replace(method={"steps": 5}),
        "one_step": RECIPE.replace(method=_one),
        "short_n_step": _short,
        "short_one_step": _short.replace(method=_one),
    },
    measure="far_order",
    expected=Ordering(relations=("n_step > one_step by 0.3",)),
    # in the U-maze every goal is within reach of ten one-step updates
    control=Ordering(relations=("short_n_step > short_one_step by 0.3",)),
    reported=Ordering(relations=("five_steps > one_step",)),
    seeds=tuple(range(100, 130)),
)
