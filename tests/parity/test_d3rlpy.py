"""Losses of control against those of d3rlpy on the same batch (an independent implementation; skips without it).

d3rlpy's behaviour cloning of a stochastic policy is the squared error of a sample, not a likelihood, so densities are
compared instead.
"""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from longstride.control import (
    AWR,
    DQN,
    SAC,
    TD3,
    Batch,
    DeterministicPolicy,
    GaussianPolicy,
    ImplicitQ,
    NormalPolicy,
    TDCritic,
    UniformPolicy,
)
from longstride.control.conservative import calibrate, gap
from longstride.control.critics import DiscreteQ, QEnsemble, QNets
from longstride.control.implicit import ImplicitNets
from longstride.control.noise import RunNoise
from longstride.control.policies import DeterministicNets, GaussianNets, NormalNets
from longstride.models.mlp import Trunk

pytest.importorskip("d3rlpy", reason="compares with d3rlpy: make parity")
cql_impl, cal_ql_impl, dqn_impl, sac_impl, td3_impl, td3_plus_bc_impl, iql_impl, awac_impl = (
    pytest.importorskip(f"d3rlpy.algos.qlearning.torch.{name}_impl")
    for name in ("cql", "cal_ql", "dqn", "sac", "td3", "td3_plus_bc", "iql", "awac")
)
q_functions = pytest.importorskip("d3rlpy.models.torch.q_functions")
distributions = pytest.importorskip("d3rlpy.models.torch.distributions")

E, B, K, A, S = 2, 16, 5, 3, 4
TRUNK = Trunk(width=8, depth=1)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("calibrated", [False, True])
def test_the_conservative_gap_is_that_of_cql_and_of_cal_ql(calibrated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uniform, here, after = (normal(E, B, K, seed=k) for k in range(3))
    density_here, density_after = (-normal(B, K, seed=k).abs() for k in (3, 4))
    data, returns = normal(E, B, seed=5), normal(B, seed=6)
    theirs: Any = object.__new__(cal_ql_impl.CalQLImpl if calibrated else cql_impl.CQLImpl)
    sampled = iter([(here, density_here[None]), (after, density_after[None])])
    monkeypatch.setattr(cql_impl, "sample_q_values_with_policy", lambda **_: next(sampled))
    monkeypatch.setattr(type(theirs), "_compute_random_is_values", lambda self, obs: (uniform, math.log(0.5**A)))
    theirs._modules = SimpleNamespace(policy=None)
    theirs._q_func_forwarder = SimpleNamespace(compute_expected_q=lambda *_: data[..., None])
    theirs._n_action_samples, theirs._conservative_weight, theirs._alpha_threshold = K, 1.0, 0.0
    expected = theirs._compute_conservative_loss(None, None, None, returns[:, None])

    q = torch.cat((uniform, here, after), -1)
    density = torch.cat((torch.full((B, K), A * math.log(0.5)), density_here, density_after), -1)
    found = gap(calibrate(q, returns, K) if calibrated else q, density, data)
    torch.testing.assert_close(found.mean(1), expected)


def test_the_density_of_a_squashed_gaussian_is_the_same() -> None:
    policy = GaussianPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0))
    assert isinstance(policy, GaussianNets)
    state, action = normal(B, S), 0.9 * normal(B, A).tanh()
    mean, log_std = policy.moments(state)
    expected = distributions.SquashedGaussianDistribution(mean, log_std.exp()).log_prob(action)
    torch.testing.assert_close(policy.log_density(state, action), expected[:, 0], atol=1e-4, rtol=1e-4)


class Drawn(RunNoise):
    """Gives one tensor whenever normal numbers are asked for."""

    def __init__(self, given: torch.Tensor) -> None:
        super().__init__(torch.Generator())
        self.given = given

    def normal(self, *shape: int) -> torch.Tensor:
        return self.given.reshape(shape)


