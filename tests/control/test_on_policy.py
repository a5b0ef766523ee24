"""PPO: its loss by hand, and runs that learn from what their own policy has just done."""

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from control_recipe import RECIPE, SMALL
from helpers import rows_of
from safetensors.torch import load_file

from longstride.control import (
    AWR,
    Batch,
    BestOfN,
    CategoricalPolicy,
    ControlAgent,
    ControlRecipe,
    FlowPolicy,
    GaussianPolicy,
    Given,
    LambdaReturns,
    Level,
    NStep,
    Proximal,
    Relabelled,
    TDCritic,
    TransitionStore,
)
from longstride.control.envs import ControlEpisode, Spec
from longstride.control.learner import AHEAD, ControlLearner
from longstride.control.noise import RunNoise
from longstride.control.on_policy import ReturnNets
from longstride.control.policies import CategoricalNets
from longstride.core.errors import ConfigError


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def batch(action: list[int], returns: list[float]) -> Batch:
    n, none = len(action), torch.zeros(len(action))
    return Batch(torch.zeros(n, 1), torch.eye(2)[action], none, none, torch.zeros(n, 1), torch.tensor(returns))


def test_ppo_by_hand() -> None:
    """Ratios 1.5 and 0.5 of two actions, each with an advantage of 1 and of -1 after scaling."""
    ppo, critic = Proximal(clip=0.2), LambdaReturns(trunk=SMALL)
    nets = critic.make(1, 2, seeded())
    actor = ppo.make(CategoricalPolicy(trunk=SMALL).make(1, 2, seeded()))
    assert isinstance(actor.policy, CategoricalNets) and isinstance(actor.target, CategoricalNets)
    for net, shares in ((actor.policy.net, (0.75, 0.25)), (actor.target.net, (0.5, 0.5))):
        with torch.no_grad():
            net.weights[-1].zero_()
            net.biases[-1].copy_(torch.tensor(shares).log())
    with torch.no_grad():
        for net, value in ((nets.v, 1.0), (nets.before, 3.0)):
            net.weights[-1].zero_()
            net.biases[-1].fill_(value)
    data = batch([0, 0, 1, 1], [5.0, 1.0, 5.0, 1.0])
    assert nets.advantage(data, actor.policy, RunNoise.seeded(0)).tolist() == [2, -2, 2, -2]
    size = 1 / (math.sqrt(4 / 3) + 1e-8 / 2)  # a deviation with divisor n - 1
    loss, metrics = ppo.loss(actor, nets, data, RunNoise.seeded(0))
    # min(1.5, 1.2), min(-1.5, -1.2), min(0.5, 0.8), min(-0.5, -0.8)
    assert loss.item() == pytest.approx(-(1.2 - 1.5 + 0.5 - 0.8) / 4 * size, rel=1e-5)
    assert metrics["clipped"].item() == 1
    assert metrics["kl"].item() == pytest.approx(-(math.log(1.5) + math.log(0.5)) / 2, rel=1e-5)
    assert critic.loss(nets, data, actor.policy, RunNoise.seeded(0), True)[0].item() == pytest.approx((16 + 0) / 2)
    loss.backward()
    assert all(p.grad is None for p in actor.target.parameters())
    ppo.before_updates(actor)
    critic.before_updates(nets)
    assert ppo.loss(actor, nets, data, RunNoise.seeded(0))[1]["kl"].item() == pytest.approx(0, abs=1e-6)
    assert nets.advantage(data, actor.policy, RunNoise.seeded(0)).tolist() == [4, 0, 4, 0]


def test_where_a_limit_ends_the_task_nothing_is_worth_anything_after_it() -> None:
    episode = ControlEpisode(np.ones((4, 1)), np.zeros((3, 1)), np.array([1.0, 2, 3]), False)
    critic, store = LambdaReturns(trunk=SMALL, lam=1.0), TransitionStore.of([episode])
    nets = critic.make(1, 1, seeded())
    with torch.no_grad():
        nets.before.biases[-1].fill_(8.0)
        nets.before.weights[-1].zero_()
    for finite, expected in ((False, [2.75 + 1, 3.5 + 2, 3 + 4]), (True, [2.75, 3.5, 3])):
        nets.returned.clear()
        assert critic.returns(nets, NStep(discount=0.5, finite=finite), store)[:3].tolist() == expected


