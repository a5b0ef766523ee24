"""A test episode played again is the one that was evaluated, and its animation has a picture of every step."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import rows_of

from longstride.cli.main import main
from longstride.control import (
    BehaviourCloning,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    FlowPolicy,
    GymnasiumTasks,
    Level,
    TrainingPhase,
)
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

gymnasium = pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")


class Lamp(gymnasium.Env):
    """A lamp that is as bright as it is told, and a reward of that."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
    observation_space = gymnasium.spaces.Box(-9, 9, (1,))
    action_space = gymnasium.spaces.Box(0, 1, (1,))

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.light, self.ends = 0.0, int(self.np_random.integers(2, 6))
        return np.full(1, self.ends, np.float32), {}

    def step(self, action: Any) -> Any:
        self.light, self.ends = float(action[0]), self.ends - 1
        return np.full(1, self.ends, np.float32), self.light, self.ends == 0, False, {}

    def render(self) -> np.ndarray:
        return np.full((4, 6, 3), 10 * self.ends, np.uint8)


gymnasium.register(id="Lamp-v0", entry_point=Lamp)


@pytest.mark.parametrize("vector", [None, 2])
def test_an_episode_is_played_again_and_filmed(
    vector: int | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image", reason="needs pip install 'longstride[plot]'")
    level = Level(policy=FlowPolicy(trunk=Trunk(width=8, depth=1), steps=2), extraction=BehaviourCloning())
    recipe = ControlRecipe(
        name="lamp",
        tasks=GymnasiumTasks(id="Lamp-v0", vector=vector),
        agent=ControlAgent(levels=(level,), batch=4),
        phases=(TrainingPhase(iterations=1, episodes=2, updates=2),),
        horizon=Fixed(limit=9),
        test_horizon=Fixed(limit=9),
        evaluation=ControlEvaluation(episodes=4),
    )
    run = tmp_path / "run"
    recipe.train(run)
    returns = rows_of(run, "eval")[-1]["measures"]["return"]
    for number in (0, 3):
        assert main(["playback", str(run), str(number), "--json", "--video", str(tmp_path / "a.gif")]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["return"] == pytest.approx(returns[number]) and found["task"] == "Lamp-v0"
        with image.open(tmp_path / "a.gif") as film:
            assert film.n_frames == found["steps"] + 1 and film.size == (6, 4) and film.info["duration"] == 100
    for words, message in (
        (["4"], "has the test episodes 0 to 3, not 4"),
        (["0", "--video", "a.mp4"], "expected *.gif"),
    ):
        assert main(["playback", str(run), *words]) == 2
        assert message in capsys.readouterr().err
