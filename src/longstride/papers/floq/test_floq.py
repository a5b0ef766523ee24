"""floq: the loss by hand, integration against a field whose answer is known, and values in a world of the test's own."""

import math

import pytest
import torch
from aiming import Aiming, off_after
from torch import Tensor

from longstride import papers
from longstride.control import Batch, GaussianPolicy
from longstride.control.noise import RunNoise
from longstride.models.heads import HLGauss
from longstride.models.mlp import Trunk
from longstride.papers.floq.method import Field, FlowReturns

SMALL = Trunk(width=4, depth=1)
SEEN = HLGauss(low=-2.0, high=1.0, bins=6, sigma=2.0)
POLICY = GaussianPolicy(trunk=SMALL).make(2, 1, torch.Generator())


class Toward(Field):
    """The straight way to 3: v(x, t) = (3 - x) / (1 - t)."""

    def velocity(self, state_BS: Tensor, action_BA: Tensor, number_EB: Tensor, time_B: Tensor) -> Tensor:
        return (3 - number_EB) / (1 - time_B)


def test_a_straight_field_is_integrated_exactly_by_any_number_of_steps() -> None:
    for steps in (1, 4):
        field = Toward(SEEN, SMALL.make(1, 1, torch.Generator()), steps)
        start = torch.tensor([[0.0, -5.0], [1.0, 3.0]])
        torch.testing.assert_close(field.carried(torch.zeros(2, 2), torch.zeros(2, 1), start), torch.full((2, 2), 3.0))


@pytest.mark.parametrize("reduction", ["mean", "min"])
def test_the_loss_by_hand(reduction: str) -> None:
    critic = FlowReturns.model_validate(
        {"trunk": SMALL, "seen": SEEN, "noises": 3, "steps": 2, "coverage": 0.5, "reduction": reduction}
    )
    nets = critic.make(2, 1, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in nets.target.parameters():
            p += 0.3 * torch.randn(p.shape, generator=generator)
    state, action = torch.randn(2, 2, generator=generator), torch.rand(2, 1, generator=generator)
    batch = Batch(state, action, torch.tensor([0.3, -0.4]), torch.tensor([0.9, 0.0]), state + 1, state[:, 0])
    loss, metrics = critic.loss(nets, batch, POLICY, RunNoise.seeded(4), conservative=False)

    noise = RunNoise.seeded(4)
    starts, next_starts = ([0.5 * (-2 + 3 * u) for u in noise.uniform(6).tolist()] for _ in range(2))
    times = noise.uniform(6).tolist()
    next_actions = POLICY.sample(batch.next_state_BS, noise, 3)

    def v(field: Field, member: int, s: Tensor, a: Tensor, x: float, t: float) -> Tensor:
        given = torch.cat((s, a, torch.tensor([math.cos(t)]), SEEN.encode(torch.tensor(x))))
        return field.net(given[None])[member, 0, 0]

    def carried(field: Field, member: int, s: Tensor, a: Tensor, x: float) -> float:
        for t in (0.0, 0.5):
            x += v(field, member, s, a, x, t).item() / 2
        return x

    reduce = min if reduction == "min" else lambda of: sum(of) / 2
    expected, td = torch.zeros(()), 0.0
    for b in range(2):
        after = [
            reduce(
                [
                    carried(nets.target, e, batch.next_state_BS[b], next_actions[b, k], next_starts[3 * b + k])
                    for e in (0, 1)
                ]
            )
            for k in range(3)
        ]
        y = batch.reward_B[b].item() + batch.discount_B[b].item() * sum(after) / 3
        now = [carried(nets.field, e, state[b], action[b], starts[3 * b + k]) for e in (0, 1) for k in range(3)]
        q = sum(now) / 6
        td += (q - y) ** 2 / 2
        for e in (0, 1):
            for k in range(3 * b, 3 * b + 3):
                x = (1 - times[k]) * starts[k] + times[k] * y
                expected = expected + (v(nets.field, e, state[b], action[b], x, times[k]) - (y - starts[k])) ** 2 / 2
            plain = nets.q.net(torch.cat((state[b], action[b]))[None])[e, 0, 0]
            expected = expected + (plain - q) ** 2 / 2
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4) and metrics["td_error"].item() == pytest.approx(
        td, rel=1e-4
    )
    learned = [*nets.field.parameters(), *nets.q.parameters()]
    for ours, theirs in zip(torch.autograd.grad(loss, learned), torch.autograd.grad(expected, learned), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-3)


def test_values_are_those_of_the_rewards_and_the_policy_aims() -> None:
    seen = HLGauss(low=-4.0, high=1.0, bins=20, sigma=4.0)
    off, learner = off_after(papers.load("floq"), Aiming(noise=0.3), updates=120, seen=seen)
    assert off < 0.25
    nets = learner.levels[0].critic
    assert nets is not None
    earned = nets.score(torch.tensor([[-0.5], [0.5]]), torch.tensor([[0.5], [0.5]]))
    assert earned.tolist() == pytest.approx([-1.0, 0.0], abs=0.35)