def forwarder(q: QEnsemble, discrete: bool) -> Any:
    """d3rlpy's ensemble over our networks; all A actions at once where they are discrete."""

    def member(e: int) -> Any:
        def q_value(state: torch.Tensor, *action: Any) -> Any:
            raw = q.each(state)[..., 0] if isinstance(q, DiscreteQ) else q.raw(state, *action)
            return SimpleNamespace(q_value=raw[e])

        kind = "DiscreteMeanQFunctionForwarder" if discrete else "ContinuousMeanQFunctionForwarder"
        return getattr(q_functions, kind)(q_value, *([A] if discrete else []))

    kind = "DiscreteEnsembleQFunctionForwarder" if discrete else "ContinuousEnsembleQFunctionForwarder"
    return getattr(q_functions, kind)([member(e) for e in range(len(q.net.weights[0]))], A)


def moved(nets: QNets) -> QNets:
    """With target networks that are others than the trained ones."""
    with torch.no_grad():
        for k, p in enumerate(nets.target.parameters()):
            p += 0.1 * normal(*p.shape, seed=k)
    return nets


def batch_of(action: torch.Tensor, ended: torch.Tensor, discount: float) -> Batch:
    reward = 0.1 * normal(B, seed=2)
    return Batch(
        normal(B, S, seed=1), action, reward, discount * (1 - ended), normal(B, S, seed=3), torch.full((B,), math.nan)
    )


def test_the_loss_and_the_gradient_of_an_actor_are_those_of_sac(monkeypatch: pytest.MonkeyPatch) -> None:
    noise, state = normal(B, A, seed=9), normal(B, S, seed=1)
    actor = (sac := SAC(temperature=0.3)).make(GaussianPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0)))
    assert isinstance(actor.policy, GaussianNets) and actor.log_temperature is not None
    nets = TDCritic(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(1))
    monkeypatch.setattr(torch.distributions.normal, "_standard_normal", lambda *_, **__: noise)
    theirs: Any = object.__new__(sac_impl.SACImpl)
    theirs._modules = SimpleNamespace(
        temp_optim=None, log_temp=torch.nn.ParameterList([actor.log_temperature.detach().view(1, 1)])
    )
    theirs._q_func_forwarder = forwarder(nets.q, discrete=False)
    mean, log_std = actor.policy.moments(state)
    expected = theirs.compute_actor_loss(
        SimpleNamespace(observations=state), SimpleNamespace(mu=mean, squashed_mu=mean.tanh(), logstd=log_std)
    ).actor_loss
    expected.backward()
    gradients = [p.grad.clone() for p in actor.policy.parameters() if p.grad is not None]
    actor.policy.zero_grad()

    batch = batch_of(normal(B, A).tanh(), torch.zeros(B), 0.99)
    loss, metrics = sac.loss(actor, nets, batch, Drawn(noise))
    loss.backward()
    found = -metrics["temperature"] * metrics["entropy"] - metrics["score"]
    torch.testing.assert_close(found, expected.detach(), atol=1e-5, rtol=1e-5)
    for p, gradient in zip(actor.policy.parameters(), gradients, strict=True):
        torch.testing.assert_close(p.grad, gradient, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("soft", [False, True])
def test_the_loss_of_an_ensemble_of_critics_is_the_same(soft: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """d3rlpy draws our next actions."""
    critic, noise = TDCritic(trunk=TRUNK), normal(B, A, seed=9)
    nets = moved(critic.make(S, A, torch.Generator().manual_seed(1)))
    policy = GaussianPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0))
    actor = SAC(temperature=0.3, soft=soft).make(policy)
    ended = (torch.arange(B) % 3 == 0).float()
    batch = batch_of(normal(B, A).tanh(), ended, 0.97)
    loss, _ = critic.loss(nets, batch, actor.valued, Drawn(noise), conservative=True)
    monkeypatch.setattr(torch.distributions.normal, "_standard_normal", lambda *_, **__: noise)
    theirs: Any = object.__new__(sac_impl.SACImpl)
    mean, log_std = policy.moments(batch.next_state_BS)
    out = SimpleNamespace(mu=mean, squashed_mu=mean.tanh(), logstd=log_std)
    log_temperature = torch.nn.ParameterList([torch.tensor([[math.log(0.3) if soft else -math.inf]])])
    theirs._modules = SimpleNamespace(policy=lambda _: out, log_temp=log_temperature)
    theirs._targ_q_func_forwarder = forwarder(nets.target, False)
    with torch.no_grad():
        target = theirs.compute_target(SimpleNamespace(next_observations=batch.next_state_BS))
    expected = forwarder(nets.q, False).compute_error(
        batch.state_BS, batch.action_BA, batch.reward_B[:, None], target, ended[:, None], 0.97
    )
    torch.testing.assert_close(loss, expected, atol=1e-5, rtol=1e-5)


