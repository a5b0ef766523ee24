"""Data by places and walks: layouts, files of the test's own, and a law that is fitted to a sweep of them."""

from pathlib import Path

import numpy as np
import pytest

from longstride import papers
from longstride.control import ControlRecipe, GymnasiumTasks, Level, recorded
from longstride.control.envs.base import ControlEpisode, play
from longstride.core.errors import ConfigError, RunError
from longstride.models.mlp import Trunk
from longstride.papers.imitation_scaling.exact import Layouts
from longstride.papers.imitation_scaling.method import GridLayouts, RecordedPlaces, WalledGrid
from longstride.report.fits import fit_runs
from longstride.run.experiment import Experiment
from longstride.scaling import Power


def small(**tasks: int) -> ControlRecipe:
    recipe = papers.load("imitation_scaling")
    assert isinstance(recipe, ControlRecipe)
    (level,) = recipe.agent.levels
    policy = level.policy.replace(trunk=Trunk(width=16, depth=1))
    return recipe.replace(
        tasks={"side": 4, "walls": 0.1, **tasks},
        agent={"levels": (Level(policy=policy, extraction=level.extraction),), "batch": 32, "policy_lr": 1e-2},
        phases=(recipe.phases[0].replace(iterations=1, updates=60),),
        horizon={"limit": 12},
        test_horizon={"limit": 12},
        evaluation={"episodes": 30},
    )


def test_walks_are_shortest_and_those_of_fewer_layouts_are_among_those_of_more() -> None:
    rng = np.random.default_rng(0)
    layout = WalledGrid(6, 0.3, rng)
    walk = layout.walk(rng)
    start = next(cell for cell in layout.starts if np.array_equal(layout.seen(cell), walk.observation[0]))
    assert walk.length in {layout.far[c] for c in layout.starts if np.array_equal(layout.seen(c), layout.seen(start))}
    assert walk.terminated and walk.reward.sum() == 1 and (walk.action.sum(1) == 1).all()
    few, many = GridLayouts(environments=2, demonstrations=3), GridLayouts(environments=5, demonstrations=3)
    a, b = few.dataset(7), many.dataset(7)
    assert len(a) == 6 and len(b) == 15
    assert all(np.array_equal(x.observation, y.observation) for x, y in zip(a, b, strict=False))


def test_walls_nearly_everywhere_are_refused_where_no_goal_could_be_reached() -> None:
    for tasks in (GridLayouts(), Layouts()):
        with pytest.raises(ConfigError, match="walls"):
            tasks.replace(walls=1.0)


def test_who_follows_the_distances_gets_to_every_goal_and_a_wall_is_not_crossed() -> None:
    tasks = GridLayouts(side=5)
    env, names = tasks.tests(8, 25)
    assert names == ["new"] * 8 and tasks.spec.observation == 10

    def act(*_: np.ndarray) -> np.ndarray:
        best = [
            min(range(4), key=lambda k: of.far.get(of.moved(cell, k), 99))
            for of, cell in zip(env._layouts, env._cells, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
        ]
        return np.eye(4)[best]

    episodes = play(env, act, 3)
    assert all(e.terminated and e.reward.sum() == 1 for e in episodes)
    left = play(tasks.tests(8, 6)[0], lambda *_: np.eye(4)[[2] * 8], 3)
    assert any(not e.terminated for e in left) and all(e.length <= 6 for e in left)


def test_a_sweep_of_places_is_fitted_by_the_setting(tmp_path: Path) -> None:
    for n in (2, 6, 12, 32):
        small(environments=n, demonstrations=2).train(tmp_path / f"{n}")
    fitted = fit_runs([tmp_path], Power(), x="tasks.environments", y="error")
    (group,) = fitted["groups"]
    by_places = dict(group["points"])
    assert sorted(by_places) == [2, 6, 12, 32] and len(group["points"]) == 4  # the last evaluation of each
    assert by_places[2] > by_places[32]  # more places clone better


def test_files_of_ones_own_are_drawn_by_places_and_walks(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    rng = np.random.default_rng(0)
    for place in range(3):
        episodes = [
            ControlEpisode(rng.normal(size=(5, 4)), np.array([[k % 2]] * 4), np.ones(4), False) for k in range(4)
        ]
        recorded.write(str(tmp_path / f"place{place}.npz"), episodes)
    tasks = RecordedPlaces(id="CartPole-v1", data=f"{tmp_path}/*.npz", environments=2, demonstrations=3)
    assert isinstance(tasks, GymnasiumTasks)
    found, all_of_it = tasks.dataset(1), tasks.replace(environments=None, demonstrations=None).dataset(1)
    assert len(found) == 6 and len(all_of_it) == 12
    kept = {e.observation.tobytes() for e in all_of_it}
    assert len({e.observation.tobytes() for e in found}) == 6 and all(e.observation.tobytes() in kept for e in found)
    one = tasks.replace(environments=1).dataset(1)
    assert [e.observation.tobytes() for e in one] == [e.observation.tobytes() for e in found[:3]]
    with pytest.raises(RunError, match=r"3 files fit .*, and tasks.environments=4 asks for more"):
        tasks.replace(environments=4).dataset(1)
    with pytest.raises(RunError, match=r"has 4 episodes, and tasks.demonstrations=5 asks for more"):
        tasks.replace(demonstrations=5).dataset(1)
    with pytest.raises(RunError, match="no file fits tasks.data"):
        tasks.replace(data=f"{tmp_path}/*.hdf5").dataset(1)
    recipe = papers.load("imitation_scaling/recorded")
    assert isinstance(recipe, Experiment)
    mine = recipe.replace(
        tasks={"id": "CartPole-v1", "data": tasks.data, "environments": 2, "demonstrations": 3},
        agent={"levels": small().agent.levels, "batch": 16},
        phases=({"iterations": 1, "updates": 5},),
        test_horizon={"limit": 5},
        evaluation={"episodes": 2},
    )
    mine.train(tmp_path / "run")
    assert (tmp_path / "run" / "checkpoints").is_dir()
