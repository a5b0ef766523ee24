"""Networks, heads and policies: exact transforms, exact densities, and a flow that finds two modes."""

import math

import pytest
import torch
from torch.nn import functional as F

from longstride.control.noise import RunNoise
from longstride.control.policies import BinNets, BinsPolicy, FlowNets, FlowPolicy, GaussianNets, GaussianPolicy
from longstride.control.targets import best_returns, reduce_ensemble, reduce_returns, subsample
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.models.heads import BCE, Head, HLGauss, Quantiles, Scalar
from longstride.models.mlp import Trunk, polyak


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("trunk", [Trunk(width=8, depth=2), Trunk(width=4, depth=1, norm=False, activation="relu")])
def test_members_of_an_ensemble_are_independent_networks(trunk: Trunk) -> None:
    net = trunk.make(3, 2, seeded(), members=4)
    x = torch.randn(5, 3, generator=seeded(1))
    together = net(x)
    assert together.shape == (4, 5, 2)
    act = F.gelu if trunk.activation == "gelu" else F.relu
    for e in range(4):
        h = x
        for k in range(trunk.depth):
            h = act(F.linear(h, net.weights[k][e].T, net.biases[k][e, 0]))
            if trunk.norm:
                h = F.layer_norm(h, (trunk.width,), net.gains[k][e, 0], net.shifts[k][e, 0])
        torch.testing.assert_close(together[e], F.linear(h, net.weights[-1][e].T, net.biases[-1][e, 0]))
    together[1].sum().backward()
    assert all(p.grad is not None and not p.grad[[0, 2, 3]].any() for p in net.parameters())
    same = trunk.make(3, 2, seeded(), members=4)
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), same.parameters(), strict=True))


def test_frozen_networks_pass_the_gradient_to_their_inputs_alone() -> None:
    net = Trunk(width=8, depth=2).make(3, 1, seeded())
    x, y = (torch.ones(2, 3, requires_grad=True) for _ in range(2))
    net(x, frozen=True).sum().backward()
    assert x.grad is not None and all(p.grad is None for p in net.parameters())
    net(y).sum().backward()
    assert y.grad is not None
    torch.testing.assert_close(x.grad, y.grad)


def test_target_networks_move_their_share_of_the_way() -> None:
    a, b = (Trunk(width=2, depth=1).make(1, 1, seeded(k)) for k in range(2))
    before = [p.clone() for p in a.parameters()]
    polyak(a, b, 0.25)
    for was, now, to in zip(before, a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(now, 0.75 * was + 0.25 * to)


def test_ensembles_are_reduced_by_min_or_mean_and_subsets_are_drawn_from_their_members() -> None:
    q = torch.tensor([[1.0, 5.0], [3.0, 2.0], [8.0, 8.0]])
    assert reduce_ensemble(q, "min").tolist() == [1, 2] and reduce_ensemble(q, "mean").tolist() == [4, 5]
    assert subsample(q, None, RunNoise.seeded(0)) is q
    seen = {tuple(subsample(q, 2, RunNoise.seeded(k))[:, 0].tolist()) for k in range(40)}
    assert {frozenset(pair) for pair in seen} == {frozenset(p) for p in ((1, 3), (1, 8), (3, 8))}


def test_hl_gauss_by_hand() -> None:
    """Two bins on [0, 1] and a target in the middle of the first, deviation one bin."""
    head = HLGauss(low=0, high=1, bins=2, sigma=1.0)

    def phi(z: float) -> float:
        return 0.5 * (1 + math.erf(z / math.sqrt(2)))

    total = phi(1.5) - phi(-0.5)
    expected = [(phi(0.5) - phi(-0.5)) / total, (phi(1.5) - phi(0.5)) / total]
    p = head.encode(torch.tensor([0.25], dtype=torch.float64))
    assert p[0].tolist() == pytest.approx(expected, abs=1e-12)
    assert expected == pytest.approx([0.613018, 0.386982], abs=1e-6)
    assert head.decode(p).item() == pytest.approx(0.25 * expected[0] + 0.75 * expected[1], abs=1e-12)


def test_hl_gauss_reproduces_targets_that_are_far_from_its_edges() -> None:
    head = HLGauss(low=-10, high=10, bins=101)
    y = torch.linspace(-9, 9, 37, dtype=torch.float64)
    p = head.encode(y)
    torch.testing.assert_close(p.sum(-1), torch.ones_like(y))
    torch.testing.assert_close(head.decode(p), y, atol=1e-4, rtol=0)
    torch.testing.assert_close(head.value(p.log()), head.decode(p))
    beyond = head.encode(torch.tensor([11.0, -30.0]))
    torch.testing.assert_close(beyond, head.encode(torch.tensor([10.0, -10.0])))


@pytest.mark.parametrize("head", [Scalar(), BCE(), HLGauss(low=0, high=1, bins=21), Quantiles(count=5)])
def test_the_loss_of_a_head_is_least_at_the_target(head: Head) -> None:
    raw = torch.zeros(3, head.outputs, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0.2, 0.5, 0.7], dtype=torch.float64)
    step = torch.optim.LBFGS([raw], max_iter=60, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        step.zero_grad()
        loss = head.loss(raw, target).sum()
        loss.backward()
        return loss

    step.step(closure)  # pyright: ignore[reportArgumentType]
    torch.testing.assert_close(head.value(raw.detach()), target, atol=2e-3, rtol=0)
    assert (head.score(raw)[2] > head.score(raw)[0]).item()


def test_quantiles_by_hand() -> None:
    """Quantiles 1/4 and 3/4 at 0 and 4, against the returns 1 and 6 (Huber losses up to distance 2 are quadratic)."""
    head = Quantiles(count=2, kappa=2.0)
    raw = torch.tensor([0.0, 4.0], dtype=torch.float64)
    assert head.value(raw).item() == 2 and head.returns(raw).tolist() == [0, 4]
    # distances 1, 6 of the first quantile; -3, 2 of the second
    low = 0.25 * (0.5 + 2 * (6 - 1)) / 2 / 2
    high = ((1 - 0.75) * 2 * (3 - 1) + 0.75 * 2) / 2 / 2
    assert head.loss_of_returns(raw, torch.tensor([1.0, 6.0], dtype=torch.float64)).item() == pytest.approx(low + high)


def test_quantiles_become_those_of_the_returns() -> None:
    returns = torch.linspace(0, 10, 101)
    raw = torch.zeros(4, requires_grad=True)
    optimiser = torch.optim.SGD([raw], lr=1.0)
    head = Quantiles(count=4, kappa=0.01)
    for _ in range(100):
        optimiser.zero_grad()
        head.loss_of_returns(raw, returns).backward()
        optimiser.step()
    torch.testing.assert_close(raw.detach(), torch.tensor([1.25, 3.75, 6.25, 8.75]), atol=0.1, rtol=0)


def test_a_head_of_values_is_moved_toward_the_mean_of_returns() -> None:
    raw, returns = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0, 4.0], [2.0, 2.0]])
    assert Scalar().loss_of_returns(raw, returns).tolist() == [1, 0]
    assert Scalar().returns(raw).tolist() == [[1], [2]]


