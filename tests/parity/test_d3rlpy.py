"""Losses of control against those of d3rlpy on the same batch (an independent implementation; skips without it).

d3rlpy's behaviour cloning of a stochastic policy is the squared error of a sample, not a likelihood, so densities are
compared instead.
"""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from longstride.control import GaussianPolicy
from longstride.control.conservative import calibrate, gap
from longstride.control.policies import GaussianNets
from longstride.models.mlp import Trunk

pytest.importorskip("d3rlpy", reason="compares with d3rlpy: make parity")
cql_impl, cal_ql_impl = (pytest.importorskip(f"d3rlpy.algos.qlearning.torch.{name}_impl") for name in ("cql", "cal_ql"))
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