def test_the_loss_of_a_double_dqn_of_several_steps_is_twice_theirs() -> None:
    """Theirs is Huber's loss, half the square of errors below 1, as all are here."""
    critic, steps = DQN(trunk=TRUNK), 3
    nets = moved(critic.make(S, A, torch.Generator().manual_seed(1)))
    ended, chosen = (torch.arange(B) % 4 == 0).float(), torch.arange(B) % A
    with torch.no_grad():
        for p in (*nets.q.parameters(), *nets.target.parameters()):
            p *= 0.3
    batch = batch_of(torch.eye(A)[chosen], ended, 0.97**steps)
    policy = UniformPolicy().make(S, A, torch.Generator())
    loss, _ = critic.loss(nets, batch, policy, RunNoise.seeded(0), conservative=False)

    theirs: Any = object.__new__(dqn_impl.DoubleDQNImpl)
    theirs._gamma, theirs._q_func_forwarder = 0.97, forwarder(nets.q, discrete=True)
    theirs._targ_q_func_forwarder = forwarder(nets.target, discrete=True)
    given = SimpleNamespace(
        observations=batch.state_BS, actions=chosen[:, None], rewards=batch.reward_B[:, None], terminals=ended[:, None],
        next_observations=batch.next_state_BS, intervals=torch.full((B, 1), steps),
    )  # fmt: skip
    expected = theirs.compute_loss(given, theirs.compute_target(given)).loss
    torch.testing.assert_close(loss, 2 * expected, atol=1e-5, rtol=1e-5)


def transitions_of(batch: Batch) -> Any:
    """Our batch as d3rlpy has it."""
    ended = (batch.discount_B == 0).float()
    return SimpleNamespace(
        observations=batch.state_BS, actions=batch.action_BA, rewards=batch.reward_B[:, None],
        terminals=ended[:, None], next_observations=batch.next_state_BS, intervals=torch.ones(B, 1), device="cpu",
    )  # fmt: skip


def sampled() -> Batch:
    return batch_of(normal(B, A).tanh(), (torch.arange(B) % 3 == 0).float(), 0.97)


def same_gradients(ours: torch.Tensor, theirs: torch.Tensor, nets: torch.nn.Module) -> None:
    """Two losses and what they do to the networks that learn."""
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    learned = [p for p in nets.parameters() if p.requires_grad]
    pairs = [torch.autograd.grad(of, learned, allow_unused=True) for of in (ours, theirs)]
    for mine, other in zip(*pairs, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("q_weight", [None, 2.5])
def test_the_losses_of_td3_and_td3_bc_are_the_same(q_weight: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    critic, td3, batch, noise = TDCritic(trunk=TRUNK, followed="first"), TD3(q_weight=q_weight), sampled(), normal(B, A)
    nets = moved(critic.make(S, A, torch.Generator().manual_seed(1)))
    actor = td3.make(DeterministicPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0)))
    assert isinstance(actor.target, DeterministicNets)
    with torch.no_grad():
        for p in actor.target.parameters():
            p += 0.3

    def policy(of: Any) -> Any:
        return lambda state: SimpleNamespace(mu=of.net(state)[0], squashed_mu=of.greedy(state, None))

    theirs: Any = object.__new__(td3_impl.TD3Impl if q_weight is None else td3_plus_bc_impl.TD3PlusBCImpl)
    theirs._modules = SimpleNamespace(targ_policy=policy(actor.target))
    theirs._target_smoothing_sigma, theirs._target_smoothing_clip, theirs._alpha = 0.2, 0.5, q_weight
    theirs._gamma, theirs._q_func_forwarder = 0.97, forwarder(nets.q, discrete=False)
    theirs._targ_q_func_forwarder = forwarder(nets.target, discrete=False)
    given = transitions_of(batch)
    monkeypatch.setattr(torch, "randn", lambda *_, **__: 3 * noise)  # some beyond the bound
    expected = theirs.compute_critic_loss(given, theirs.compute_target(given)).critic_loss
    monkeypatch.undo()
    same_gradients(critic.loss(nets, batch, actor.valued, Drawn(3 * noise), False)[0], expected, nets)

    expected = theirs.compute_actor_loss(given, policy(actor.policy)(batch.state_BS)).actor_loss
    same_gradients(td3.loss(actor, nets, batch, Drawn(noise))[0], expected, actor)


