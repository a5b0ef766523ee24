"""ScaleRL: the first half of a run predicts its end, and what was measured too early is refused."""

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.exact.forecasts import forecast
from longstride.papers.scalerl.exact import LONGEST, RECIPE, Forecast, Watched, spread
from longstride.scaling import Power, Sigmoid


@pytest.fixture(scope="module")
def state() -> dict[str, np.ndarray]:
    state = RECIPE.method.start(RECIPE.problem, np.random.default_rng(0))
    for i in range(RECIPE.iterations):
        state = RECIPE.method.step(RECIPE.problem, state, np.random.default_rng(i))
    return state


def test_a_sigmoid_predicts_the_end_from_the_first_half_and_a_power_law_does_not(state: dict) -> None:
    sigmoid = RECIPE.problem.measures(state)
    power = RECIPE.problem.replace(law=Power()).measures(state)
    assert sigmoid["accuracy"] > 0.94 > 0.9 > power["accuracy"] and not sigmoid["refused"]
    assert sigmoid["success"] == pytest.approx(0.78, abs=0.04)  # a fifth of the problems cannot be solved


def test_a_run_that_ends_before_its_midpoint_is_refused() -> None:
    before = Sigmoid()(np.arange(1.0, 20), np.array([0.03, 0.8, 40, 2]))
    found = forecast(Sigmoid(), np.arange(1, 20), before, 80, 0.6)
    assert found["refused"] == 1
    few = forecast(Sigmoid(), [1, 2, 3], [0.1, 0.2, 0.3], 80, 0.6)
    assert few == {"accuracy": pytest.approx(0.7), "within": 0.0, "refused": 1.0}
    assert forecast(Sigmoid(), [], [], 1, 0.0)["accuracy"] == 1


def test_errors_may_be_shares_of_a_value() -> None:
    x, y = np.array([1.0, 2, 4, 8, 16]), 100 + 900 / np.array([1.0, 2, 4, 8, 16])
    truth = 100 + 900 / 32
    found = forecast(Power(), x, y, 32, truth, relative=True)
    assert found == {"accuracy": pytest.approx(1, abs=1e-4), "within": 1.0, "refused": 0.0}
    assert forecast(Power(), x, y, 32, 2 * truth, relative=True)["accuracy"] == pytest.approx(0.5, abs=1e-3)


def test_what_is_measured_is_sampled_and_kept_by_iteration(state: dict) -> None:
    assert int(state["iteration"]) == RECIPE.iterations and not state["curve"][RECIPE.iterations + 1 :].any()
    assert state["curve"][RECIPE.iterations] == pytest.approx(float(state["success"]), abs=0.03)
    assert state["curve"][RECIPE.iterations] != float(state["success"])


def test_chances_are_quantiles() -> None:
    logs = np.log(spread(40, 0.02, 1.0))
    assert logs.mean() == pytest.approx(np.log(0.02), abs=0.01) and logs.std() == pytest.approx(1, abs=0.05)


def test_what_does_not_fit_is_refused() -> None:
    method, problem = Watched(batch=2, rollouts=2, budget=4), Forecast(problems=2, answers=2)
    late = method.start(problem, np.random.default_rng(0)) | {"iteration": np.array(float(LONGEST))}
    with pytest.raises(ConfigError, match="ask for no more"):
        method.step(problem, late, np.random.default_rng(0))
