"""Gymnasium's vector environments: their episodes are those of single environments whatever their autoreset mode, and
what does not fit is refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guides import follow, own_modules
from helpers import rows_of

from longstride.control import (
    DQN,
    SAC,
    ControlAgent,
    ControlEpisode,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    Greedy,
    GymnasiumTasks,
    Level,
    NStep,
    Relabelled,
    TDCritic,
    TrainingPhase,
    TransitionStore,
    UniformPolicy,
)
from longstride.control.envs import Spec, play
from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import ConfigError, EnvFailure, MissingExtra, RunError
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
Box, Dict, Discrete = gymnasium.spaces.Box, gymnasium.spaces.Dict, gymnasium.spaces.Discrete
SMALL = Trunk(width=8, depth=1)


class Line(gymnasium.Env):
    """A point on a line, which begins anywhere: actions 5 and 6 go left and right, its place is the reward, the episode
    ends three steps from the middle, and is a success on the right."""

    observation_space, action_space = Box(-9, 9, (1, 2)), Discrete(2, start=5)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place, self.taken = float(self.np_random.uniform(-2, 2)), 0
        return self.seen(), {}

    def seen(self) -> np.ndarray:
        return np.array([[self.place, self.taken]], np.float32)

    def step(self, action: Any) -> Any:
        assert action in (5, 6)
        self.place, self.taken = self.place + 2 * int(action) - 11, self.taken + 1
        return self.seen(), self.place, abs(self.place) >= 3, False, {"is_success": self.place > 0}


class Reach(gymnasium.Env):
    """An arm of two joints: it shows where they are, which is what it did, and the goal is a place of the first."""

    observation_space = Dict(
        {"observation": Box(-9, 9, (2,)), "achieved_goal": Box(-9, 9, (1,)), "desired_goal": Box(-9, 9, (1,))}
    )
    action_space = Box(np.array([0, -2], np.float32), np.array([8, 2], np.float32))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.joints, self.goal = np.zeros(2, np.float32), self.np_random.uniform(0, 8, 1).astype(np.float32)
        return self.seen(), {}

    def seen(self) -> dict[str, np.ndarray]:
        return {"observation": self.joints, "achieved_goal": self.joints[:1].copy(), "desired_goal": self.goal.copy()}

    def step(self, action: Any) -> Any:
        self.joints = np.asarray(action, np.float32)
        return self.seen(), -1.0, False, False, {}


class Many(Line):
    """Takes two actions at once."""

    action_space = gymnasium.spaces.MultiDiscrete([2, 2])


class Sought(gymnasium.Env):
    """A place that shows itself; where it begins and what is sought is said by options of `reset` and by its `info`."""

    observation_space, action_space = Box(-9, 9, (2,)), Box(-1, 1, (2,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.place = np.full(2, (options or {}).get("start", 0), np.float32)
        return self.place, {"goal": self.place + self.np_random.uniform(1, 2, 2), "name": np.zeros(1)}

    def step(self, action: Any) -> Any:
        self.place = self.place + np.asarray(action, np.float32)
        return self.place, 0.0, False, False, {}


class Faulty(Line):
    """Its second step fails in a way of its own."""

    def __init__(self, how: str) -> None:
        self.how = how

    def step(self, action: Any) -> Any:
        seen, reward, *rest = super().step(action)
        if self.taken == 2 and self.how == "raises":
            raise RuntimeError("the motor broke")
        if self.taken == 2:
            seen, reward = {"wide": (np.zeros((1, 3)), 0.0), "unseen": (seen * np.nan, 0.0), "worth": (seen, np.inf)}[
                self.how
            ]
        return seen, reward, *rest


class Doubled(gymnasium.RewardWrapper):
    def __init__(self, env: Any, factor: float) -> None:
        super().__init__(env)
        self.factor = factor

    def reward(self, reward: Any) -> float:
        return self.factor * float(reward)


for env in (Line, Reach, Many, Sought, Faulty):
    gymnasium.register(id=f"{env.__name__}-v0", entry_point=env, max_episode_steps=4)
LINE = GymnasiumTasks(id="Line-v0")


def seeded_actions(count: int) -> Any:
    """What acts takes one of two actions at random, which depend on the copy and the step alone."""
    taken = np.random.default_rng(0).integers(2, size=(20, count))
    steps = iter(taken)

    def act(observation_BO: np.ndarray, goal_BG: np.ndarray, first_B: np.ndarray) -> np.ndarray:
        return np.eye(2, dtype=np.float32)[next(steps)]

    return taken, act


def alone(seed: int, actions: np.ndarray, horizon: int) -> ControlEpisode:
    """The episode of a single environment."""
    env = gymnasium.make("Line-v0")
    observations, rewards, terminated, truncated, info = [env.reset(seed=seed)[0]], [], False, False, {}
    while not (terminated or truncated) and len(rewards) < horizon:
        observation, reward, terminated, truncated, info = env.step(5 + actions[len(rewards)])
        observations.append(observation)
        rewards.append(reward)
    return ControlEpisode(
        np.stack(observations)[:, 0], np.eye(2)[actions[: len(rewards)]], np.array(rewards), terminated,
        success=info["is_success"],
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("horizon", [3, 10])
def test_episodes_are_those_of_single_environments_in_every_autoreset_mode(mode: str, horizon: int) -> None:
    tasks = LINE.replace(kwargs={"vector_kwargs": {"autoreset_mode": mode}})
    actions, act = seeded_actions(60)
    episodes = play(tasks.training(60, horizon), act, seed=7)
    for b, e in enumerate(episodes):
        single = alone(7 + b, actions[:, b], horizon)
        assert (e.terminated, e.solved) == (single.terminated, single.solved)
        for name in ("observation", "action", "reward"):
            np.testing.assert_allclose(getattr(e, name), getattr(single, name), rtol=1e-6)
    assert {(e.terminated, e.solved) for e in episodes} == {
        (ended, won) for ended in (True, False) for won in (True, False)
    }
    assert {e.length for e in episodes if not e.terminated} == {min(horizon, 4)}  # its own limit is 4


def test_a_goal_environment_is_observations_with_the_achieved_goal_and_an_episode_with_the_desired_one() -> None:
    tasks = GymnasiumTasks(id="Reach-v0")
    assert tasks.spec == Spec(observation=3, action=2, goal=(2,))
    (episode,) = play(tasks.training(1, 3), lambda o, g, first: np.array([[-0.5, 7.0]]), seed=0)
    # -0.5 of 0 to 8 is 2, 7 is clamped to 1
    assert episode.observation.tolist() == [[0, 0, 0], [2, 2, 2], [2, 2, 2], [2, 2, 2]]
    assert episode.goal is not None and 0 < episode.goal[0] < 8 and not episode.terminated
    store = TransitionStore.of([episode])
    batch = NStep(goals=Relabelled(), steps=2)(store, tasks.spec, np.array([0]), np.random.default_rng(0))
    assert batch.state_BS[:, 3].tolist() == [2]


def test_a_goal_that_is_said_in_info_is_an_observation_and_test_tasks_are_options_of_reset() -> None:
    tasks = GymnasiumTasks(id="Sought-v0", info_goal="goal", test_options=({"start": 3}, {"start": -3}, {"start": 3}))
    assert tasks.spec == Spec(observation=2, action=2, goal=(0, 1))
    env, names = tasks.tests(2, 3)
    assert names == ["Sought-v0-1", "Sought-v0-1", "Sought-v0-2", "Sought-v0-2", "Sought-v0-3", "Sought-v0-3"]
    episodes = play(env, lambda o, g, first: np.ones((6, 2)), seed=0)
    for start, e in zip((3, 3, -3, -3, 3, 3), episodes, strict=True):
        assert e.observation[:, 0].tolist() == [start, start + 1, start + 2, start + 3]
        assert e.goal is not None and (start + 1 < e.goal).all() and (e.goal < start + 2).all()
    with pytest.raises(ConfigError, match=r"Sought-v0 has .* under 'name'; expected an observation of 2 numbers"):
        tasks.replace(info_goal="name").training(2, 3).reset(0)
    with pytest.raises(
        ConfigError, match=r"info_goal: Reach-v0 shows its goals itself .*set tasks.info_goal= to nothing"
    ):
        assert GymnasiumTasks(id="Reach-v0", info_goal="goal").spec


def test_copies_take_turns() -> None:
    """Three copies play six episodes: the first three as they do alone, the others with other starts."""
    actions, act = seeded_actions(3)
    once = play(LINE.training(3, 4), act, seed=7)
    actions, act = seeded_actions(3)
    env = LINE.replace(vector=3).training(6, 4)
    episodes = play(env, act, seed=7)
    assert len(episodes) == 6 and env.turns == 2
    for a, b in zip(once, episodes[:3], strict=True):
        np.testing.assert_array_equal(a.observation, b.observation)
    assert len({float(e.observation[0, 0]) for e in episodes}) == 6
    # each turn has the options of its episodes
    tasks = GymnasiumTasks(id="Sought-v0", vector=2, test_options=({"start": 1}, {"start": 2}, {"start": 3}))
    episodes = play(tasks.tests(2, 1)[0], lambda o, g, first: np.zeros((2, 2)), seed=0)
    assert [e.observation[0, 0] for e in episodes] == [1, 1, 2, 2, 3, 3]
    with pytest.raises(ConfigError, match="tasks.vector: 6 episodes are no multiple of 4 copies"):
        LINE.replace(vector=4).training(6, 4)


def test_wrappers_stand_around_each_copy() -> None:
    wrappers = {"TimeLimit": {"max_episode_steps": 2}, f"{__name__}:Doubled": {"factor": 3}}
    _, act = seeded_actions(4)
    plain = play(LINE.training(4, 2), act, seed=7)
    _, act = seeded_actions(4)
    wrapped = play(LINE.replace(wrappers=wrappers).training(4, 9), act, seed=7)
    for a, b in zip(plain, wrapped, strict=True):
        np.testing.assert_allclose(3 * a.reward, b.reward, rtol=1e-6)
        assert (a.length, a.terminated) == (b.length, b.terminated)
    with pytest.raises(ConfigError, match="there is no Nothing; expected a name of gymnasium.wrappers"):
        LINE.replace(wrappers={"Nothing": {}}).training(1, 1)


def test_a_success_is_said_by_the_environment_or_an_amount_that_was_earned() -> None:
    def pushing(o: np.ndarray, g: np.ndarray, first: np.ndarray) -> np.ndarray:
        return np.eye(2)[np.tile([0, 1], 5)]

    cart = GymnasiumTasks(id="CartPole-v1")
    assert cart.spec == Spec(observation=4, action=2, goal=(), discrete=True)
    episodes = play(cart.training(10, 500), pushing, 0)
    lengths = sorted(e.length for e in episodes)
    assert all(e.terminated and not e.solved for e in episodes) and lengths[0] < lengths[-1]
    assert [cart.measures(e)["return"] for e in episodes] == [e.length for e in episodes]
    episodes = play(cart.replace(success_above=lengths[0]).training(10, 500), pushing, 0)
    assert [e.solved for e in episodes] == [e.length > lengths[0] for e in episodes]


def test_what_does_not_fit_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for tasks, message in (
        (
            GymnasiumTasks(id="Nowhere-v0"),
            "make Nowhere-v0: Environment `Nowhere` doesn't exist.*one of your own is `module:ID",
        ),
        (GymnasiumTasks(id="no_such_module:Line-v0"), "no_such_module"),
        (LINE.replace(kwargs={"wind": 3}), "takes no arguments"),
        (GymnasiumTasks(id="Many-v0"), r"takes actions of MultiDiscrete.*expected a Discrete space or a bounded Box"),
    ):
        with pytest.raises(ConfigError, match=message):
            assert tasks.spec
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longstride\[gymnasium\]'"):
        assert LINE.spec


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("raises", r"Faulty-v0.step raised RuntimeError: the motor broke \(test_gymnasium.py, line \d+\)"),
        ("wide", "Faulty-v0.step raised ValueError"),
        ("unseen", "Faulty-v0.step returned observations with nan; expected finite numbers"),
        ("worth", "Faulty-v0.step returned rewards with inf; expected finite numbers"),
    ],
)
def test_an_environment_that_fails_in_an_episode_is_named(how: str, message: str) -> None:
    tasks = GymnasiumTasks(id="Faulty-v0", kwargs={"how": how})
    with pytest.raises(EnvFailure, match=message):
        play(tasks.training(2, 4), seeded_actions(2)[1], seed=0)


def test_a_module_of_the_current_folder_registers_environments(tmp_path: Path) -> None:
    """Also for the program `longstride`, whose path has not the current folder."""
    (tmp_path / "my_lines.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        'gymnasium.register(id="Mine-v0", entry_point=CartPoleEnv)\n'
    )
    code = (
        "import sys; sys.path.remove('')\n"
        "from longstride.adapters.gymnasium import Gymnasium\n"
        "from longstride.control import GymnasiumTasks\n"
        "mine = {'id': 'my_lines:Mine-v0'}\n"
        "print(GymnasiumTasks(**mine).spec.observation, len(Gymnasium(**mine).held_out(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "4 1\n", done.stderr


RECIPE = ControlRecipe(
    name="line",
    tasks=LINE,
    agent=ControlAgent(levels=(Level(critic=DQN(trunk=SMALL), policy=UniformPolicy(), extraction=Greedy()),), batch=8),
    phases=(TrainingPhase(iterations=2, episodes=3, utd=0.5),),
    horizon=Fixed(limit=4),
    test_horizon=Fixed(limit=4),
    evaluation=ControlEvaluation(episodes=5, every=1),
)


def test_a_recipe_trains_on_it_is_resumed_exactly_and_reports_returns(tmp_path: Path) -> None:
    RECIPE.train(tmp_path / "whole")
    found = rows_of(tmp_path / "whole")
    assert load_toml(ControlRecipe, tmp_path / "whole" / "run.toml") == RECIPE and "further" in dump_toml(RECIPE)
    for row in (row for row in found if row["kind"] == "eval"):
        assert len(row["measures"]["return"]) == len(row["outcomes"]) == 5
        assert list(row["summary"]["by_source"]) == ["Line-v0"]
    for row in (row for row in found if row["kind"] == "train"):
        assert row["collected"] == 3 and row["updates"] == round(0.5 * row["env_steps"])
    RECIPE.replace(phases=(TrainingPhase(iterations=1, episodes=3, utd=0.5),)).train(tmp_path / "half")
    RECIPE.train(tmp_path / "half", resume=True)
    ends = [tmp_path / run / "checkpoints/000002/trainer.safetensors" for run in ("whole", "half")]
    assert ends[0].read_bytes() == ends[1].read_bytes()


def test_box_actions_train_too(tmp_path: Path) -> None:
    level = Level(critic=TDCritic(trunk=SMALL), policy=GaussianPolicy(trunk=SMALL), extraction=SAC())
    agent = ControlAgent(levels=(level,), batch=8)
    RECIPE.replace(tasks=GymnasiumTasks(id="Pendulum-v1"), agent=agent).train(tmp_path)
    last = rows_of(tmp_path)[-1]
    assert last["summary"]["timeouts"] == 1 and all(-4 * 16.3 < r < 0 for r in last["measures"]["return"])


def test_updates_before_anything_was_collected_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no offline data, so collect episodes first"):
        RECIPE.replace(phases=(TrainingPhase(iterations=1, updates=1),)).train(tmp_path)


def test_the_guide_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with own_modules(tmp_path):
        follow("control.md", tmp_path, "test_horizon.limit=3", "phases=[{iterations=1, episodes=2, updates=3}]")
    (folder,) = tmp_path.glob("runs/*")
    assert rows_of(folder)[-1]["summary"]["by_source"].keys() == {"CartPole-v1"}
