"""Learning from logged worlds (CQL, Cal-QL, WSRL): the term's gradient by hand, and what holds with all data."""

import numpy as np
import pytest
import torch

from longstride.core.errors import ConfigError
from longstride.exact.logged import LoggedQ, LoggedWorld
from longstride.papers.cql.exact import RECIPE

SMALL = LoggedWorld(states=6, actions=3, held=3, samples=3000)
Q = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]], dtype=torch.double)
TAKEN = torch.tensor([[0.5, 0.25, 0.0], [0.0, 0.05, 0.2]], dtype=torch.double)


@pytest.mark.parametrize("floor", [-5.0, 1.5])
def test_the_gradient_of_the_term_is_softmax_minus_data_and_zero_below_the_floor(floor: float) -> None:
    q = Q.clone().requires_grad_()
    LoggedQ(calibrated=True).term(q, TAKEN, torch.full((2,), floor, dtype=torch.double)).backward()
    lifted = Q.clamp_min(floor)
    pushed = TAKEN.sum(1, keepdim=True) * lifted.softmax(1) * (floor < Q)
    torch.testing.assert_close(q.grad, pushed - TAKEN)


def test_plain_values_of_much_data_are_the_true_ones_and_are_not_overestimated() -> None:
    method = LoggedQ(updates=100, offline=12)
    state = method.start(SMALL, np.random.default_rng(0))
    state["led"] = 1e6 * state["transitions"]
    state["count"] = np.full(state["count"].shape, 1e6)
    for i in range(12):
        state = method.step(SMALL, state, np.random.default_rng(i))
    found = SMALL.measures(state)
    assert found["value"] == pytest.approx(1) and abs(found["overestimate"]) < 0.2 and found["dip"] == 0
    assert np.abs(state["phi"] @ state["w"] - SMALL.world(state).optimal).max() < 0.4


def test_the_data_holds_some_actions_of_each_state_and_always_the_expert_s() -> None:
    state = LoggedWorld(held=2, samples=4000).draw(np.random.default_rng(0))
    assert ((state["count"] > 0).sum(1) == 2).all() and state["count"].sum() == 4000
    assert (state["led"].sum(2) == state["count"]).all()
    expert = LoggedWorld(held=1, expert=0.9).draw(np.random.default_rng(0))
    best = LoggedWorld().world(expert).optimal.argmax(1)
    assert (expert["behaviour"].argmax(1) == best).all()


def test_a_warm_up_collects_and_learns_nothing_and_a_dip_is_counted_from_where_it_went_online() -> None:
    method = LoggedQ(updates=5, offline=1, warmup=1, retained=False, episodes=3, length=7)
    states = [method.start(SMALL, np.random.default_rng(0))]
    for i in range(3):
        states.append(method.step(SMALL, states[-1], np.random.default_rng(i)))
    _, offline, warm, online = states
    assert (warm["w"] == offline["w"]).all() and warm["new_count"].sum() == 21 and (online["w"] != warm["w"]).any()
    assert online["new_led"].sum() == online["new_count"].sum() == 42
    after = SMALL.measures(online)["value"]
    assert SMALL.measures(online)["dip"] == pytest.approx(max(0.0, float(offline["before"]) - after))
    assert SMALL.measures(online)["least"] == pytest.approx(min(float(offline["before"]), after))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot hold 9"):
        RECIPE.replace(problem={"held": 9})
    with pytest.raises(ConfigError, match="less than 1"):
        RECIPE.replace(problem={"discount": 1})
