"""The map of TTI: an update and an expectation computed by hand, sampling against expectation, and waste that amplifies
itself."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import rows_of

from longstride.curriculum import Fixed
from longstride.exact.experiment import State
from longstride.studies.tti_map.exact import CLAIM, RECIPE, Errands, HabitCloning

TWO = Errands(deepest=2)


def method(**fields: Any) -> HabitCloning:
    return HabitCloning(**{"schedule": Fixed(limit=24), "begins": 0.1, "goes_on": 0.5, "quits": 0.4} | fields)


def begin(found: HabitCloning, problem: Errands = TWO) -> State:
    return found.start(problem, np.random.default_rng(0))


def test_one_update_is_the_one_computed_by_hand() -> None:
    """Two successes, of which the second weighs more: .5 * 2 k / 3 + .5 is 5/6 and 7/6.

    After useful steps 6 of 30 were wasted in the first, none of 24 in the second: 5 beside 48 in weight, 10 beside 48
    where waste weighs twice; the habit goes half of the way to 10 / 58.
    """
    cloner = method(favour=2.0, reach=1e-3)
    found = np.array([[24, 6, 3, 9, 12, 0, 12, 0], [24, 0, 0, 0, 24, 0, 0, 0]], float)
    after = cloner.update(begin(cloner), found)
    assert after["begins"] == pytest.approx(0.1 + 0.5 * (10 / 58 - 0.1))
    # 7.5 wasted steps weigh 15 beside 2.5: 17.5 of 20 that are enough, so the step is 7/8 of a half
    assert after["goes_on"] == pytest.approx(0.5 + 0.5 * 17.5 / 20 * (15 / 17.5 - 0.5))
    # at the first page 10 quit (5/6 of 12) and 38 went on; at the second nothing was seen
    assert after["quits"] == pytest.approx([0.4 + 0.5 * (10 / 48 - 0.4), 0.4])
    assert (after["n"], after["sum"][1], after["ranked"][4]) == (2, 6, 12 + 2 * 24)


def test_without_a_success_nothing_is_learned() -> None:
    cloner = method()
    after = cloner.update(begin(cloner), np.zeros((0, 8)))
    assert {name: after[name].tolist() for name in after} == {k: v.tolist() for k, v in begin(cloner).items()}


def test_cloned_with_itself_waste_keeps_its_share_and_grows_where_it_is_favoured() -> None:
    """A thousand successes whose shares are those of the habits, as where every episode succeeds."""
    fair, favoured = method(), method(favour=2.0)
    shares = np.array([[90, 10, 50, 50, 60, 60, 40, 40]], float).repeat(1000, 0)
    same, more = (cloner.update(begin(cloner), shares) for cloner in (fair, favoured))
    assert (same["begins"], same["goes_on"]) == pytest.approx((0.1, 0.5))
    assert more["begins"] == pytest.approx(0.1 + 0.5 * (20 / 110 - 0.1)) and more["goes_on"] > 0.5


def test_success_is_the_one_computed_by_hand() -> None:
    """One page: two useful steps and the answer, within three steps (1) only without waste, within four (2) with one
    wasted step before any of the three."""
    habits = {"begins": np.array(0.1), "goes_on": np.array(0.5), "quits": np.array([0.4])}
    three, four = (Errands(deepest=1, horizon=h).measures(habits) for h in (3, 4))
    assert three["success"] == three["supported"] == pytest.approx(0.9**3)
    assert four["success"] == pytest.approx(0.9**3 + 3 * 0.1 * 0.5 * 0.9**2)


def test_a_guess_after_one_of_two_pages_is_right_half_of_the_time_and_rests_on_nothing() -> None:
    habits = {"begins": np.array(0.0), "goes_on": np.array(0.0), "quits": np.array([0.4, 0.9])}
    found = TWO.measures(habits)
    assert found["success"] == pytest.approx((1 + 0.6 + 0.4 / 2) / 2)
    assert found["supported"] == pytest.approx((1 + 0.6) / 2) and found["idle"] == 0


@pytest.mark.parametrize("leads_on", [0.0, 0.4])
def test_what_is_sampled_agrees_with_what_is_expected(leads_on: float) -> None:
    """40,000 episodes: four standard errors are .01."""
    problem = Errands(deepest=4, leads_on=leads_on, guesses=1.0)
    habits = begin(method(), problem)
    counts = problem.play(habits, problem.horizon, 40_000, np.random.default_rng(1))
    assert len(counts) / 40_000 == pytest.approx(problem.measures(habits)["success"], abs=0.01)
    honest = problem.replace(guesses=0.0)
    counts = honest.play(habits, problem.horizon, 40_000, np.random.default_rng(2))
    assert len(counts) / 40_000 == pytest.approx(problem.measures(habits)["supported"], abs=0.01)
    assert not counts[:, 8:].any()  # nobody who quit was paid


def test_links_that_lead_on_make_waste_pay() -> None:
    habits = begin(method(), Errands())
    plain, linked = (Errands(leads_on=share).measures(habits) for share in (0.0, 0.5))
    assert linked["success"] > plain["success"]


def test_a_run_goes_on_with_the_numbers_of_one_that_was_not_stopped(tmp_path: Path) -> None:
    short = RECIPE.replace(iterations=2, every=1, method={"episodes": 20})
    short.train(tmp_path / "one")
    short.replace(iterations=1).train(tmp_path / "two")
    short.train(tmp_path / "two", resume=True)
    one, two = (rows_of(tmp_path / name) for name in ("one", "two"))
    assert one == two and [row["iteration"] for row in one] == [0, 1, 2]


def test_a_cell_of_the_grid_is_what_an_arm_of_the_claim_comes_to(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from examples.tti_map_grid import supported

    CLAIM.arms["wander_long"].train(tmp_path / "arm")
    assert rows_of(tmp_path / "arm")[-1]["measures"]["supported"] == [supported("long", 1.0, 0.5, seed=0)]
