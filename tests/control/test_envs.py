"""PointMaze: walls hold, ends are exact, and everything follows from the seed."""

import numpy as np
import pytest

from longstride.control.envs import PointMaze, play
from longstride.control.envs.maze import LAYOUTS, TASKS, Maze, MazeName, maze
from longstride.control.envs.pointmaze import DRAG, FORCE, RADIUS, REACH, STEP, PointMazeEnv, Waypoints

NAMES: list[MazeName] = ["umaze", "medium", "large", "giant"]


def placed(layout: Maze, start: int, goal: int, horizon: int = 50) -> PointMazeEnv:
    """One point that starts in the exact centre of a cell, with its goal in the exact centre of another."""
    env = PointMazeEnv(layout, lambda rng, n: (np.array([start]), np.array([goal])), 1, horizon)
    env.reset(0)
    env.xy, env.goal = layout.centre[[start]].copy(), layout.centre[[goal]].copy()
    return env


@pytest.mark.parametrize("name", NAMES)
def test_paths_are_shortest_and_lead_to_the_goal(name: MazeName) -> None:
    layout = maze(name)
    cells = np.arange(len(layout.centre))
    assert set("".join(LAYOUTS[name].split())) == {"#", "."}
    assert (layout.distance == layout.distance.T).all() and layout.distance.min() == 0
    for goal in cells:
        nexts = layout.toward[goal]
        away = cells != goal
        assert (layout.distance[goal, nexts[away]] == layout.distance[goal, away] - 1).all()
        assert (np.abs(layout.centre[nexts[away]] - layout.centre[away]).sum(1) == 1).all()
    for start, goal in TASKS[name]:
        assert not layout.wall[start] and not layout.wall[goal]
    assert (layout.cell_of(layout.centre) == cells).all()


def test_a_step_by_hand() -> None:
    layout = maze("umaze")
    env = placed(layout, 0, 6)
    moved = env.step(np.array([[1.0, 0.0]]))
    np.testing.assert_allclose(moved.observation, [[1.5 + STEP**2 * FORCE, 1.5, STEP * FORCE, 0.0]], rtol=1e-6)
    env.step(np.array([[5.0, 0.0]]))  # clamped to 1
    np.testing.assert_allclose(env.velocity, [[STEP * FORCE * (2 - STEP * DRAG), 0.0]])


@pytest.mark.parametrize("name", NAMES)
def test_no_corner_of_a_point_is_ever_in_a_wall(name: MazeName) -> None:
    env = PointMaze(maze=name).training(64, 200)
    env.reset(3)
    rng = np.random.default_rng(0)
    action = rng.uniform(-1, 1, (64, 2))
    touched = False
    for t in range(200):
        if t % 15 == 0:
            action = rng.choice([-1.0, -0.3, 1.0], (64, 2))
        before = env.velocity.copy()
        env.step(action)
        touched |= bool(((env.velocity == 0) & (before != 0) & ~env.terminated[:, None]).any())
        for dx in (-RADIUS, RADIUS):
            for dy in (-RADIUS, RADIUS):
                x, y = (env.xy + (dx, dy)).T
                assert not env.maze.wall[np.floor(y).astype(int), np.floor(x).astype(int)].any()
    assert touched


def test_success_terminates_earns_once_and_the_point_stands_still() -> None:
    layout = maze("umaze")
    env = placed(layout, 0, 1)
    episode_reward, ended_at = 0.0, None
    for t in range(1, 51):
        moved = env.step(np.array([[1.0, 0.0]]))
        episode_reward += moved.reward[0]
        assert not (moved.terminated[0] and moved.truncated[0])
        if moved.terminated[0] and ended_at is None:
            ended_at, there = t, env.xy.copy()
            assert env.distance()[0] <= REACH
    assert ended_at is not None and ended_at < 20 and episode_reward == 1.0
    np.testing.assert_array_equal(env.xy, there)