def test_distributions_are_reduced_and_chosen_by_their_means() -> None:
    returns = torch.tensor([[[[0.0, 6.0], [5.0, 1.0]]], [[[4.0, 4.0], [1.0, 1.0]]]])  # two members, two actions
    assert reduce_returns(returns, "min").tolist() == [[[0, 6], [1, 1]]]
    assert reduce_returns(returns, "mean").tolist() == [[[2, 5], [3, 1]]]
    assert best_returns(reduce_returns(returns, "min")).tolist() == [[0, 6]]
    values = torch.randn(3, 5, 4, generator=seeded())
    for reduction in ("min", "mean"):
        alike = reduce_returns(values[..., None], reduction)
        assert torch.equal(alike[..., 0], reduce_ensemble(values, reduction))
        assert torch.equal(best_returns(alike)[:, 0], alike[..., 0].amax(1))


def test_a_head_without_a_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="high must be above low"):
        build(Head, {"type": "hl_gauss", "low": 1.0, "high": 1.0})


def gaussian(seed: int = 0) -> GaussianNets:
    policy = GaussianPolicy(trunk=Trunk(width=8, depth=1)).make(3, 2, seeded(seed))
    with torch.no_grad():
        for p in policy.parameters():
            p += 0.3 * torch.randn(p.shape, generator=seeded(seed + 1))
    return policy


def test_densities_of_squashed_gaussians_are_those_of_torch() -> None:
    policy, state = gaussian().double(), torch.randn(7, 3, generator=seeded(2)).double()
    action_BKA, log_BK = policy.sample_with_density(state, RunNoise.seeded(3), 5)
    assert action_BKA.shape == (7, 5, 2) and (action_BKA.abs() < 1).all()
    mean, log_std = policy.moments(state)
    reference = torch.distributions.TransformedDistribution(
        torch.distributions.Normal(mean[:, None], log_std[:, None].exp()),
        [torch.distributions.TanhTransform(cache_size=1)],
    )
    torch.testing.assert_close(log_BK, reference.log_prob(action_BKA).sum(-1), atol=1e-6, rtol=0)
    torch.testing.assert_close(policy.log_density(state, action_BKA[:, 0]), log_BK[:, 0], atol=1e-6, rtol=0)
    torch.testing.assert_close(policy.greedy(state, RunNoise.seeded(0)), mean.tanh())
    assert torch.equal(policy.sample(state, RunNoise.seeded(3), 5), action_BKA)


