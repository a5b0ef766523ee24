"""HL-Gauss: the update of values by classification against Adam and the cross-entropy by hand."""

import math

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from longstride.exact.worlds.discounted import DiscountedWorld
from longstride.models.heads import HLGauss, Scalar
from longstride.papers.hl_gauss.exact import RECIPE, FittedQ, NoisyRewards

PROBLEM = NoisyRewards(states=5, actions=2, samples=40)


def test_the_gradient_of_a_target_is_predicted_less_wanted_and_so_bounded() -> None:
    """d loss / d raw_i = softmax_i - p_i(y); for the squared error it is 2 (Q - y), which is not bounded."""
    head = HLGauss(low=0.0, high=10.0, bins=5)
    raw = torch.tensor([0.3, -1.0, 0.5, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    sigma = 0.75 * 2
    below = [0.5 * (1 + math.erf((z - 3.2) / (sigma * math.sqrt(2)))) for z in (0, 2, 4, 6, 8, 10)]
    wanted = torch.tensor([(b - a) / (below[5] - below[0]) for a, b in zip(below, below[1:], strict=False)])
    head.loss(raw, torch.tensor(3.2, dtype=torch.float64)).backward()
    assert raw.grad is not None
    assert torch.allclose(raw.grad, raw.detach().softmax(0) - wanted.double(), atol=1e-6)
    for y in (0.0, 5.0, 1e6):
        (gradient,) = torch.autograd.grad(head.loss(raw, torch.tensor(y, dtype=torch.float64)), raw)
        assert gradient.abs().sum() <= 2


@pytest.mark.parametrize("head", [HLGauss(low=0.0, high=10.0, bins=11), Scalar()], ids=["hl_gauss", "scalar"])
def test_an_iteration_is_adam_on_targets_of_the_network_before_it(head: HLGauss | Scalar) -> None:
    method = FittedQ(head=head, updates=3, batch=8)
    start = method.start(PROBLEM, np.random.default_rng(0))
    ours = method.step(PROBLEM, method.step(PROBLEM, start, np.random.default_rng(1)), np.random.default_rng(2))
    net = method.trunk.make(8, 2 * head.outputs, torch.Generator())
    vector_to_parameters(torch.from_numpy(start["weights"].copy()), net.parameters())
    adam, x = torch.optim.Adam(net.parameters(), lr=1e-3), torch.from_numpy(start["features"])
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        with torch.no_grad():
            before = head.value(net(x)[0].view(5, 2, -1)).amax(1)
        for _ in range(3):
            rows = rng.integers(40, size=8)
            target = torch.from_numpy(start["reward"][rows]).float() + 0.9 * before[start["after"][rows]]
            raw = net(x[start["state"][rows]])[0].view(8, 2, -1)[torch.arange(8), start["action"][rows]]
            adam.zero_grad()
            head.loss(raw, target.clamp(0, 10)).mean().backward()
            adam.step()
    assert np.allclose(ours["weights"], parameters_to_vector(net.parameters()).detach(), atol=1e-6)


def test_accuracy_is_minus_the_error_and_true_values_have_none() -> None:
    drawn = PROBLEM.draw(np.random.default_rng(0))
    world = DiscountedWorld(drawn["transitions"], drawn["rewards"], 0.9)
    assert PROBLEM.measures(drawn | {"q": world.optimal}) == pytest.approx({"accuracy": 0.0, "value": 1.0})
    assert PROBLEM.measures(drawn | {"q": world.optimal - 0.5})["accuracy"] == pytest.approx(-0.5)


def test_the_recipe_ends_nearer_to_the_values_than_it_starts() -> None:
    method, problem = RECIPE.method, NoisyRewards(states=8, samples=200)
    state = method.start(problem, np.random.default_rng(0))
    first = problem.measures(method.solution(problem, state))
    for i in range(40):
        state = method.step(problem, state, np.random.default_rng(i))
    assert problem.measures(method.solution(problem, state))["accuracy"] > first["accuracy"] + 0.5
