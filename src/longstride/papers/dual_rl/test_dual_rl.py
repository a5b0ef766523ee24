"""The losses of f-DVL and XQL by hand, where they are least, and where only one of them stays finite; ReCOIL by hand, and
that it tells an expert's steps from others."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from aiming import Aiming

from longstride.control import (
    AWR,
    BehaviourCloning,
    ControlAgent,
    ControlEpisode,
    Level,
    Maximiser,
    NormalPolicy,
    TransitionStore,
)
from longstride.control.batches import Batch
from longstride.control.learner import ControlLearner
from longstride.control.noise import RunNoise
from longstride.models.mlp import MLP, Trunk
from longstride.papers.dual_rl.method import ChiSquare, ExpertSteps, Gumbel, ReCOIL, TotalVariation


def test_losses_by_hand() -> None:
    ahead = torch.tensor([2.0, -2.0, -8.0])  # u + u^2 / 4 is 3, -1, 8
    assert ChiSquare(lam=0.75)(ahead).tolist() == [0.75 * 3 - 0.5, 0.5, 0.75 * 8 + 2]
    assert TotalVariation(lam=0.75)(ahead).tolist() == [0.75 * 2 - 0.5, 0.5, 2]
    z = [math.log(4), 0.0, -3.0]
    losses = Gumbel(scale=2.0)(2 * torch.tensor(z))
    # divided by the exponential of the largest z, which is 4
    torch.testing.assert_close(losses, torch.tensor([(math.exp(x) - x - 1) / 4 for x in z]))


def test_runs_side_by_side_are_scaled_apart() -> None:
    ahead = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(Gumbel()(ahead), torch.stack([Gumbel()(row) for row in ahead]))


KNOWN = torch.tensor([0.0, 1.0, 2.0, 6.0])


def least(loss: Maximiser) -> float:
    """Where the slope of the mean loss over four values turns: Gumbel's is scaled by each batch, its slope is not bent."""
    v = torch.linspace(-1, 7, 1601)[:, None].requires_grad_()
    loss(KNOWN - v).sum().backward()
    assert v.grad is not None
    return v[int((v.grad[:, 0] > -1e-6).nonzero()[0])].item()


@pytest.mark.parametrize(
    "losses",
    [
        [ChiSquare(lam=lam) for lam in (0.5, 0.7, 0.9)],
        [TotalVariation(lam=lam) for lam in (0.55, 0.7, 0.9)],
        [Gumbel(scale=scale, most=50.0) for scale in (9.0, 3.0, 1.0)],
    ],
)
def test_v_is_nearer_to_the_largest_q_the_sharper_the_loss(losses: list[Maximiser]) -> None:
    found = [least(loss) for loss in losses]
    assert found == sorted(found) and found[0] < found[-1] <= 6


def test_v_is_a_quantile_and_a_soft_maximum() -> None:
    # the quantiles 4 / 7 and 2 / 7
    assert least(TotalVariation(lam=0.7)) == pytest.approx(2, abs=0.01)
    assert least(TotalVariation(lam=7 / 12)) == pytest.approx(1, abs=0.01)
    assert least(Gumbel(scale=2.0)) == pytest.approx(2 * (KNOWN / 2).exp().mean().log().item(), abs=0.01)


def test_a_value_far_above_moves_v_under_the_chi_square_and_not_under_gumbels_loss() -> None:
    for loss, moves in ((ChiSquare(), True), (Gumbel(scale=0.1), False)):
        v = torch.zeros(1, requires_grad=True)
        loss(9 - v).mean().backward()
        assert v.grad is not None and torch.isfinite(v.grad).all() and (v.grad.item() < 0) == moves


SMALL, WIDE = Trunk(width=8, depth=1), Trunk(width=32, depth=2, norm=False, activation="relu")


def constant(net: MLP, *values: float) -> None:
    """Each member of a network says its value, whatever it reads."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.zero_()
        net.biases[-1].copy_(torch.tensor(values).view_as(net.biases[-1]))


def test_recoil_by_hand() -> None:
    """Q is 1 and 3, V is 2: the expert's step toward 10, others toward -5 + 2 / 2 and, at an end, toward -10."""
    critic = ReCOIL(trunk=SMALL, maximiser=ChiSquare(lam=0.75))
    nets = critic.make(1, 1, torch.Generator())
    assert nets.v is not None
    for net, values in ((nets.q.net, (1.0, 3.0)), (nets.target.net, (4.0, 6.0)), (nets.v, (2.0,))):
        constant(net, *values)
    state, reward, discount = torch.zeros(3, 1), torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.5, 0.5, 0.0])
    batch = Batch(state, state, reward, discount, state, torch.zeros(3))
    policy, noise = NormalPolicy(trunk=SMALL).make(1, 1, torch.Generator()), RunNoise.seeded(0)
    loss, metrics = critic.loss(nets, batch, policy, noise, True)
    errors = [[(q - target) ** 2 for target in (10, -4, -10)] for q in (1, 3)]
    assert metrics["q_loss"].item() == pytest.approx(sum(map(sum, errors)) / 3)
    # u is 2, of which the chi-square is 3; the expert's step is left out
    assert metrics["v_loss"].item() == pytest.approx((2 * (0.75 * 3 - 0.25 * 2)) / 3)
    assert metrics["expert.q"].item() == 2 and loss == metrics["q_loss"] + metrics["v_loss"]


class Shown(Aiming):
    """Targets, with episodes of one who hits them."""

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        return [replace(e, action=e.observation[:1].copy()) for e in self.dataset(seed + 1)[:40]]


def test_rewards_say_whose_a_step_is() -> None:
    tasks = ExpertSteps(tasks=Shown())
    assert {float(e.reward[0]) for e in tasks.dataset(0)} == {0.0}
    assert {float(e.reward[0]) for e in tasks.demonstrated(0)} == {1.0}
    assert [e.action.tolist() for e in tasks.dataset(3)] == [e.action.tolist() for e in Shown().dataset(3)]
    assert tasks.spec == Shown().spec and tasks.measures(tasks.demonstrated(0)[0])["off"] == 0


def test_recoil_picks_what_an_expert_does_from_the_data_of_anyone() -> None:
    """Cloning all that both have done aims half as far as it should."""
    tasks = ExpertSteps(tasks=Shown())
    stores = [TransitionStore.of(of) for of in (tasks.dataset(0), tasks.demonstrated(0))]
    off = {}
    for name, level in {
        "recoil": Level(critic=ReCOIL(trunk=WIDE), policy=NormalPolicy(trunk=WIDE), extraction=AWR(largest=100.0)),
        "cloning": Level(policy=NormalPolicy(trunk=WIDE), extraction=BehaviourCloning()),
    }.items():
        agent = ControlAgent(levels=(level,), batch=128, critic_lr=1e-2, policy_lr=1e-2)
        learner = ControlLearner(agent, tasks.spec, seed=0)
        learner.train(300, [(store, 64) for store in stores])
        target = np.linspace(-0.9, 0.9, 50, dtype=np.float32)[:, None]
        aimed = learner.actor(0, explore=False)(target, np.zeros((50, 0)), np.ones(50, bool))
        off[name] = float(np.abs(aimed - target).mean())
    assert off["recoil"] < 0.1 < 0.2 < off["cloning"], off
