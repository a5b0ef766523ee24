"""Models of scores: COMs exactly where a model is linear, and each network with its own rate."""

import pytest
import torch
from linear_designs import Linear, weight
from torch import nn

from longstride.design import ConservativeModel, LeastSquares
from longstride.models.mlp import Trunk

X, Y = weight(5, 3), weight(5)
GENERATOR = torch.Generator()


def linear() -> tuple[nn.ModuleDict, torch.Tensor]:
    nets = nn.ModuleDict(
        {"value": Linear(w := weight(3, 1)), "dual": nn.ParameterDict({"log_alpha": torch.tensor(0.3)})}
    )
    return nets, w


def test_a_climb_on_a_linear_model_is_its_slope_times_the_steps() -> None:
    nets, w = linear()
    moved = LeastSquares(rate=0.1).climbed(nets, X, 4) - X
    assert torch.allclose(moved, (4 * 0.1 * 3**0.5 * w[:, 0]).expand(5, 3), atol=1e-12)


def test_coms_of_a_linear_model_is_the_closed_form_and_so_are_both_gradients() -> None:
    nets, w = linear()
    model = ConservativeModel(rate=0.1, steps=4, limit=0.5)
    loss, said = model.loss(nets, X, Y, GENERATOR)
    climbed = 4 * 0.1 * 3**0.5
    gap, alpha = climbed * float(w.square().sum()), torch.tensor(0.3).exp()  # f(x + c w) - f(x)
    assert float(said["overestimation"]) == pytest.approx(gap) and float(said["alpha"]) == pytest.approx(float(alpha))
    loss.backward()
    of_w, of_alpha = nets["value"].weight.grad, nets["dual"].get_parameter("log_alpha").grad
    error = X @ w[:, 0] - Y
    exact = 2 * (error @ X)[:, None] / 5 + alpha * climbed * w  # x' is a constant
    assert of_w is not None and torch.allclose(of_w, exact, atol=1e-6)  # pyright: ignore[reportArgumentType, reportCallIssue]
    # alpha falls where the gap is below the limit, and rises where it is above: Adam goes against this
    assert of_alpha is not None and float(of_alpha) == pytest.approx(float(alpha) * (0.5 - gap), abs=1e-6)


def test_alpha_has_a_rate_of_its_own_and_every_network_is_trained_once() -> None:
    model = ConservativeModel(trunk=Trunk(width=4, depth=1, norm=False), lr=1e-3, alpha=0.1, alpha_lr=0.2)
    nets = model.nets(3, GENERATOR)
    groups = model.groups(nets)
    assert [group["lr"] for group in groups] == [1e-3, 0.2]
    trained = [id(p) for group in groups for p in group["params"]]
    assert sorted(trained) == sorted(map(id, nets.parameters()))
    assert nets["dual"].get_parameter("log_alpha").exp().item() == pytest.approx(0.1)
