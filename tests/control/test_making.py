"""Data sets made here are what their card says, in the units of the environment, and the same after a stop."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import rows_of

from longstride.control import (
    SAC,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    GaussianPolicy,
    GymnasiumTasks,
    Level,
    PointMaze,
    TDCritic,
    TrainingPhase,
    recorded,
)
from longstride.control.making import SETS, make_data
from longstride.core.errors import ConfigError, RunError
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
SMALL = Trunk(width=8, depth=1)


class Push(gymnasium.Env):
    """Four steps, which earn what they push: from 0 to 8."""

    observation_space = gymnasium.spaces.Box(-9, 9, (3,))
    action_space = gymnasium.spaces.Box(0, 8, (1,))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action: Any) -> Any:
        return self.np_random.normal(size=3).astype(np.float32), float(action[0]), False, False, {}


gymnasium.register(id="Push-v0", entry_point=Push, max_episode_steps=4)
RECIPE = ControlRecipe(
    name="push",
    seed=3,  # its medium agent is well between the first and the last, noise and all
    tasks=GymnasiumTasks(id="Push-v0"),
    agent=ControlAgent(
        levels=(
            Level(
                critic=TDCritic(trunk=SMALL, tau=0.1),
                policy=GaussianPolicy(trunk=SMALL),
                extraction=SAC(temperature=0.01),
            ),
        ),
        batch=32,
        critic_lr=2e-2,
        policy_lr=2e-2,
    ),
    phases=(TrainingPhase(iterations=3, episodes=4, updates=8), TrainingPhase(iterations=3, episodes=5, updates=12)),
    horizon=Fixed(limit=9),
    test_horizon=Fixed(limit=9),
    evaluation=ControlEvaluation(episodes=4, every=1),
)


def test_sets_are_those_of_the_stages_of_a_training(tmp_path: Path) -> None:
    card = make_data(RECIPE, tmp_path, "npz", episodes=7)
    sets = {name: recorded.read(str(tmp_path / f"{name}.npz")) for name in SETS}
    curve = [np.mean(row["measures"]["return"]) for row in rows_of(tmp_path / "run", "eval")]
    stage = next(i for i, value in enumerate(curve) if value >= curve[0] + (curve[-1] - curve[0]) / 3)
    assert card["medium_iteration"] == stage and 0 < stage < 6
    collected = 4 * min(stage, 3) + 5 * max(stage - 3, 0)
    assert {name: len(sets[name]) for name in SETS} == {
        "random": 7, "medium": 7, "expert": 7, "mixed": 14, "medium-replay": collected
    }  # fmt: skip
    for name in SETS:
        of, returns = card["sets"][name], [e.reward.sum() for e in sets[name]]
        assert of["return"] == pytest.approx(np.mean(returns)) and of["return_most"] == pytest.approx(max(returns))
        assert of["steps"] == 4 * len(sets[name]) and 0 < of["coverage"] <= 1
        # what was earned was pushed: actions are in the environment's own units
        assert all((e.action[:, 0] == e.reward).all() and not e.terminated for e in sets[name])
    assert card["sets"]["random"]["quality"] == 0 and card["sets"]["expert"]["quality"] == 1
    assert card["sets"]["random"]["return"] < card["sets"]["medium"]["return"] < card["sets"]["expert"]["return"]
    assert json.loads((tmp_path / "card.json").read_text()) == card
    assert f"| `expert.npz` | 7 | 28 | {card['sets']['expert']['return']:.1f} ±" in (tmp_path / "README.md").read_text()
    for a, b in zip([*sets["medium"], *sets["expert"]], sets["mixed"], strict=True):
        np.testing.assert_array_equal(a.observation, b.observation)

    with pytest.raises(RunError, match="has its data already"):
        make_data(RECIPE, tmp_path, "npz")
    # what was stopped before it was whole goes on, and gives the same
    kept = (tmp_path / "expert.npz").read_bytes()
    for name in ("card.json", "expert.npz"):
        (tmp_path / name).unlink()
    assert make_data(RECIPE, tmp_path, "npz", episodes=7) == card
    assert (tmp_path / "expert.npz").read_bytes() == kept


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"agent": {"policy_lr": 1e-12}, "phases": (TrainingPhase(iterations=2, episodes=1),)}, RunError, "not better"),
        ({"evaluation": {"every": 6}}, RunError, "no evaluation of push stands between"),
        ({"phases": (TrainingPhase(iterations=1, updates=1),)}, ConfigError, "has a phase that collects no episodes"),
        ({"tasks": PointMaze(episodes=2, length=5)}, ConfigError, "learns from offline data too"),
    ],
)
def test_what_gives_no_stages_is_refused(changes: Any, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        make_data(RECIPE.replace(**changes), tmp_path, "npz")
    assert not list(tmp_path.glob("*.npz"))


def test_discrete_actions_are_written_as_numbers() -> None:
    tasks = GymnasiumTasks(id="CartPole-v1")
    (episode,) = recorded.episodes_of(
        {
            "observations": np.zeros((3, 4)),
            "actions": np.array([1, 0, 1]),
            "rewards": np.ones(3),
            "terminals": np.array([0, 0, 1]),
        }
        | {"timeouts": np.zeros(3)},
        "x",
    )
    seen = tasks.spaces.read(episode, "x")
    assert seen.action.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert tasks.in_own_units(seen).action.tolist() == [[1], [0], [1]]
    walk = PointMaze(episodes=1, length=5).dataset(0)[0]
    assert PointMaze().in_own_units(walk) is walk
