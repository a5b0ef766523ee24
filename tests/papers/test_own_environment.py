"""Every recipe for an environment of Gymnasium learns in one of the test's own, and from a file, by settings alone.

A new recipe of this kind is checked without a line here.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import rows_of

from longstride import papers
from longstride.control import ControlRecipe, GymnasiumTasks
from longstride.core.config import resolve

gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")

STEPS, EPISODE = 60, 15
"""Of a file, and of each of its episodes."""


class Drift(gymnasium.Env):
    """A place in the plane that is pushed; what is pushed along its first axis is earned."""

    observation_space = gymnasium.spaces.Box(-9, 9, (5,))
    action_space = gymnasium.spaces.Box(-2, 2, (2,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.goal = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        self.place = np.zeros(2, np.float32)
        return self.seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        push = self.push(action)
        self.place = (self.place + 0.1 * push).clip(-9, 9)
        return self.seen(), float(push[0]), bool(self.place[0] > 1), False, {}

    def push(self, action: Any) -> np.ndarray:
        return np.asarray(action, np.float32)

    def seen(self) -> Any:
        return np.concatenate((self.place, self.goal, self.place[:1]))


class Chosen(Drift):
    """Three pushes to choose from."""

    action_space = gymnasium.spaces.Discrete(3)

    def push(self, action: Any) -> np.ndarray:
        return np.array(((1, 0), (0, 1), (-1, 0)), np.float32)[int(action)]


class Sought(Drift):
    """A goal to be pushed to."""

    observation_space = gymnasium.spaces.Dict(
        {name: gymnasium.spaces.Box(-9, 9, (2,)) for name in ("observation", "achieved_goal", "desired_goal")}
    )

    def seen(self) -> Any:
        return {"observation": self.place.copy(), "achieved_goal": self.place.copy(), "desired_goal": self.goal.copy()}


for world in (Drift, Chosen, Sought):
    gymnasium.register(id=f"Own{world.__name__}-v0", entry_point=world, max_episode_steps=50)


def parts_of(tasks: Any) -> Iterator[tuple[str, GymnasiumTasks]]:
    """The environments of Gymnasium in some tasks, and where their settings stand."""
    if isinstance(tasks, GymnasiumTasks):
        yield "tasks", tasks
    elif isinstance(inner := getattr(tasks, "tasks", None), GymnasiumTasks):
        yield "tasks.tasks", inner


def found() -> Iterator[str]:
    """Names of the recipes of control that are for an environment of Gymnasium."""
    for name in papers.catalogue():
        recipe = papers.load(name)
        if isinstance(recipe, ControlRecipe) and any(parts_of(recipe.tasks)):
            yield name


def world_of(recipe: ControlRecipe) -> type[Drift]:
    """What the agent of a recipe can act in."""
    level = recipe.agent.levels[-1]
    if level.data.goals is not None:
        return Sought
    return Chosen if level.policy.discrete and level.codes is None else Drift


def write_file(path: Path, world: type[Drift]) -> None:
    """Steps at random, in D4RL's arrays."""
    rng = np.random.default_rng(0)
    last = np.arange(1, STEPS + 1) % EPISODE == 0
    size = 4 if world is Sought else 5
    actions = rng.integers(3, size=STEPS) if world is Chosen else rng.uniform(-2, 2, (STEPS, 2))
    arrays = {"observations": rng.normal(size=(STEPS, size)), "next_observations": rng.normal(size=(STEPS, size))}
    arrays |= {"actions": actions, "rewards": rng.uniform(0, 1, STEPS), "terminals": 0 * last, "timeouts": last}
    if world is Sought:
        arrays["goals"] = rng.normal(size=(STEPS // EPISODE, 2)).repeat(EPISODE, 0)
    np.savez(path, **arrays)  # pyright: ignore[reportArgumentType] (names are arrays')


def short(recipe: ControlRecipe) -> list[str]:
    """Two iterations of two updates for each phase, and episodes of a few steps."""
    settings = ["horizon.limit=6", "test_horizon.limit=6", "evaluation.episodes=1", "evaluation.every=9"]
    for k, phase in enumerate(recipe.phases):
        settings += [f"phases.{k}.iterations=2", f"phases.{k}.updates=2", f"phases.{k}.utd=0"]
        settings += [f"phases.{k}.episodes=2"] if phase.episodes else []
    return [*settings, f"agent.batch={4 * recipe.agent.slices}"]


@pytest.mark.parametrize("name", list(found()))
def test_a_recipe_learns_in_another_environment_by_settings_alone(name: str, tmp_path: Path) -> None:
    recipe, file = papers.load(name), tmp_path / "mine.npz"
    assert isinstance(recipe, ControlRecipe)
    ((path, tasks),) = parts_of(recipe.tasks)
    world = world_of(recipe)
    settings = [f"{path}.id=Own{world.__name__}-v0", f"{path}.info_goal=", f"{path}.test_options=[{{}}]"]
    if tasks.data:
        write_file(file, world)
        settings.append(f"{path}.data={file}")
    if any(phase.demonstrated for phase in recipe.phases):
        settings.append(f"{path}.demonstrations={file}")
    mine = resolve(ControlRecipe, recipe, [*settings, *short(recipe)])
    mine.train(tmp_path / "run")
    rows = rows_of(tmp_path / "run")
    assert [row["steps"] for row in rows if row["kind"] == "data"] == [STEPS] * bool(tasks.data)
    for row in (row for row in rows if row["kind"] == "train"):
        counted = ("iteration", "total_episodes", "total_env_steps", "horizon", "collected", "env_steps", "updates")
        learned = {key: value for key, value in row.items() if isinstance(value, float) and key not in counted}
        assert learned and np.isfinite(list(learned.values())).all() and row["updates"] == 2
        assert not (mine.phase(row["iteration"]).cloning and "q_loss" in learned)
    assert rows[-1]["kind"] == "eval" and rows[-1]["iteration"] == mine.iterations
    assert np.isfinite(rows[-1]["measures"]["return"]).all()
