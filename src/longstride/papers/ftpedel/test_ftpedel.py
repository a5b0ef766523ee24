"""FTPedel: the design's gradient and optimum, the condition at which an epoch ends, and what is guaranteed then."""

import numpy as np
import pytest

from longstride.core.errors import ConfigError
from longstride.papers.ftpedel.exact import (
    ACTIONS,
    CHOICES,
    REGIONS,
    FTPedel,
    Regions,
    counts_of,
    direction,
    estimates,
    features_of,
    uncertainty,
    visits,
)


def test_features_are_how_often_an_episode_takes_each_choice() -> None:
    features = visits(Regions(slip=0.2).ways)
    policy = int(np.flatnonzero((CHOICES == [2, 0, 1, 2, 0]).all(1))[0])
    choice, inside = features[policy, :REGIONS], features[policy, REGIONS:].reshape(REGIONS, ACTIONS)
    assert choice == pytest.approx([0, 0, 1, 0])
    assert inside.sum(1) == pytest.approx([0.05, 0.05, 0.85, 0.05])
    assert inside[2, 2] == pytest.approx(0.85) and inside[0, 0] == pytest.approx(0.05)


def test_what_is_played_is_the_frank_wolfe_step_of_the_largest_uncertainty() -> None:
    rng = np.random.default_rng(0)
    features, counts = visits(Regions().ways), rng.uniform(1, 50, REGIONS * (1 + ACTIONS))
    active = rng.random(len(features)) < 0.3
    largest = features[active][uncertainty(features[active], counts).argmax()]

    def target(counts: np.ndarray) -> float:
        return float(uncertainty(largest[None], counts)[0])

    h = 1e-4
    gradient = np.array([(target(counts + h * e) - target(counts - h * e)) / (2 * h) for e in np.eye(len(counts))])
    assert gradient == pytest.approx(-((largest / (counts + 1)) ** 2), abs=1e-6)
    assert direction(features, active, counts) == int((features @ gradient).argmin())


def test_a_smooth_maximum_weighs_policies_and_a_sharp_one_is_that_of_the_largest() -> None:
    rng = np.random.default_rng(1)
    features, counts = visits(Regions().ways), rng.uniform(1, 50, REGIONS * (1 + ACTIONS))
    active = rng.random(len(features)) < 0.3
    largest = uncertainty(features[active], counts).max()

    def target(counts: np.ndarray) -> float:
        return float(np.log(np.exp(5 * uncertainty(features[active], counts) / largest).sum()))

    h = 1e-4
    gradient = np.array([(target(counts + h * e) - target(counts - h * e)) / (2 * h) for e in np.eye(len(counts))])
    assert direction(features, active, counts, 5.0) == int((features @ gradient).argmin())
    assert direction(features, active, counts, 1e6) == direction(features, active, counts)


def test_its_steps_find_the_best_design_that_is_known() -> None:
    """Without slips a policy depends on its own choice and action alone: all 12 ends have to be seen equally often."""
    features, counts = visits(np.eye(REGIONS)), np.zeros(REGIONS * (1 + ACTIONS))
    active = np.ones(len(features), bool)
    for _ in range(1200):
        counts += features[direction(features, active, counts)]
    assert counts[REGIONS:] == pytest.approx(np.full(12, 100), abs=3)
    assert uncertainty(features, counts).max() == pytest.approx(1 / 101 + 1 / 301, rel=0.03)


@pytest.mark.parametrize("lacking", [0, 2])
def test_an_epoch_ends_when_all_policies_left_are_covered_and_drops_those_far_below(lacking: int) -> None:
    problem, method = Regions(lacking=lacking), FTPedel()
    before = method.start(problem, np.random.default_rng(0))
    kept = before["taken"].copy()
    after = method.step(problem, before, np.random.default_rng(1))
    assert (before["taken"] == kept).all()  # a step leaves the state that it is given
    features = features_of(after)
    assert uncertainty(features[before["active"]], counts_of(after)).max() <= method.target(1)
    values = estimates(after)
    assert (after["active"] == (values >= values.max() - 1.0)).all()
    assert after["taken"].sum() - kept.sum() == after["episodes"] == after["moves"].sum() - before["moves"].sum()


def played(problem: Regions, seed: int, method: FTPedel | None = None, epochs: int = 4) -> dict[str, float]:
    method = method or FTPedel()
    state = method.start(problem, np.random.default_rng(seed))
    for i in range(epochs):
        state = method.step(problem, state, np.random.default_rng(100 * seed + i))
    found = problem.measures(state)
    assert found["uncertainty"] ** 2 <= method.target(epochs)  # of fewer policies than the condition was about
    return found


def test_full_data_need_no_episode_and_what_is_lacking_costs_more_the_more_it_is() -> None:
    found = [played(Regions(lacking=n), 0)["episodes"] for n in range(REGIONS)] + [
        played(Regions(walks=0), 0)["episodes"]
    ]
    assert found[0] == 0 and found == sorted(found) and found[-1] > 3 * found[1]


def test_the_policy_found_is_as_good_as_promised() -> None:
    for seed in range(8):
        problem = Regions(walks=2000, lacking=seed % REGIONS)
        assert played(problem, seed, epochs=3)["regret"] <= 4 * 2.0**-3


def test_estimates_are_means_weighted_by_visits() -> None:
    problem = Regions(walks=200_000, lacking=0)
    state = problem.begin(np.random.default_rng(0))
    true = visits(problem.ways)[:, REGIONS:] @ state["earns"].ravel()
    assert estimates(state) == pytest.approx(true, abs=0.02)
    assert state["taken"].sum() == 200_000 == state["moves"].sum()


def test_exploration_that_follows_the_design_needs_fewer_episodes() -> None:
    assert played(Regions(), 0)["episodes"] < played(Regions(), 0, FTPedel(directed=False))["episodes"] / 2


def test_it_explores_regions_of_which_the_data_hold_one_at_least() -> None:
    with pytest.raises(ConfigError, match="expected lacking below 4, got 4"):
        FTPedel().start(Regions(lacking=4), np.random.default_rng(0))