def test_a_horizon_truncates_without_reward() -> None:
    env = placed(maze("umaze"), 0, 6, horizon=7)
    for t in range(1, 8):
        moved = env.step(np.zeros((1, 2)))
        assert (bool(moved.truncated[0]), bool(moved.terminated[0]), moved.reward[0]) == (t == 7, False, 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_walking_shortest_paths_solves_every_test_task(name: MazeName) -> None:
    env, names = PointMaze(maze=name).tests(2, 400)
    episodes = play(env, Waypoints(env, 0.0, 0), 0)
    assert len(names) == len(episodes) == 10 and len(set(names)) == 5
    assert all(e.terminated for e in episodes)
    longest = max(maze(name).distance[maze(name).number[a], maze(name).number[b]] for a, b in TASKS[name])
    assert max(e.length for e in episodes) < 12 * longest  # ten steps per cell, and time to accelerate
    assert not any(
        e.terminated for e in play(PointMaze(maze=name).tests(1, 20)[0], lambda o, g, f: np.zeros((5, 2)), 0)
    )


def test_walks_that_wander_rarely_reach_their_goal() -> None:
    tasks = PointMaze(maze="medium", walks="reach", episodes=20, length=150, noise=0.1, wandering=0.5)
    arrived = [e.terminated for e in tasks.dataset(0)]
    assert sum(arrived[:10]) < 5 < sum(arrived[10:])


@pytest.mark.parametrize("walks", ["navigate", "stitch", "explore", "reach"])
def test_data_follow_from_the_seed_and_are_complete_walks(walks: str) -> None:
    tasks = PointMaze.model_validate({"maze": "umaze", "walks": walks, "episodes": 20, "length": 150})
    episodes, again, other = tasks.dataset(1), tasks.dataset(1), tasks.dataset(2)
    assert all((a.observation == b.observation).all() for a, b in zip(episodes, again, strict=True))
    assert any(len(a.observation) != len(b.observation) or (a.observation != b.observation).any()
               for a, b in zip(episodes, other, strict=True))  # fmt: skip
    for e in episodes:
        assert e.observation.shape == (e.length + 1, 4) and e.action.shape == (e.length, 2)
        assert np.abs(e.action).max() <= 1
        # the action leads to the next observation wherever no wall is in the way
        pushed = e.observation[:-1, 2:] + STEP * (FORCE * e.action - DRAG * e.observation[:-1, 2:])
        assert np.isclose(pushed, e.observation[1:, 2:], atol=1e-5).mean() > 0.5
        if walks == "reach":
            assert e.goal is not None and e.reward.sum() == e.reward[-1] == float(e.terminated)
            assert (np.linalg.norm(e.observation[-1, :2] - e.goal) <= REACH) == e.terminated
        else:
            assert not e.terminated and e.length == 150 and not e.reward.any() and e.goal is None
    if walks == "navigate":
        visited = {int(c) for e in episodes for c in maze("umaze").cell_of(e.observation[:, :2])}
        assert visited == set(range(7))


def test_stitch_walks_end_four_cells_away() -> None:
    layout = maze("large")
    episodes = PointMaze(maze="large", walks="stitch", episodes=50, length=80, noise=0.0).dataset(0)
    ends = np.stack([e.observation[[0, -1], :2] for e in episodes])
    assert (layout.distance[layout.cell_of(ends[:, 1]), layout.cell_of(ends[:, 0])] == 4).mean() > 0.9


def test_no_stitch_walk_has_a_goal_of_the_demonstrations() -> None:
    layout = maze("umaze")
    episodes = PointMaze(maze="umaze", walks="stitch", episodes=40, length=80, noise=0.0, demonstrations=5).dataset(0)
    tested = {layout.number[goal] for _, goal in TASKS["umaze"]}
    ends = layout.cell_of(np.stack([e.observation[-1, :2] for e in episodes]))
    assert np.isin(ends, list(tested)).mean() < 0.1  # a walk may be cut on its way


def test_practice_is_any_two_cells_or_the_test_tasks_in_turn() -> None:
    cells = {pair: k for k, pair in enumerate(TASKS["umaze"])}

    def played(tasks: PointMaze, seed: int) -> list[int | None]:
        env = tasks.training(10, 5)
        env.reset(seed)
        rows_columns = [np.floor(xy[:, ::-1]).astype(int) for xy in (env.xy, env.goal)]
        pairs = zip(*(map(tuple, rc.tolist()) for rc in rows_columns), strict=True)
        return [cells.get(pair) for pair in pairs]

    tests = PointMaze(maze="umaze", practice="tests")
    assert all(sorted(map(str, played(tests, seed))) == sorted("0011223344") for seed in range(3))
    assert played(tests, 0) == played(tests, 0) != played(tests, 1)
    assert None in played(PointMaze(maze="umaze"), 0)