def test_the_losses_of_iql_are_the_same() -> None:
    critic, awr, batch = ImplicitQ(trunk=TRUNK), AWR(temperature=1 / 3, largest=1.3), sampled()
    nets = moved(critic.make(S, A, torch.Generator().manual_seed(1)))
    actor = awr.make(NormalPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0)))
    assert isinstance(nets, ImplicitNets) and isinstance(actor.policy, NormalNets)
    theirs: Any = object.__new__(iql_impl.IQLImpl)
    theirs._modules = SimpleNamespace(value_func=lambda state: nets.state_value(state)[:, None])
    theirs._expectile, theirs._weight_temp, theirs._max_weight, theirs._gamma = 0.7, 3.0, 1.3, 0.97
    theirs._q_func_forwarder = forwarder(nets.q, discrete=False)
    theirs._targ_q_func_forwarder = forwarder(nets.target, discrete=False)
    given = transitions_of(batch)
    expected = theirs.compute_critic_loss(given, theirs.compute_target(given)).critic_loss
    same_gradients(critic.loss(nets, batch, actor.policy, RunNoise.seeded(0), False)[0], expected, nets)
    expected = theirs.compute_actor_loss(given, gaussian(actor.policy, batch.state_BS)).actor_loss
    loss, metrics = awr.loss(actor, nets, batch, RunNoise.seeded(0))
    same_gradients(loss, expected, actor)
    assert 0 < metrics["used"] < 1


def gaussian(policy: NormalNets, state: torch.Tensor) -> Any:
    """What d3rlpy's policy would answer."""
    mean, log_std = policy.net(state)[0], policy.log_std[0].expand(B, -1)
    return SimpleNamespace(mu=mean, squashed_mu=mean.tanh(), logstd=log_std)


def test_the_loss_of_an_actor_of_awac_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Theirs is a sum over the batch of weights that sum to its size; ours is the mean."""
    critic, awr, batch, noise = TDCritic(trunk=TRUNK), AWR(temperature=0.3), sampled(), 0.1 * normal(B, A, seed=9)
    nets = moved(critic.make(S, A, torch.Generator().manual_seed(1)))
    actor = awr.make(NormalPolicy(trunk=TRUNK).make(S, A, torch.Generator().manual_seed(0)))
    assert isinstance(policy := actor.policy, NormalNets)
    theirs: Any = object.__new__(awac_impl.AWACImpl)
    theirs._lam, theirs._n_action_samples, theirs._action_size = 0.3, 1, A
    theirs._q_func_forwarder = forwarder(nets.q, discrete=False)
    theirs._modules = SimpleNamespace(policy=lambda state: gaussian(policy, state))
    monkeypatch.setattr(type(theirs), "action_size", A)
    monkeypatch.setattr(
        distributions.GaussianDistribution, "sample_n", lambda self, n: (self.mean + self.std * noise)[:, None]
    )
    expected = theirs.compute_actor_loss(transitions_of(batch), gaussian(policy, batch.state_BS)).actor_loss
    loss, _ = awr.loss(actor, nets, batch, Drawn(noise))
    same_gradients(B * loss, expected, actor)
