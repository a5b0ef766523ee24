"""PointMaze: a point with inertia moves through a maze. Data and tests are made from a seed, in seconds.

What always holds: a point is never inside a wall; an episode is a success when the point is within `REACH` of its goal
after a step, at any time, and then it terminates with reward 1; without a success it is truncated by its horizon and
earns 0. Walks that serve as data (`navigate`, `stitch`, `explore`) have no task of their own, so nothing terminates in
them; `reach` is the task itself.

It stands for OGBench's `pointmaze` (arXiv 2410.20092) and D4RL's `maze2d`, which need MuJoCo and a download. The
layouts and test tasks are theirs; the dynamics, and therefore all results, are not: do not print them beside theirs.
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from longstride.control.envs.base import (
    Act,
    ControlEpisode,
    ControlTasks,
    ShortestWay,
    Spec,
    VectorEnv,
    VectorStep,
    play,
)
from longstride.control.envs.maze import TASKS, Maze, MazeName, maze
from longstride.core.numbers import Count, CountOrZero, Share, Weight
from longstride.core.seeds import derive

STEP = 0.1
"""Seconds per step."""
FORCE = 2.0
"""Acceleration of a full action, in cells per second squared."""
DRAG = 2.0
"""Share of the velocity lost per second: full speed is FORCE / DRAG = 1, which is ten steps per cell."""
RADIUS = 0.1
"""Half the side of the (square) point."""
REACH = 0.45
"""Distance to the goal that counts as reaching it (gymnasium-robotics' PointMaze)."""
NEARBY = 4
"""Cells between start and goal of a `stitch` walk (OGBench)."""
TURN = 10
"""Steps for which an `explore` walk keeps its direction (OGBench)."""

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]
"""(generator, B) -> [B] start cells and [B] goal cells."""


class PointMazeEnv(VectorEnv):
    """B points in one maze. An observation is (x, y, velocity x, velocity y), a goal (x, y), an action the force.

    Args:
        layout: the maze.
        draw: how starts and goals are drawn.
        count: B.
        horizon: steps until an episode is truncated.
        ends: whether a success ends the episode; walks continue.
    """

    def __init__(self, layout: Maze, draw: Draw, count: int, horizon: int, ends: bool = True) -> None:
        self.maze, self.draw, self.count, self.horizon, self.ends = layout, draw, count, horizon, ends

    def reset(self, seed: int) -> np.ndarray:
        """Starts and goals are up to 0.2 off the centres of their cells."""
        rng = np.random.default_rng(seed)
        start_B, goal_B = self.draw(rng, self.count)
        self.xy = self.maze.centre[start_B] + rng.uniform(-0.2, 0.2, (self.count, 2))
        self.goal = self.maze.centre[goal_B] + rng.uniform(-0.2, 0.2, (self.count, 2))
        self.velocity = np.zeros((self.count, 2))
        self.taken = 0
        self.terminated = np.zeros(self.count, dtype=bool)
        return self._observation()

    def step(self, action_BA: np.ndarray) -> VectorStep:
        free_B = ~self.terminated if self.taken < self.horizon else np.zeros(self.count, dtype=bool)
        velocity = self.velocity + STEP * (FORCE * np.clip(action_BA, -1, 1) - DRAG * self.velocity)
        self.velocity = np.where(free_B[:, None], velocity, 0.0)
        for axis in (0, 1):
            self._slide(axis)
        self.taken += 1
        there_B = free_B & (self.distance() <= REACH)
        if self.ends:
            self.terminated = self.terminated | there_B
        truncated_B = ~self.terminated & (self.taken >= self.horizon)
        return VectorStep(self._observation(), there_B.astype(float), self.terminated.copy(), truncated_B)

    def distance(self) -> np.ndarray:
        """[B] how far each point is from its goal."""
        return np.sqrt(((self.xy - self.goal) ** 2).sum(1))

    def _slide(self, axis: int) -> None:
        """Moves along one axis; a wall stops the point at its surface."""
        speed_B = self.velocity[:, axis]
        moved = self.xy.copy()
        moved[:, axis] += STEP * speed_B
        edge = moved.copy()
        edge[:, axis] += np.sign(speed_B) * RADIUS
        hit_B = np.zeros(self.count, dtype=bool)
        for side in (-RADIUS, RADIUS):
            corner = edge.copy()
            corner[:, 1 - axis] += side
            column_B, row_B = np.floor(corner).astype(int).T
            hit_B |= self.maze.wall[row_B, column_B]
        cell_B = np.floor(edge[:, axis])
        surface_B = np.where(speed_B > 0, cell_B - RADIUS - 1e-6, cell_B + 1 + RADIUS + 1e-6)
        self.xy[:, axis] = np.where(hit_B, surface_B, moved[:, axis])
        self.velocity[:, axis] = np.where(hit_B, 0.0, speed_B)

    def _observation(self) -> np.ndarray:
        return np.concatenate((self.xy, self.velocity), 1).astype(np.float32)


