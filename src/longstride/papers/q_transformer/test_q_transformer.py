"""Q-Transformer: targets by hand, the greatest value of all actions, and its fixed point where everything is known."""

import itertools

import pytest
import torch

from longstride.control import SAC, Batch, BoxPolicy, CategoricalPolicy, GaussianPolicy, Level, TDCritic
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.models.heads import BCE, Head, Scalar
from longstride.models.mlp import Trunk
from longstride.papers.q_transformer.method import CoordinateNets, CoordinateQ, GreedyByCoordinate

SMALL = Trunk(width=8, depth=1)
BOX, NOISE = BoxPolicy().make(1, 2, torch.Generator()), RunNoise.seeded(0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch(n: int = 5, coordinates: int = 3) -> Batch:
    state, action, after = (torch.randn(n, size, generator=seeded(k)) for k, size in enumerate((2, coordinates, 2)))
    discount = torch.tensor([0.9, 0.0, 0.9, 0.9, 0.0])
    return Batch(state, action, torch.rand(n, generator=seeded(3)), discount, after, torch.linspace(-1, 1, n))


def made(critic: CoordinateQ) -> CoordinateNets:
    nets = critic.make(2, 3, seeded())
    with torch.no_grad():
        for k, p in enumerate(nets.parameters()):
            p += 0.5 * torch.randn(p.shape, generator=seeded(k))
    return nets


@pytest.mark.parametrize("head", [Scalar(), BCE()], ids=["scalar", "bce"])
def test_the_loss_by_hand(head: Head) -> None:
    critic = CoordinateQ(trunk=SMALL, head=head, bins=4, ensemble=2, pull=0.3, least=-0.5, reduction="mean")
    nets, data = made(critic), batch()
    loss, metrics = critic.loss(nets, data, BOX, NOISE, conservative=True)
    number = ((data.action_BA.clamp(-1, 1) + 1) / 2 * 3).round().long()
    raw, other, after = (
        net.net(state, 2 * number / 3 - 1)
        for net, state in ((nets.q, data.state_BS), (nets.target, data.state_BS), (nets.target, data.next_state_BS))
    )
    td = pulled = torch.zeros(())
    for e, b, i in itertools.product(range(2), range(5), range(3)):
        if i < 2:
            target = head.value(other[:, b, i + 1]).mean(0).max()
        else:
            target = data.reward_B[b] + data.discount_B[b] * head.value(after[:, b, 0]).mean(0).max()
        target = max(target.item(), data.return_B[b].item())
        td = td + head.loss(raw[e, b, i, number[b, i]], torch.tensor(target)) / 15
        far = (head.value(raw[e, b, i]) + 0.5) ** 2
        pulled = pulled + (far.sum() - far[number[b, i]]) / 3 / 15
    torch.testing.assert_close(loss, td + 0.3 * pulled)
    torch.testing.assert_close(metrics["pulled"], pulled)
    torch.testing.assert_close(critic.loss(nets, data, BOX, NOISE, conservative=False)[0], td)
    parameters = list(nets.q.parameters())
    ours, theirs = (torch.autograd.grad(of, parameters, retain_graph=True) for of in (loss, td + 0.3 * pulled))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_without_a_floor_returns_are_not_read() -> None:
    critic = CoordinateQ(trunk=SMALL, bins=4, floored=False)
    nets, data = made(critic), batch()
    blind = data._replace(return_B=torch.full((5,), torch.nan))
    assert not critic.needs_returns and CoordinateQ().needs_returns
    assert critic.loss(nets, blind, BOX, NOISE, True)[0] == critic.loss(nets, data, BOX, NOISE, True)[0]


def test_the_fixed_point_is_the_reward_of_every_action_and_the_best_one_is_the_best_of_all() -> None:
    """One state, two coordinates of three bins, and the reward of each of the nine actions: what a coordinate alone is
    worth is the best that can follow, here 0.6 for the left and 1 for the right, whose other actions are bad."""
    reward = torch.tensor([[0.5, 0.6, 0.4], [0.1, 0.2, 0.3], [0.0, 1.0, -1.0]])
    every = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    action, state = every - 1.0, torch.zeros(9, 1)
    data = Batch(state, action, reward.flatten(), torch.zeros(9), state, torch.full((9,), -9.0))
    critic = CoordinateQ(trunk=Trunk(width=32, depth=2), bins=3, tau=0.3, pull=0.0)
    nets = critic.make(1, 2, seeded())
    adam = torch.optim.Adam(nets.q.parameters(), lr=1e-2)
    for _ in range(350):
        adam.zero_grad()
        critic.loss(nets, data, BOX, NOISE, True)[0].backward()
        adam.step()
        critic.after_step(nets)
    with torch.no_grad():
        torch.testing.assert_close(nets.score(state[:1], action[None])[0], reward.flatten(), atol=0.15, rtol=0)
        first = nets.q.bins(state[:1], action[:1])[0, 0, 0, :, 0]
        torch.testing.assert_close(first, reward.amax(1), atol=0.15, rtol=0)
        assert nets.best(state[:1]).tolist() == [[1, 0]]


def test_it_acts_by_the_greatest_value_and_explores_with_any_action() -> None:
    nets = made(CoordinateQ(trunk=SMALL, bins=4))
    extraction, actor = GreedyByCoordinate(epsilon=0.25), Actor(BoxPolicy().make(2, 3, seeded()))
    state = torch.randn(4000, 2, generator=seeded(9))
    best = extraction.act(actor, nets, state, NOISE, explore=False)
    assert torch.equal(best, nets.best(state))
    explored = extraction.act(actor, nets, state, RunNoise.seeded(1), explore=True)
    other = (explored != best).all(-1)
    assert other.float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert explored[other].min() < -0.95 and explored[other].max() > 0.95


def test_what_does_not_fit_is_refused() -> None:
    for parts, message in (
        ({"critic": TDCritic(), "policy": BoxPolicy()}, "reads one critic, which must be coordinate_q, not td_critic"),
        ({"critic": CoordinateQ(), "policy": CategoricalPolicy()}, "needs real-valued actions"),
        (
            {"critic": CoordinateQ(), "policy": GaussianPolicy(), "extraction": SAC()},
            "slopes, which coordinate_q has not",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Level(**{"extraction": GreedyByCoordinate()} | parts)  # pyright: ignore[reportArgumentType]
