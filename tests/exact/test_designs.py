"""The setup of offline design: functions, scores, the climb, and COMs; exact where a model is linear."""

import numpy as np
import pytest
import torch
from linear_designs import PROBLEM, RNG, Linear, weight
from torch import nn

from longstride.core.errors import ConfigError
from longstride.exact.designs import COM, Ascent
from longstride.exact.worlds.designs import FUNCTIONS, Landscape


@pytest.fixture
def xy() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(5, 3, generator=generator, dtype=torch.float64), torch.randn(
        5, generator=generator, dtype=torch.float64
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_best_design_is_worth_nothing_less_and_leaving_the_subspace_costs(name: str) -> None:
    of = Landscape(name, dims=6, inner=3, optimum=0.7, penalty=2.0)  # pyright: ignore[reportArgumentType]
    best = of.design(np.full((1, 3), 0.7))
    assert of.value(best) == pytest.approx(0, abs=1e-12)
    assert (of.value(best + 0.3 * RNG.normal(size=(50, 6))) < 0).all()
    assert of.value(best + 0.5 * of.basis[5]) == pytest.approx(-2 * 0.25)


def test_data_are_the_worst_of_the_pool_and_the_span_is_that_of_all() -> None:
    of = Landscape("bowl", dims=6, inner=3, optimum=0.0, penalty=1.0)
    all_of_it = of.draw(50, 1.0, 0.1, np.random.default_rng(3))
    worst = of.draw(50, 0.4, 0.1, np.random.default_rng(3))
    assert len(worst.y) == 20 and worst.y.max() <= np.sort(all_of_it.y)[19]
    assert worst.span.tolist() == [all_of_it.y.min(), all_of_it.y.max()]
    assert np.allclose(of.value(worst.x), worst.y)
    with pytest.raises(ConfigError, match="expected 2 to 3"):
        Landscape("bowl", dims=3, inner=4, optimum=0.0, penalty=1.0)


def test_scores_are_normalised_by_the_pool() -> None:
    best = PROBLEM.landscape.design(np.full((2, 4), PROBLEM.optimum))
    found = PROBLEM.measures({"designs": best, "predicted": np.array([1.0, 3.0]), "span": np.array([-4.0, -2.0])})
    assert found == pytest.approx({"best": 2.0, "median": 2.0, "overestimated": 1.0})


def test_climbing_a_linear_model_is_its_slope_times_the_steps(xy: tuple[torch.Tensor, torch.Tensor]) -> None:
    x, _ = xy
    nets = nn.ModuleDict({"value": Linear(w := weight(3, 1))})
    moved = Ascent(rate=0.1).climb(nets, x, 4) - x
    assert torch.allclose(moved, (4 * 0.1 * 3**0.5 * w[:, 0]).expand(5, 3), atol=1e-12)


def test_com_of_a_linear_model_is_the_closed_form_and_so_is_its_gradient(
    xy: tuple[torch.Tensor, torch.Tensor],
) -> None:
    x, y = xy
    nets = nn.ModuleDict({"value": Linear(w := weight(3, 1))})
    state = {"log_alpha": np.array(0.3)}
    method = COM(rate=0.1, steps=4, tau=0.5)
    loss = method.loss(nets, x, y, state, RNG)
    error, climbed = x @ w[:, 0] - y, 4 * 0.1 * 3**0.5
    gap = climbed * float(w.square().sum())  # f(x + c w) - f(x)
    assert loss.item() == pytest.approx(float(error.square().mean()) + np.exp(0.3) * gap, abs=1e-6)
    (gradient,) = torch.autograd.grad(loss, list(nets["value"].parameters()))
    exact = 2 * (error @ x)[:, None] / 5 + np.exp(0.3) * climbed * w  # x' is a constant
    assert torch.allclose(gradient, exact, atol=1e-6)
    assert float(state["log_alpha"]) == pytest.approx(0.3 + (0.05 if gap > 0.5 else -0.05))


def test_training_is_adams() -> None:
    method = Ascent(updates=3, batch=8)
    state = method.start(PROBLEM, np.random.default_rng(0))
    stepped = method.step(PROBLEM, method.step(PROBLEM, state, np.random.default_rng(1)), np.random.default_rng(2))
    nets = method.nets(PROBLEM, torch.Generator())
    nn.utils.vector_to_parameters(torch.from_numpy(state["weights"].copy()), nets.parameters())
    adam = torch.optim.Adam(nets.parameters(), lr=method.lr)
    x, y = torch.tensor(state["x"]).float(), torch.tensor((state["y"] - state["y"].mean()) / state["y"].std()).float()
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        for _ in range(3):
            rows = rng.integers(len(x), size=8)
            adam.zero_grad()
            method.loss(nets, x[rows], y[rows], {}, rng).backward()
            adam.step()
    assert np.allclose(stepped["weights"], nn.utils.parameters_to_vector(nets.parameters()).detach(), atol=1e-6)