class Waypoints:
    """Walks along shortest paths, from the centre of one cell to the centre of the next, with noise.

    Args:
        env: the points that walk.
        noise: standard deviation of the Gaussian that is added to each action.
        seed: of the noise and of new goals.
        again: how a point that has arrived gets a new goal; None: it stays at its goal.
    """

    def __init__(self, env: PointMazeEnv, noise: float, seed: int, again: Draw | None = None) -> None:
        self.env, self.noise, self.again = env, noise, again
        self.rng = np.random.default_rng(seed)

    def __call__(self, observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        env, layout = self.env, self.env.maze
        if self.again is not None:
            there_B = env.distance() <= REACH
            goal_cells = self.again(self.rng, env.count)[1]
            env.goal = np.where(there_B[:, None], layout.centre[goal_cells], env.goal)
        cell_B, goal_B = layout.cell_of(env.xy), layout.cell_of(env.goal)
        next_B = layout.toward[goal_B, cell_B]
        aim = np.where((cell_B == goal_B)[:, None], env.goal, layout.centre[next_B]) - env.xy
        direction = aim / np.maximum(np.linalg.norm(aim, axis=1, keepdims=True), 1e-6)
        return np.clip(direction + self.noise * self.rng.normal(size=aim.shape), -1, 1)


class PointMaze(ControlTasks):
    """Walks in a maze as data, and five test tasks in the same maze."""

    maze: MazeName = "medium"
    """Layout: the longest of its shortest paths has 6, 11, 19 and 31 cells."""
    walks: Literal["navigate", "stitch", "explore", "reach"] = "navigate"
    """What the data consist of. From OGBench: walks from goal to goal; short walks of four cells, which must be
    stitched together; random directions. `reach`: one goal per walk, which is the task itself and terminates it."""
    episodes: Count = 200
    """How many walks."""
    length: Count = 1000
    """Steps of a walk, at most."""
    noise: Weight = 0.5
    """Standard deviation of the noise on the actions of walks."""
    wandering: Share | None = None
    """Share of walks that go in random directions (as all do that `explore`) instead of to a goal; None: none."""
    demonstrations: CountOrZero = 0
    """How many walks of the test tasks stand beside the data; if there are any, no other walk has a goal of these."""
    uneven: Share = 0.0
    """Chance that a step of a walk is in any direction, in the half of the maze with the larger x: data that vary more
    in some places than in others."""
    practice: Literal["anywhere", "tests"] = "anywhere"
    """Starts and goals of training episodes: any two cells, or those of the test tasks, all equally often (online
    training in D4RL's mazes has the start and goal of the test)."""

    @property
    def spec(self) -> Spec:
        return Spec(observation=4, action=2, goal=(0, 1))

    def beside(self) -> str:
        """Any two mazes: each has five test tasks."""
        return self.type_name()

    def dataset(self, seed: int) -> list[ControlEpisode]:
        layout = maze(self.maze)
        cells = layout.corner if self.walks == "navigate" else np.arange(len(layout.centre))
        if self.demonstrations:
            cells = np.setdiff1d(cells, [layout.number[goal] for _, goal in TASKS[self.maze]])
        draw = _nearby(layout, cells) if self.walks == "stitch" else _uniform(layout, cells)
        env = self.world(layout, draw, self.episodes, self.length, ends=self.walks == "reach")
        actor_seed = derive(seed, "walks")
        if self.walks == "explore":
            return _without_task(play(env, _explorer(self.episodes, self.noise, actor_seed), seed))
        actor: Act = Waypoints(env, self.noise, actor_seed, None if self.walks in ("stitch", "reach") else draw)
        if self.wandering is not None:
            explorer = _explorer(self.episodes, self.noise, derive(seed, "wandering"))
            actor = _either(explorer, actor, round(self.wandering * self.episodes))
        if self.uneven:
            actor = _astray(env, actor, self.uneven, derive(seed, "uneven"))
        episodes = play(env, actor, seed)
        return episodes if self.walks == "reach" else _without_task(episodes)

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        if not self.demonstrations:
            return []
        env = self.world(maze(self.maze), _tasks(self.maze), self.demonstrations, self.length)
        return play(env, Waypoints(env, self.noise, derive(seed, "walks")), seed)

    def training(self, count: int, horizon: int) -> PointMazeEnv:
        layout = maze(self.maze)
        draw = _tasks(self.maze) if self.practice == "tests" else _uniform(layout, np.arange(len(layout.centre)))
        return self.world(layout, draw, count, horizon)

    def world(self, layout: Maze, draw: Draw, count: int, horizon: int, ends: bool = True) -> PointMazeEnv:
        """Copies; see `PointMazeEnv`."""
        return PointMazeEnv(layout, draw, count, horizon, ends)

    def tests(self, count: int, horizon: int) -> tuple[PointMazeEnv, Sequence[str]]:
        layout, tasks = maze(self.maze), TASKS[self.maze]
        start, goal = (np.repeat([layout.number[pair[side]] for pair in tasks], count) for side in (0, 1))
        env = self.world(layout, lambda rng, n: (start, goal), len(start), horizon)
        return env, [f"{self.maze}-{k}" for k in range(1, len(tasks) + 1) for _ in range(count)]

    def way(self, episode: ControlEpisode) -> ShortestWay | None:
        """From the middle of one cell to that of the next, at rest."""
        assert episode.goal is not None
        layout = maze(self.maze)
        here, goal = layout.cell_of(np.stack((episode.observation[0, :2], episode.goal)))
        cells = [here]
        while cells[-1] != goal:
            cells.append(layout.toward[goal, cells[-1]])
        xy = layout.centre[cells]
        force = np.diff(xy, axis=0).astype(np.float32)
        seen = np.concatenate((xy, np.zeros_like(xy)), 1)[:-1].astype(np.float32)
        return ShortestWay(seen, np.tile(episode.goal, (len(seen), 1)).astype(np.float32), force, -force)


def _uniform(layout: Maze, goals: np.ndarray) -> Draw:
    """Any cell as start, any other cell of `goals` as goal."""

    def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        start_B = rng.integers(len(layout.centre), size=count)
        goal_B = rng.choice(goals, size=count)
        same_B = goal_B == start_B
        goal_B[same_B] = np.where(goals[0] == start_B[same_B], goals[-1], goals[0])
        return start_B, goal_B

    return draw


def _nearby(layout: Maze, cells: np.ndarray) -> Draw:
    """Any cell as start, and as goal one of `cells` that is `NEARBY` steps away, or as nearly so as there are any."""
    off_CC = np.abs(layout.distance[:, cells] - NEARBY)
    from_C = [cells[off == off.min()] for off in off_CC]

    def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        start_B = rng.integers(len(layout.centre), size=count)
        return start_B, np.array([rng.choice(from_C[cell]) for cell in start_B])

    return draw


def _tasks(name: MazeName) -> Draw:
    """The test tasks, in turn, in a shuffled order."""
    number, tasks_K22 = maze(name).number, np.array(TASKS[name])

    def draw(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        start_B2, goal_B2 = tasks_K22[np.resize(rng.permutation(len(tasks_K22)), count)].swapaxes(0, 1)
        return number[tuple(start_B2.T)], number[tuple(goal_B2.T)]

    return draw


def _explorer(count: int, noise: float, seed: int) -> Act:
    """A new random direction every `TURN` steps."""
    rng = np.random.default_rng(seed)
    taken, direction = 0, np.zeros((count, 2))

    def act(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        nonlocal taken, direction
        if taken % TURN == 0:
            angle = rng.uniform(0, 2 * np.pi, count)
            direction = np.stack((np.cos(angle), np.sin(angle)), 1)
        taken += 1
        return np.clip(direction + noise * rng.normal(size=(count, 2)), -1, 1)

    return act


def _either(first: Act, second: Act, count: int) -> Act:
    """What the first does in so many copies, and what the second does in the others."""

    def act(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        seen = (observation_BO, goal_BG, first_B)
        return np.concatenate((first(*seen)[:count], second(*seen)[count:]))

    return act


def _astray(env: PointMazeEnv, act: Act, chance: float, seed: int) -> Act:
    """What is done, but for any direction with this chance where x is above the middle."""
    rng = np.random.default_rng(seed)
    middle = env.maze.wall.shape[1] / 2

    def astray(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        action_BA = act(observation_BO, goal_BG, first_B)
        other_B = (rng.random(env.count) < chance) & (env.xy[:, 0] > middle)
        return np.where(other_B[:, None], rng.uniform(-1, 1, action_BA.shape), action_BA)

    return astray


def _without_task(episodes: list[ControlEpisode]) -> list[ControlEpisode]:
    """The walks as data: without a goal, and so without reward."""
    return [ControlEpisode(e.observation, e.action, np.zeros_like(e.reward), False) for e in episodes]
