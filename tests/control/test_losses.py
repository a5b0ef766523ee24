"""Losses of critics and policies: by hand, and against d3rlpy's CQL and Cal-QL."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from longstride.control import (
    AWR,
    SAC,
    TD3,
    Batch,
    BehaviourCloning,
    BestOfN,
    Conservative,
    DeterministicPolicy,
    Expectile,
    ImplicitQ,
    ImplicitV,
    Level,
    NormalPolicy,
    QCritic,
    QNets,
    TDCritic,
    WeightedCritics,
)
from longstride.control.conservative import calibrate, gap
from longstride.control.critics import CriticNets, QEnsemble
from longstride.control.implicit import ImplicitNets
from longstride.control.noise import RunNoise
from longstride.control.policies import (
    DeterministicNets,
    FlowPolicy,
    GaussianNets,
    GaussianPolicy,
    NormalNets,
    PolicyNets,
)
from longstride.models.heads import BCE, Scalar
from longstride.models.mlp import MLP, Trunk
from longstride.papers.sharsa.method import Sarsa

SMALL = Trunk(width=8, depth=2)
FIXTURE = Path(__file__).parents[1] / "data" / "conservative" / "losses.npz"


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def noise(seed: int = 0) -> RunNoise:
    return RunNoise.seeded(seed)


def batch(n: int = 6, state: int = 3, action: int = 2) -> Batch:
    g = seeded(7)
    return Batch(
        torch.randn(n, state, generator=g), torch.rand(n, action, generator=g) * 1.8 - 0.9,
        torch.rand(n, generator=g), 0.9 * (torch.arange(n) % 2), torch.randn(n, state, generator=g),
        torch.randn(n, generator=g),
    )  # fmt: skip


def test_the_gap_by_hand() -> None:
    """One state, actions of values 1 and 3 that were drawn with densities 1/2 and 1/4, 2 for the data's."""
    q, log_density = torch.tensor([[[1.0, 3.0]]]), torch.tensor([[0.5, 0.25]]).log()
    expected = math.log(math.e * 2 + math.exp(3) * 4) - 2
    assert gap(q, log_density, torch.tensor([[2.0]])).item() == pytest.approx(expected, rel=1e-6)
    cold = 0.5 * math.log(math.exp(2) * 4 + math.exp(6) * 16) - 2  # T logsumexp((Q - log density) / T), T = 1/2
    half = gap(q, log_density, torch.tensor([[2.0]]), temperature=0.5)
    assert half.item() == pytest.approx(cold, rel=1e-6)


def test_calibration_raises_the_values_of_the_policys_actions_alone() -> None:
    q = torch.tensor([[[0.0, 5.0, 0.0, 5.0], [0.0, 5.0, 0.0, 5.0]]], requires_grad=True)
    lifted = calibrate(q, torch.tensor([3.0, -9.0]), uniform=2)
    assert lifted.tolist() == [[[0, 5, 3, 5], [0, 5, 0, 5]]]
    lifted.sum().backward()
    assert q.grad is not None and q.grad.tolist() == [[[1, 1, 0, 1], [1, 1, 1, 1]]]


def test_calibration_by_returns_below_all_values_changes_nothing() -> None:
    q = torch.randn(2, 3, 9, generator=seeded())
    assert torch.equal(calibrate(q, torch.full((3,), -torch.inf), uniform=3), q)


def test_candidates_are_a_third_uniform_and_come_with_their_densities() -> None:
    policy, data = GaussianPolicy(trunk=SMALL).make(3, 2, seeded()), batch()
    assert isinstance(policy, GaussianNets)
    action, log_density = Conservative(actions=4).candidates(data, policy, noise(1))
    assert action.shape == (6, 12, 2) and not action.requires_grad
    torch.testing.assert_close(log_density[:, :4], torch.full((6, 4), math.log(0.25)))
    for states, columns in ((data.state_BS, slice(4, 8)), (data.next_state_BS, slice(8, 12))):
        for k in range(4):
            found = policy.log_density(states, action[:, columns][:, k])
            torch.testing.assert_close(found, log_density[:, columns][:, k], atol=1e-3, rtol=1e-3)


