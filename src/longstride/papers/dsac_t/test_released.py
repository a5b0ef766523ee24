"""`GaussianReturns` beside the authors' code: loss, gradients and mean deviations that `DSAC_V2.__compute_loss_q` of
Jingliang-Duan/DSAC-v2 (`dsac_v2.py`, commit c5105eb) has on two batches of four transitions, without an entropy in the
target; and what its deviation comes to."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from longstride.control import Batch, GaussianPolicy
from longstride.control.noise import RunNoise
from longstride.models.mlp import Trunk
from longstride.papers.dsac_t.method import GaussianReturns, NormalQ

SMALL = Trunk(width=4, depth=1)
POLICY = GaussianPolicy(trunk=SMALL).make(1, 1, torch.Generator())
HERE = [
    [[1.0, 0.2], [-2.0, -1.5], [0.5, 3.0], [70.0, 0.0]],
    [[1.5, -0.4], [-1.0, 0.7], [0.0, 5.0], [3.0, -4.0]],
]
"""Raw outputs of the two members at the transitions' actions."""
AFTER = [
    [[2.0, 0.5], [-3.0, 1.0], [4.0, -2.0], [1.0, 0.3]],
    [[1.0, -0.5], [-1.0, 2.0], [5.0, 0.4], [0.5, 1.2]],
]
"""And of the target networks at the next ones."""
DRAWN = [0.5, -4.0, 1.0, 2.0]
RELEASED = [
    (
        1337.148681640625, [1.1853216886520386, 1.660266637802124],
        [
            [[-0.09531471, 0.16093276], [2.24890208, -9.50037289], [-0.01869551, 0.10372102], [30.25626755, -2.22854567]],
            [[0.56923205, 0.32225394], [0.99416184, -3.25079250], [-0.02738173, 0.13084537], [6.125, -0.00631067]],
        ],
    ),
    (
        840.2802734375, [1.2590084075927734, 1.6287050247192383],
        [
            [[0.09026644, 0.20273378], [2.80006886, -9.15644073], [0.0, 0.10513037], [18.89138603, -1.35409069]],
            [[0.11994535, 0.25805885], [1.10559762, -4.33279085], [-0.03644687, 0.13007969], [5.5, -0.02893007]],
        ],
    ),
]  # fmt: skip
"""Loss, mean deviations and gradients of the first batch, and of one where the raw outputs are 0.5 and -0.25 off."""


class Outputs(nn.Module):
    """Networks whose outputs are given."""

    def __init__(self, raw_EB2: Tensor) -> None:
        super().__init__()
        self.raw_EB2 = raw_EB2

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        return self.raw_EB2


def nets_of(critic: GaussianReturns, here: Any, after: Any) -> tuple[NormalQ, Tensor]:
    """Networks with these outputs at the transitions' actions and at the next ones; and the former."""
    nets: Any = critic.make(1, 1, torch.Generator())
    raw_EB2 = torch.tensor(here, requires_grad=True)
    nets.q, nets.target = Outputs(raw_EB2), Outputs(torch.tensor(after))
    return nets, raw_EB2


def batch(reward: list[float], discount: list[float]) -> Batch:
    state = torch.zeros(len(reward), 1)
    return Batch(state, state, torch.tensor(reward), torch.tensor(discount), state, state[:, 0])


def test_losses_and_gradients_are_the_released_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    critic = GaussianReturns(trunk=SMALL, follow=0.25)
    nets, raw = nets_of(critic, HERE, AFTER)
    data, noise = batch([0.3, -0.2, 1.0, 0.1], [0.9, 0.9, 0.0, 0.9]), RunNoise.seeded(0)
    monkeypatch.setattr(RunNoise, "normal", lambda self, *shape: torch.tensor(DRAWN))
    for expected, usual, gradients in RELEASED:
        loss, _ = critic.loss(nets, data, POLICY, noise, conservative=False)
        (gradient,) = torch.autograd.grad(loss, raw)
        assert loss.item() == pytest.approx(expected, rel=1e-6)
        assert nets.usual.tolist() == pytest.approx(usual, rel=1e-6)
        torch.testing.assert_close(gradient, torch.tensor(gradients), atol=1e-5, rtol=1e-5)
        with torch.no_grad():
            raw += torch.tensor([0.5, -0.25])[:, None, None]


def test_a_draw_moves_the_deviation_and_never_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    critic = GaussianReturns(trunk=SMALL)
    found = []
    for drawn in (0.0, 2.5):
        monkeypatch.setattr(RunNoise, "normal", lambda self, *shape, drawn=drawn: torch.full(shape, drawn))
        nets, raw = nets_of(critic, [[[1.0, 1.0]], [[2.0, 1.0]]], [[[1.0, 1.0]], [[3.0, 1.0]]])
        loss, _ = critic.loss(nets, batch([0.0], [0.9]), POLICY, RunNoise.seeded(0), conservative=False)
        found += torch.autograd.grad(loss, raw)
    torch.testing.assert_close(found[0][..., 0], found[1][..., 0])
    assert (found[1][..., 1] < found[0][..., 1]).all()  # a far draw widens the distribution


def test_the_deviation_comes_to_that_of_the_returns_by_the_square_root_of_two() -> None:
    """Rewards of deviation 1 that end the episode: s^2 = E[(z - q)^2] / 2 where H is half the square, as released."""
    reward = torch.randn(4000, generator=torch.Generator().manual_seed(0))
    critic, data = GaussianReturns(trunk=SMALL), batch(reward.tolist(), [0.0] * 4000)
    nets, _ = nets_of(critic, [], [[[0.0, 0.0]] * 4000] * 2)
    shared = torch.tensor([0.3, 1.0], requires_grad=True)
    adam = torch.optim.Adam([shared], lr=0.05)
    for _ in range(300):
        nets.q.raw_EB2 = shared.expand(2, 4000, 2)
        loss, _ = critic.loss(nets, data, POLICY, RunNoise.seeded(1), conservative=False)
        adam.zero_grad()
        loss.backward()
        adam.step()
    q, deviation = critic.head.value(shared), critic.head.deviation(shared)
    assert q.item() == pytest.approx(reward.mean().item(), abs=0.05)
    assert deviation.item() == pytest.approx((reward.var() / 2).sqrt().item(), abs=0.03)