def test_a_density_of_an_action_integrates_to_one() -> None:
    policy = GaussianPolicy(trunk=Trunk(width=4, depth=1)).make(1, 1, seeded())
    grid = torch.linspace(-0.99995, 0.99995, 40_001)[:, None]
    density = policy.log_density(torch.zeros(len(grid), 1), grid).exp()
    assert torch.trapezoid(density, grid[:, 0]).item() == pytest.approx(1, abs=2e-3)


def test_a_flow_moves_noise_along_its_velocity() -> None:
    policy = FlowPolicy(trunk=Trunk(width=4, depth=1), steps=4).make(1, 2, seeded())
    assert isinstance(policy, FlowNets)
    policy.velocity = lambda state, x, time: 2 * time + x  # pyright: ignore[reportAttributeAccessIssue]
    x, expected = torch.ones(1, 2), 1.0
    for k in range(4):
        expected += (2 * k / 4 + expected) / 4
    torch.testing.assert_close(policy.integrate(torch.zeros(1, 1), x), torch.full((1, 2), expected))


def test_a_flow_learns_both_modes_of_what_it_imitates() -> None:
    """Actions are near -1 or near 1, a third of them near 1 where the state is 0 and all of them where it is 1."""
    config = FlowPolicy(trunk=Trunk(width=32, depth=2), steps=10)
    policy = config.make(1, 1, seeded())
    step, noise = torch.optim.Adam(policy.parameters(), lr=5e-3), seeded(1)
    for _ in range(250):
        state = (torch.rand(128, 1, generator=noise) < 0.5).float()
        right = (torch.rand(128, 1, generator=noise) < 1 / 3) | (state > 0)
        action = 2 * right.float() - 1 + 0.1 * torch.randn(128, 1, generator=noise)
        loss = policy.imitation_loss(state, action, RunNoise(noise)).mean()
        step.zero_grad()
        loss.backward()
        step.step()
    with torch.no_grad():
        drawn = policy.sample(torch.tensor([[0.0], [1.0]]), RunNoise.seeded(2), 1000)[..., 0]
    near = (drawn.abs() - 1).abs() < 0.35
    assert near.float().mean(1).min() > 0.9
    assert (drawn[0] > 0).float().mean().item() == pytest.approx(1 / 3, abs=0.08)
    assert (drawn[1] > 0).float().mean().item() > 0.95


def test_bins_reach_from_border_to_border_and_a_coordinate_knows_only_those_before_it() -> None:
    net = BinNets(Trunk(width=8, depth=1), (2, 3), 5, 2, seeded(), members=4)
    assert net.place(torch.arange(5)).tolist() == [-1, -0.5, 0, 0.5, 1]
    assert net.number(torch.tensor([[-3.0, -0.76, 0.2], [0.26, 0.74, 2.0]])).tolist() == [[0, 0, 2], [3, 3, 4]]
    state, action = torch.randn(6, 2, generator=seeded(1)), torch.rand(6, 3, generator=seeded(2))
    raw = net(state, action)
    assert raw.shape == (4, 6, 3, 5, 2)
    for k in range(3):
        other = action.clone()
        other[:, k] = -action[:, k]
        same = (net(state, other) == raw).all((0, 1, 3, 4))
        assert same.tolist() == [j <= k for j in range(3)]


def test_bins_learn_how_coordinates_go_together_and_their_loss_is_that_of_the_whole_action() -> None:
    """The data are (-1, -1) and (1, 1), equally often; coordinates apart would give all four corners."""
    policy = BinsPolicy(trunk=Trunk(width=16, depth=1), bins=3).make(1, 2, seeded())
    noise, state = RunNoise.seeded(0), torch.zeros(32, 1)
    action = torch.tensor([[-1.0, -1.0], [1.0, 1.0]]).repeat(16, 1)
    adam = torch.optim.Adam(policy.parameters(), lr=0.03)
    for _ in range(80):
        adam.zero_grad()
        policy.imitation_loss(state, action, noise).mean().backward()
        adam.step()
    with torch.no_grad():
        assert policy.imitation_loss(state, action, noise).mean().item() == pytest.approx(math.log(2), abs=0.05)
        drawn = policy.sample(torch.zeros(1, 1), noise, 400)[0]
        assert ((drawn[:, 0] == drawn[:, 1]) & (drawn[:, 0] != 0)).float().mean() > 0.95
        assert drawn.mean(0).abs().max() < 0.15
        # of all whole actions together the probability is 1
        every = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0])] * 2)
        total = (-policy.imitation_loss(torch.zeros(9, 1), every, noise)).exp().sum()
        assert total.item() == pytest.approx(1, abs=1e-5)
        assert abs(policy.greedy(torch.zeros(1, 1), noise)).tolist() == [[1, 1]]