def of_d3rlpy(data: dict[str, np.ndarray], kind: str) -> QEnsemble:
    """d3rlpy's two critics as an ensemble: (linear, ReLU) twice and a linear layer."""
    net = Trunk(width=8, depth=2, norm=False, activation="relu").make(5, 1, seeded(), members=2)
    with torch.no_grad():
        for layer in range(3):
            for member in range(2):
                net.weights[layer][member] = torch.from_numpy(data[f"{kind}_{member}_{2 * layer}"]).T
                net.biases[layer][member, 0] = torch.from_numpy(data[f"{kind}_{member}_{2 * layer + 1}"])
    return QEnsemble(Scalar(), net)


class Recorded(GaussianNets):
    """Returns the actions that d3rlpy's policy drew."""

    def __init__(self, draws: list[tuple[Tensor, Tensor]]) -> None:
        super().__init__(GaussianPolicy(trunk=SMALL), 3, 2, seeded())
        self.draws = draws

    def sample_with_density(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> tuple[Tensor, Tensor]:
        return self.draws.pop(0)


@pytest.mark.parametrize("name", ["cql", "calql"])
def test_losses_equal_those_of_d3rlpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with np.load(FIXTURE) as file:
        data = {k.removeprefix(f"{name}_"): v for k, v in file.items() if k.startswith(f"{name}_")}

    def tensor(key: str) -> Tensor:
        return torch.from_numpy(data[key])

    conservative = Conservative(weight=5.0, actions=4, calibrated=name == "calql")
    critic = TDCritic(best_of=4, conservative=conservative)
    nets = QNets(critic, of_d3rlpy(data, "q"), of_d3rlpy(data, "q"), None)
    nets.target.load_state_dict(of_d3rlpy(data, "target").state_dict())
    discount = 0.97 * (1 - tensor("terminal"))
    given = Batch(
        tensor("state"), tensor("action"), tensor("reward"), discount, tensor("next_state"), tensor("return")
    )  # fmt: skip
    draws = [(tensor("backup_actions"), torch.empty(0))]
    draws += [(tensor(f"{where}_actions"), tensor(f"{where}_log_density")) for where in ("here", "next")]
    uniform = (tensor("uniform_actions") + 1) / 2
    monkeypatch.setattr(RunNoise, "uniform", lambda self, *shape: uniform)
    loss, metrics = critic.loss(nets, given, Recorded(draws), noise(), conservative=True)
    assert metrics["q_loss"].item() == pytest.approx(data["td"].item(), rel=1e-5)
    assert (loss - metrics["q_loss"]).item() == pytest.approx(data["conservative"].item(), rel=1e-5)
    assert 2 * 5 * metrics["gap"].item() == pytest.approx(data["conservative"].item(), rel=1e-5)


def test_the_fixture_tells_cql_from_cal_ql() -> None:
    with np.load(FIXTURE) as file:
        assert file["calql_conservative"] > file["cql_conservative"] + 0.1


def made(critic: QCritic) -> tuple[QNets, Batch]:
    nets = critic.make(3, 2, seeded())
    with torch.no_grad():
        for p in nets.target.parameters():
            p += 0.1 * torch.randn(p.shape, generator=seeded(5))
    return nets, batch()


@pytest.mark.parametrize("reduction", ["min", "mean"])
def test_sarsa_by_hand(reduction: str) -> None:
    nets, data = made(
        critic := Sarsa.model_validate({"trunk": SMALL, "head": BCE(), "ensemble": 3, "reduction": reduction})
    )
    assert nets.v is not None
    policy = FlowPolicy(trunk=SMALL).make(3, 2, seeded())
    data = data._replace(reward_B=0.1 * data.reward_B)  # targets are probabilities
    loss, _ = critic.loss(nets, data, policy, noise(), conservative=True)
    entropy = torch.nn.functional.binary_cross_entropy
    target_EB = nets.target.raw(data.state_BS, data.action_BA)[..., 0].sigmoid()
    to_v = target_EB.min(0).values if reduction == "min" else target_EB.mean(0)
    to_q = data.reward_B + data.discount_B * nets.v(data.next_state_BS)[0, :, 0].sigmoid()
    of_v = entropy(nets.v(data.state_BS)[0, :, 0].sigmoid(), to_v.detach())
    of_q = sum(entropy(q.sigmoid(), to_q.detach()) for q in nets.q.raw(data.state_BS, data.action_BA)[..., 0])
    torch.testing.assert_close(loss, of_v + of_q)
    parameters = [*nets.q.parameters(), *nets.v.parameters()]
    theirs = torch.autograd.grad(loss, parameters)
    torch.testing.assert_close(theirs, torch.autograd.grad(of_v + of_q, parameters), atol=1e-5, rtol=1e-4)


def test_the_loss_of_a_terminated_transition_ignores_the_next_state() -> None:
    critics: list[Any] = [Sarsa(trunk=SMALL, head=BCE()), TDCritic(trunk=SMALL), ImplicitQ(trunk=SMALL)]
    for critic in critics:
        nets, data = made(critic)
        policy = GaussianPolicy(trunk=SMALL).make(3, 2, seeded())
        elsewhere = torch.where(data.discount_B[:, None] == 0, 50.0, data.next_state_BS)
        same, moved = (
            critic.loss(nets, d, policy, noise(), True)[0] for d in (data, data._replace(next_state_BS=elsewhere))
        )
        torch.testing.assert_close(same, moved)
        beyond = torch.where(data.discount_B[:, None] == 0, data.next_state_BS, 50.0)
        assert critic.loss(nets, data._replace(next_state_BS=beyond), policy, noise(), True)[0] != same


def test_without_importance_all_values_count_alike_and_any_policy_serves() -> None:
    critic = TDCritic(trunk=SMALL, conservative=Conservative(actions=2, importance=False, weight=3.0, temperature=0.5))
    nets, data = made(critic)
    policy = FlowPolicy(trunk=SMALL).make(3, 2, seeded())
    assert critic.conservative is not None
    action_BKA, _ = critic.conservative.candidates(data, policy, noise(4))
    assert action_BKA.shape == (6, 6, 2)
    q_EB = nets.q.value(data.state_BS, data.action_BA)
    theirs = critic.conservative(nets.q.value, q_EB, data, policy, noise(4))
    every = torch.cat((nets.q.value(data.state_BS, action_BKA), q_EB[..., None]), -1)
    torch.testing.assert_close(theirs, 0.5 * (every / 0.5).logsumexp(-1) - q_EB)
    assert (theirs > 0).all()  # the data's action is among them


def test_a_critic_that_is_not_conservative_in_an_update_has_the_loss_of_a_plain_one() -> None:
    plain, strict = TDCritic(trunk=SMALL), TDCritic(trunk=SMALL, conservative=Conservative(actions=2))
    nets, data = made(plain)
    policy = GaussianPolicy(trunk=SMALL).make(3, 2, seeded())
    losses = [c.loss(nets, data, policy, noise(), on)[0].item() for c, on in ((plain, True), (strict, False))]
    assert losses[0] == losses[1] != strict.loss(nets, data, policy, noise(), True)[0].item()


def test_targets_are_clamped_to_their_range_and_the_best_of_many_is_higher_than_one() -> None:
    data, policy = batch(), GaussianPolicy(trunk=SMALL).make(3, 2, seeded())
    nets, _ = made(TDCritic(trunk=SMALL))
    one, best, cut = (
        c.loss(nets, data, policy, noise(), True)[1]["q_target"].item()
        for c in (
            TDCritic(trunk=SMALL), TDCritic(trunk=SMALL, best_of=50), TDCritic(trunk=SMALL, target_range=(0.0, 0.0)),
        )
    )  # fmt: skip
    assert best > one and cut == 0.0


def test_a_loss_gives_gradients_to_its_own_networks_alone() -> None:
    critic = TDCritic(trunk=SMALL, conservative=Conservative(actions=2))
    nets, data = made(critic)
    policy = GaussianPolicy(trunk=SMALL).make(3, 2, seeded())
    critic.loss(nets, data, policy, noise(), True)[0].backward()
    assert all(p.grad is None for p in [*policy.parameters(), *nets.target.parameters()])
    assert all(p.grad is not None for p in nets.q.parameters())
    for extraction in (SAC(), BehaviourCloning(), AWR()):
        nets.zero_grad()
        actor = extraction.make(policy)
        extraction.loss(actor, nets, data, noise())[0].backward()
        assert all(p.grad is None for p in nets.parameters()), extraction
        assert all(p.grad is not None for p in actor.parameters()), extraction


class Slope(QEnsemble):
    """Two critics whose value is the action's first coordinate, and twice it."""

    def __init__(self) -> None:
        super().__init__(Scalar(), SMALL.make(5, 1, seeded()))

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        return torch.stack((action[..., :1], 2 * action[..., :1]))


def sloped(critic: QCritic) -> QNets:
    return QNets(critic, Slope(), Slope(), None)


def test_sac_by_hand() -> None:
    nets, data = sloped(TDCritic(trunk=SMALL)), batch()
    actor = (sac := SAC(alpha=0.5, target_entropy=-0.5)).make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    assert isinstance(actor.policy, GaussianNets) and actor.log_temperature is not None
    with torch.no_grad():
        actor.log_temperature.fill_(-1.0)
    loss, _ = sac.loss(actor, nets, data, noise(1))
    action, log_density = (t[:, 0].detach() for t in actor.policy.sample_with_density(data.state_BS, noise(1)))
    q = torch.minimum(action[:, 0], 2 * action[:, 0])
    away = ((action - data.action_BA) ** 2).sum(1).mean()
    expected = (math.exp(-1) * log_density - q).mean() + 0.5 * q.abs().mean() * away
    expected += 1.0 * (log_density.mean() + 2 * -0.5)  # -log temperature * (log pi + target)
    torch.testing.assert_close(loss, expected)


def test_a_soft_target_has_the_entropy_of_the_next_action_at_the_temperature_of_now() -> None:
    critic = TDCritic(trunk=SMALL)
    nets, data = made(critic)
    actor = SAC(soft=True, temperature=0.3).make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    assert isinstance(actor.policy, GaussianNets)
    action, log_density = (t[:, 0] for t in actor.policy.sample_with_density(data.next_state_BS, noise()))
    value = nets.target.value(data.next_state_BS, action).min(0).values
    expected = data.reward_B + data.discount_B * (value - 0.3 * log_density)
    torch.testing.assert_close(critic.target(nets, data, actor.valued, noise())[:, 0], expected)
    loss, _ = critic.loss(nets, data, actor.valued, noise(), True)
    assert all(g is None for g in torch.autograd.grad(loss, [*actor.parameters()], allow_unused=True))


def test_a_soft_policy_beside_a_critic_that_values_no_entropy_is_refused() -> None:
    Level(critic=TDCritic(), policy=GaussianPolicy(), extraction=SAC(soft=True))
    with pytest.raises(ValueError, match="sarsa does not value entropy"):
        Level(critic=Sarsa(), policy=GaussianPolicy(), extraction=SAC(soft=True))


def test_actions_of_a_soft_policy_have_their_densities_in_a_conservative_gap() -> None:
    data, actor = batch(), SAC(soft=True).make(GaussianPolicy(trunk=SMALL).make(3, 2, seeded()))
    soft, plain = (Conservative(actions=2).candidates(data, of, noise()) for of in (actor.valued, actor.policy))
    torch.testing.assert_close(soft, plain)


def test_best_of_n_takes_the_best_of_what_the_policy_proposes() -> None:
    nets, states = sloped(Sarsa(trunk=SMALL)), batch().state_BS
    policy = FlowPolicy(trunk=SMALL).make(3, 2, seeded())
    best = BestOfN(samples=9)
    taken = best.act(best.make(policy), nets, states, noise(1), explore=False)
    proposed = policy.sample(states, noise(1), 9)
    expected = torch.stack([row[torch.minimum(row[:, 0], 2 * row[:, 0]).argmax()] for row in proposed])
    torch.testing.assert_close(taken, expected)


def constant(net: MLP, *value: float) -> None:
    """A network that answers with these numbers, one a member, whatever it is asked."""
    with torch.no_grad():
        for p in net.parameters():
            p.zero_()
        net.biases[-1].copy_(torch.tensor(value)[:, None, None])


def steps(actions: list[list[float]]) -> Batch:
    """Transitions of reward 1, of which the first ends."""
    n = len(actions)
    discount = torch.tensor([0.0, *[0.5] * (n - 1)])
    return Batch(torch.zeros(n, 3), torch.tensor(actions), torch.ones(n), discount, torch.ones(n, 3), torch.zeros(n))


def test_expectiles_by_hand() -> None:
    """Q is 1 and 3 above and 2 below V: weights 0.9, 0.9 and 0.1; at one half the mean square, halved."""
    ahead = torch.tensor([1.0, 3.0, -2.0])
    np.testing.assert_allclose(Expectile(expectile=0.9)(ahead), [0.9, 8.1, 0.4], rtol=1e-6)
    np.testing.assert_allclose(Expectile(expectile=0.5)(ahead), [0.5, 4.5, 2], rtol=1e-6)


def test_iql_by_hand() -> None:
    """V is 2; Q 1 and 4, of the target networks 5 and 3, of which the least counts: 1 above V."""
    nets = (critic := ImplicitQ(trunk=SMALL, maximiser=Expectile(expectile=0.9))).make(3, 2, seeded())
    assert isinstance(nets, ImplicitNets) and nets.v is not None
    for net, value in ((nets.q.net, (1.0, 4.0)), (nets.target.net, (5.0, 3.0)), (nets.v, (2.0,))):
        constant(net, *value)
    data, policy = steps([[0.0, 0.0], [0.5, 0.0]]), NormalPolicy(trunk=SMALL).make(3, 2, seeded())
    loss, metrics = critic.loss(nets, data, policy, noise(), True)
    # targets of Q are 1 where the task ended and 1 + 0.5 * 2 elsewhere
    assert metrics["v_loss"].item() == pytest.approx(0.9)
    assert metrics["q_loss"].item() == pytest.approx((0 + 1) / 2 + (9 + 4) / 2)
    assert loss.item() == pytest.approx(metrics["v_loss"].item() + metrics["q_loss"].item())
    loss.backward()
    assert nets.v.biases[-1].grad.item() == pytest.approx(-2 * 0.9)  # pyright: ignore[reportOptionalMemberAccess]
    assert nets.advantage(data, policy, noise()).tolist() == [1, 1]


def test_values_without_actions_by_hand() -> None:
    """V is 1 and 5, of the target networks 2 and 4. A step counts by how the least value after it compares with the
    mean before it, 3: two that earn 1 (one of them the last) come to less, one that earns 9 to more."""
    nets = (critic := ImplicitV(trunk=SMALL, maximiser=Expectile(expectile=0.9))).make(3, 2, seeded())
    constant(nets.v, 1.0, 5.0)
    constant(nets.target, 2.0, 4.0)
    data = steps([[0.0], [0.0], [0.0]])._replace(reward_B=torch.tensor([1.0, 1.0, 9.0]))
    policy = NormalPolicy(trunk=SMALL).make(3, 1, seeded())
    loss, _ = critic.loss(nets, data, policy, noise(), True)
    # toward (1, 1), (1 + 0.5 * 2, 1 + 0.5 * 4) and (10, 11)
    assert loss.item() == pytest.approx((0.1 * (0 + 16) + 0.1 * (1 + 4) + 0.9 * (81 + 36)) / 3)
    loss.backward()
    assert all(p.grad is None for p in nets.target.parameters())
    fresh = critic.make(3, 2, seeded())
    gained = (fresh.v(data.next_state_BS) - fresh.v(data.state_BS))[..., 0].mean(0)
    torch.testing.assert_close(fresh.advantage(data, policy, noise()), gained)


class Better(CriticNets):
    """Says of three actions that they are so much better."""

    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        return torch.tensor([0.0, math.log(2), math.log(8)])


@pytest.mark.parametrize(("largest", "weights"), [(3.0, (1, 2, 3)), (None, (3 / 11, 6 / 11, 24 / 11))])
def test_actions_are_imitated_as_far_as_they_are_better(
    largest: float | None, weights: tuple[float, float, float]
) -> None:
    """Weights 1, 2 and 8, cut at 3 or divided by their mean; a standard normal density around 0."""
    awr, data = AWR(largest=largest), steps([[0.0, 0.0], [1.0, 0.0], [1.0, -1.0]])
    actor = awr.make(NormalPolicy(trunk=SMALL).make(3, 2, seeded()))
    assert isinstance(actor.policy, NormalNets)
    constant(actor.policy.net, 0.0)
    loss, metrics = awr.loss(actor, Better(), data, noise())
    imitation = [math.log(2 * math.pi) + square / 2 for square in (0, 1, 2)]
    assert loss.item() == pytest.approx(np.mean([w * i for w, i in zip(weights, imitation, strict=True)]), rel=1e-6)
    assert metrics["used"].item() == pytest.approx(sum(weights) ** 2 / (3 * sum(w * w for w in weights)), rel=1e-6)


def test_the_advantage_over_what_the_policy_does() -> None:
    """The value is the first coordinate, of the least critic; the policy always does 0.5."""
    nets, policy = sloped(TDCritic(trunk=SMALL)), DeterministicPolicy(trunk=SMALL, noise=0.0).make(3, 2, seeded())
    assert isinstance(policy, DeterministicNets)
    constant(policy.net, math.atanh(0.5))
    with torch.no_grad():
        policy.net.biases[-1][..., 1] = 0
    data = steps([[0.75, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(nets.advantage(data, policy, noise()), [0.25, -2.5], rtol=1e-6)
    both = WeightedCritics({"critic": nets, "further": nets}, {"critic": 1.0, "further": 2.0})
    np.testing.assert_allclose(both.advantage(data, policy, noise()), [0.75, -7.5], rtol=1e-6)


def test_td3_by_hand() -> None:
    """The policy does tanh 1, the target network 0.5 and noise of at most 0.25; values are the first coordinate."""
    nets, td3 = sloped(TDCritic(trunk=SMALL, followed="first")), TD3(smoothing_clip=0.25, tau=0.1)
    actor = td3.make(DeterministicPolicy(trunk=SMALL).make(3, 1, seeded()))
    assert isinstance(actor.policy, DeterministicNets) and isinstance(actor.valued, DeterministicNets)
    constant(actor.policy.net, 1.0)
    constant(actor.valued.net, math.atanh(0.5))
    data = steps([[0.0], [1.0]])
    assert td3.loss(actor, nets, data, noise())[0].item() == pytest.approx(-math.tanh(1))
    # divided by its mean size the value is 1
    imitating = td3.replace(q_weight=2.5).loss(actor, nets, data, noise())[0].item()
    assert imitating == pytest.approx((math.tanh(1) ** 2 + (1 - math.tanh(1)) ** 2) / 2 - 2.5)
    drawn = actor.valued.sample(torch.zeros(1000, 3), noise())
    assert drawn.min() == 0.25 and drawn.max() == 0.75 and drawn.std() == pytest.approx(0.2, abs=0.05)
    td3.after_step(actor)
    assert actor.valued.net.biases[-1].item() == pytest.approx(0.9 * math.atanh(0.5) + 0.1)
    assert not any(p.requires_grad for p in actor.valued.parameters())
