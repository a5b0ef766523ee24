"""Data to a threshold by updates to a transition."""

import numpy as np
import pytest

from longstride.papers.utd_scaling.exact import RECIPE, ChainWorld, Replayed, all_transitions, to_threshold
from longstride.scaling import Power


def test_the_values_satisfy_the_optimality_equation() -> None:
    problem = ChainWorld(states=3, slip=0.1, discount=0.5)
    Q = problem.values()
    best = Q.max(1)
    assert Q[2, 1] == pytest.approx(0.9 + 0.1 * 0.5 * best[1])
    assert Q[0, 1] == pytest.approx(0.9 * 0.5 * best[1] + 0.1 * 0.5 * best[0])
    assert (Q.argmax(1) == 1).all()


def test_all_transitions_have_their_chances() -> None:
    seen = np.array(all_transitions(ChainWorld(states=2, known=1.0)))
    for s in (0, 1):
        for a in (0, 1):
            goes = seen[(seen[:, 0] == s) & (seen[:, 1] == a), 2]
            assert (goes == a).mean() == pytest.approx(0.8)


def test_more_updates_need_less_data_down_to_a_limit() -> None:
    data = [np.mean([to_threshold(ChainWorld(), ratio, 0.2, seed) for seed in range(4)]) for ratio in (2, 8, 32)]
    assert data[0] > 2 * data[1] > 2.5 * data[2]
    known = ChainWorld(known=1.0)
    without = [np.mean([to_threshold(known, ratio, 0.2, seed) for seed in range(4)]) for ratio in (4, 16)]
    assert without[0] == pytest.approx(4 * without[1], rel=0.25)  # updates alone count


def test_a_ratio_that_was_not_seen_is_predicted() -> None:
    state = RECIPE.method.start(ChainWorld(), np.random.default_rng(0))
    assert RECIPE.problem.measures(state)["refused"] == 1
    state = RECIPE.method.step(ChainWorld(), state, np.random.default_rng(0))
    limited = RECIPE.problem.measures(state)
    line = RECIPE.problem.replace(law=Power(limit=0.0)).measures(state)
    assert limited["data"] == line["data"] == state["data"][-1] / 3
    assert limited["accuracy"] > line["accuracy"]


def test_of_states_that_are_known_in_part_the_last_ones_are() -> None:
    seen = all_transitions(ChainWorld(states=4, known=0.5))
    assert {s for s, *_ in seen} == {2, 3} and not all_transitions(ChainWorld(states=4))


def test_with_all_weight_on_large_ratios_a_line_goes_through_the_last_two() -> None:
    ratios, data = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 64.0]), np.array([900.0, 500.0, 300.0, 200.0, 160.0, 90.0])
    problem = ChainWorld(law=Power(limit=0.0), late=24.0)
    said = problem.measures({"ratios": ratios, "data": data, "streams": np.array(1.0)})
    predicted = 160 * (160 / 200) ** 2  # as much again from 16 to 32, and from there to 64
    assert said["accuracy"] == pytest.approx(max(0.0, 1 - abs(predicted - 90) / 90), abs=1e-3)


def test_a_stream_is_given_up_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstride.papers.utd_scaling.exact.LONGEST", 20)
    method = Replayed(ratios=(1.0, 2.0), streams=1)
    state = method.start(ChainWorld(), np.random.default_rng(1))
    state = method.step(ChainWorld(), state, np.random.default_rng(1))  # a stream that no other test remembers
    assert state["data"].tolist() == [20, 20]
