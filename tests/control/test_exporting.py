"""An exported policy does what the agent does, in the units of the environment, in batches of any size."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from control_recipe import RECIPE as MAZE

from longstride.cli.main import main
from longstride.control import (
    DQN,
    Ahead,
    BehaviourCloning,
    ControlAgent,
    ControlEvaluation,
    ControlRecipe,
    FlowPolicy,
    GaussianPolicy,
    Greedy,
    GymnasiumTasks,
    Level,
    NormalPolicy,
    NStep,
    Relabelled,
    TrainingPhase,
    UniformPolicy,
)
from longstride.control.evaluation import trained_agent
from longstride.control.exporting import export_policy
from longstride.control.extraction import Actor
from longstride.core.errors import ConfigError, LongstrideWarning
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


@pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning")
def test_what_draws_its_actions_draws_them_anew_and_in_a_seed_again(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    made = recipe("Pendulum-v1", policy=FlowPolicy(trunk=SMALL))
    made.train(tmp_path / "run")
    export_policy(tmp_path / "run", made, tmp_path / "out")
    script = torch.jit.load(tmp_path / "out" / "policy.pt")
    learner, _ = trained_agent(made, tmp_path / "run")
    state = torch.zeros(4000, 3)

    def drawn(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return script(state, torch.zeros(len(state), 0))

    assert torch.equal(drawn(0), drawn(0)) and not torch.equal(drawn(0), drawn(1))
    acted = learner.actor(0, explore=False)(state.numpy(), np.zeros((len(state), 0)), np.ones(len(state), bool))
    mean, std = 2 * acted.mean(), 2 * acted.std()  # the same distribution, of other numbers
    assert drawn(0).mean().item() == pytest.approx(mean, abs=0.1) and drawn(0).std().item() == pytest.approx(std, 0.1)
    assert "torch.manual_seed" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.filterwarnings("ignore:.*deprecated.*:DeprecationWarning")
def test_of_several_levels_one_decides_the_goal_of_the_next(tmp_path: Path) -> None:
    above = Level(data=NStep(action="subgoal", goals=Relabelled(), steps=3), policy=NormalPolicy(trunk=SMALL))
    below = Level(data=NStep(goals=Ahead(steps=3)), policy=NormalPolicy(trunk=SMALL))
    made = MAZE.replace(
        agent=ControlAgent(levels=(above, below), batch=8, policy_lr=0.1),
        phases=(TrainingPhase(iterations=1, updates=5),),
    )
    with pytest.warns(
        LongstrideWarning, match="subgoals are places of the data.* normal_policy proposes lie between -1"
    ):
        made.train(tmp_path / "run")
    export_policy(tmp_path / "run", made, tmp_path / "out")
    script = torch.jit.load(tmp_path / "out" / "policy.pt")
    learner, _ = trained_agent(made, tmp_path / "run")
    rng = np.random.default_rng(0)
    observation, goal = (rng.normal(size=(6, size)).astype(np.float32) for size in (4, 2))
    found = script(torch.from_numpy(observation), torch.from_numpy(goal)).numpy()
    np.testing.assert_allclose(found, learner.actor(0, explore=False)(observation, goal, np.ones(6, bool)), atol=1e-6)
    assert not np.allclose(found, script(torch.from_numpy(observation), torch.zeros(6, 2)).numpy())
    assert "torch.manual_seed" not in (tmp_path / "out" / "README.md").read_text()


class Hidden(BehaviourCloning):
    """What is done depends on what no file can know."""

    def act(self, actor: Actor, critic: Any, state_BS: torch.Tensor, noise: Any, explore: bool) -> torch.Tensor:
        return super().act(actor, critic, state_BS, noise, explore) + float(state_BS.sum().sin())


def test_what_decides_in_chunks_or_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", reason="needs pip install 'longstride[gymnasium]'")
    chunks = recipe("Pendulum-v1", policy=FlowPolicy(trunk=SMALL), data=NStep(action="chunk", steps=2))
    hidden = recipe("Pendulum-v1", policy=GaussianPolicy(trunk=SMALL), extraction=Hidden())
    for name, made, message in (
        ("chunks", chunks, "has a memory or chunks"),
        ("hidden", hidden, "would not do what the agent does"),
    ):
        made.train(tmp_path / name)
        with pytest.raises(ConfigError, match=message):
            export_policy(tmp_path / name, made, tmp_path / "out")
    assert not (tmp_path / "out").exists()