def test_returns_are_made_with_the_values_of_before() -> None:
    """Two steps that earn 1 each, in a state that is worth 10, and a limit of time."""
    critic, data = LambdaReturns(trunk=SMALL, lam=0.0), NStep(discount=0.5, reward_scale=2.0)
    nets = critic.make(2, 1, seeded())
    assert isinstance(nets, ReturnNets)
    with torch.no_grad():
        nets.before.weights[-1].zero_()
        nets.before.biases[-1].fill_(10)
    store = TransitionStore.of([ControlEpisode(np.zeros((3, 2)), np.zeros((2, 1)), np.ones(2), False)])
    assert critic.returns(nets, data, store).tolist() == [7, 7, 10]


LEVEL = Level(critic=LambdaReturns(trunk=SMALL), policy=GaussianPolicy(trunk=SMALL), extraction=Proximal())


def online(phases: list[dict[str, int]]) -> ControlRecipe:
    return RECIPE.replace(agent=RECIPE.agent.replace(levels=(LEVEL,)), phases=phases)


def test_a_run_learns_from_its_newest_episodes_alone_and_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    """The tasks have offline data, which is not read."""
    whole, part = (online([{"iterations": n, "episodes": 2, "updates": 3}]) for n in (3, 2))
    whole.train(tmp_path / "whole")
    part.train(tmp_path / "part")
    whole.train(tmp_path / "part", resume=True)
    ours, theirs = (
        [{k: v for k, v in row.items() if "seconds" not in k} for row in rows_of(tmp_path / name, "train")]
        for name in ("whole", "part")
    )
    assert ours == theirs and ours[-1]["updates"] == 3
    *_, last = sorted((tmp_path / "whole" / "checkpoints").glob("*/trainer.safetensors"))
    assert len(load_file(last)["collected.last"]) == 2


def test_what_learns_on_policy_has_to_collect_and_needs_a_density() -> None:
    with pytest.raises(ConfigError, match="set episodes of every phase"):
        online([{"iterations": 1, "updates": 1}])
    with pytest.raises(ConfigError, match="leave out demonstrated"):
        online([{"iterations": 1, "episodes": 1, "updates": 1, "demonstrated": 1}])
    with pytest.raises(ConfigError, match="gaussian_policy or categorical_policy, not flow_policy"):
        LEVEL.replace(policy=FlowPolicy(trunk=SMALL))
    with pytest.raises(ConfigError, match="best_of_n needs scores of any action, which lambda_returns has not"):
        LEVEL.replace(extraction=BestOfN())
    with pytest.raises(ConfigError, match="single steps as they were taken: leave out data.steps above 1"):
        LEVEL.replace(data=NStep(steps=2))
    with pytest.raises(ConfigError, match="leave out policy_goals$"):
        LEVEL.replace(data=NStep(goals=Given()), policy_goals=Relabelled())
    with pytest.raises(ConfigError, match="lambda_returns reads the returns of the data, .* relabelled there are none"):
        LEVEL.replace(data=NStep(goals=Relabelled()))
    with pytest.raises(ConfigError, match="proximal needs advantages .* td_critic does not .* must be lambda_returns"):
        LEVEL.replace(critic=TDCritic(trunk=SMALL))
    assert LEVEL.replace(extraction=AWR())


def test_during_the_updates_of_an_iteration_returns_and_densities_are_those_of_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner = ControlLearner(ControlAgent(levels=(LEVEL,), batch=8), Spec(observation=2, action=1, goal=()), 0)
    (net,), rng = learner.levels, np.random.default_rng(0)
    assert isinstance(net.critic, ReturnNets) and net.actor.target is not None
    made: list[np.ndarray] = []
    lambda_returns = TransitionStore.lambda_returns

    def counted(*args: Any) -> np.ndarray:
        made.append(lambda_returns(*args))
        return made[-1]

    monkeypatch.setattr(TransitionStore, "lambda_returns", counted)
    walk = ControlEpisode(rng.normal(size=(9, 2)), rng.uniform(-1, 1, (8, 1)), rng.normal(size=8), True)
    store = TransitionStore.of([walk])
    for iteration in (1, 2):
        begun = copy.deepcopy(net)
        learner.train(2 * AHEAD, [(store, 8)])
        assert isinstance(begun.critic, ReturnNets)
        for kept, then, now in (
            (net.critic.before, begun.critic.v, net.critic.v), (net.actor.target, begun.actor.policy, net.actor.policy),
        ):  # fmt: skip
            assert all(map(torch.equal, kept.parameters(), then.parameters()))
            assert not all(map(torch.equal, kept.parameters(), now.parameters()))
        # made once for all updates, by the network of before
        assert len(made) == iteration and net.critic.returned[store] is made[-1]
        with torch.no_grad():
            value_R = begun.critic.v(torch.from_numpy(store.observation))[0, :, 0].numpy()
        np.testing.assert_array_equal(made[-1], lambda_returns(store, value_R, 0.99, 0.95))
