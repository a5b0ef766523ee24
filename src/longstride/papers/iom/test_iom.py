"""IOM: the penalty is exact where features are linear."""

import numpy as np
import pytest
import torch
from linear_designs import PROBLEM, RNG, Linear, weight
from torch import nn

from longstride import papers
from longstride.exact.designs import Designs
from longstride.exact.experiment import ExactRecipe
from longstride.papers.iom.exact import IOM


def test_the_penalty_of_iom_is_the_closed_form_for_linear_features() -> None:
    x, y = weight(5, 3), weight(5)
    nets = nn.ModuleDict({"features": Linear(phi := weight(3, 2)), "value": Linear(v := weight(2, 1))})
    method = IOM(weight=7.0, rate=0.1, steps=4)
    penalty = method.loss(nets, x, y, {}, RNG) - method.replace(weight=0.0).loss(nets, x, y, {}, RNG)
    moved = 4 * 0.1 * 3**0.5 * (phi @ v)[:, 0]
    away = (x + moved - x.mean(0)) @ phi
    assert penalty.item() == pytest.approx(7 * float(away.square().mean()), abs=1e-6)
    (gradient,) = torch.autograd.grad(penalty, list(nets["features"].parameters()))
    exact = 7 * 2 * (x + moved - x.mean(0)).T @ away / away.numel()
    assert torch.allclose(gradient, exact, atol=1e-6)


@pytest.mark.slow
def test_invariance_that_outweighs_the_fit_makes_every_prediction_the_mean_of_the_data() -> None:
    method = IOM(weight=1e6, fit=60, lr=1e-2)
    state = method.start(PROBLEM, np.random.default_rng(0))
    for _ in range(60):
        state = method.step(PROBLEM, state, np.random.default_rng(0))
    predicted = method.solution(PROBLEM, state)["predicted"]
    assert np.ptp(predicted) < 0.05 * state["y"].std()


@pytest.mark.slow
def test_a_climb_starts_at_the_best_of_the_data_and_the_recipe_ends_above_it() -> None:
    recipe = papers.load("iom/exact")
    assert isinstance(recipe, ExactRecipe)
    method, problem = recipe.method, Designs(pool=300)
    state = method.start(problem, np.random.default_rng(0))
    first = problem.measures(method.solution(problem, state))
    assert np.sort(problem.landscape.value(state["designs"])).tolist() == np.sort(state["y"])[-128:].tolist()
    for i in range(1, 61):
        state = method.step(problem, state, np.random.default_rng(i))
    assert problem.measures(method.solution(problem, state))["best"] > first["best"] + 0.05
