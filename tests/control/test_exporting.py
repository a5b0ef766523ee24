"""An exported policy does what the agent does, in the units of the environment, in batches of any size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longstride.cli.main import main
from longstride.control import (
    DQN,
    BehaviourCloning,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    FlowPolicy,
    GaussianPolicy,
    Greedy,
    GymnasiumTasks,
    Level,
    NStep,
    TrainingPhase,
    UniformPolicy,
)
from longstride.control.evaluation import trained_agent
from longstride.control.exporting import export_policy
from longstride.core.errors import ConfigError
from longstride.curriculum import Fixed
from longstride.models.mlp import Trunk

SMALL = Trunk(width=8, depth=1)


def recipe(env: str, **level: Any) -> ControlRecipe:
    return ControlRecipe(
        name="small",
        tasks=GymnasiumTasks(id=env),
        agent=ControlAgent(levels=(Level(**level),), batch=8, policy_lr=0.1, critic_lr=0.1),
        phases=(TrainingPhase(iterations=1, episodes=1, updates=5),),
        horizon=Fixed(limit=9),
        test_horizon=Fixed(limit=9),
        evaluation=ControlEvaluation(episodes=1),
    )


@pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning")
@pytest.mark.parametrize(
    ("env", "level"),
    [
        ("Pendulum-v1", {"policy": GaussianPolicy(trunk=SMALL), "extraction": BehaviourCloning()}),
        ("CartPole-v1", {"policy": UniformPolicy(), "critic": DQN(trunk=SMALL), "extraction": Greedy()}),
    ],
)
def test_the_file_acts_like_the_agent(env: str, level: Any, tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    made = recipe(env, **level)
    made.train(tmp_path / "run")
    assert main(["export", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 0
    policy = torch.jit.load(tmp_path / "out" / "policy.pt")
    learner, _ = trained_agent(made, tmp_path / "run")
    for count in (1, 7):
        observation = np.random.default_rng(count).normal(size=(count, made.tasks.spec.observation)).astype(np.float32)
        acted = learner.actor(0, explore=False)(observation, np.zeros((count, 0)), np.ones(count, bool))
        expected = acted.argmax(1) if made.tasks.spec.discrete else 2 * acted  # Pendulum's torque is from -2 to 2
        found = policy(torch.from_numpy(observation), torch.zeros(count, 0)).numpy()
        np.testing.assert_allclose(found, expected, atol=1e-6)
    page = (tmp_path / "out" / "README.md").read_text()
    assert f"A policy of `small` in `{env}`" in page and f"torch.zeros(1, {made.tasks.spec.observation})" in page
    assert len({p.name for p in (tmp_path / "out").iterdir()}) == 3


def test_what_draws_or_decides_in_chunks_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    made = recipe("Pendulum-v1", policy=FlowPolicy(trunk=SMALL))
    made.train(tmp_path / "draws")
    with pytest.raises(ConfigError, match=r"\(flow_policy\) draws its actions"):
        export_policy(tmp_path / "draws", made, tmp_path / "out")
    made = recipe("Pendulum-v1", policy=FlowPolicy(trunk=SMALL), data=NStep(action="chunk", steps=2))
    made.train(tmp_path / "chunks")
    with pytest.raises(ConfigError, match="has levels, a memory or chunks"):
        export_policy(tmp_path / "chunks", made, tmp_path / "out")
    assert not (tmp_path / "out").exists()
