"""Laws that are fitted to the first part of runs and held to the rest, on curves that are known and on runs."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from helpers import rows_of

from longstride.claims.claim import Claim
from longstride.claims.runner import run_claim
from longstride.core.errors import ConfigError
from longstride.papers.isocompute.exact import RECIPE
from longstride.report import fits
from longstride.report.curves import Curve
from longstride.report.extrapolation import planned, read
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.run.folder import read_rows
from longstride.scaling import Power, Sigmoid
from longstride.stats import Ordering

X = np.arange(1.0, 41)


@pytest.fixture(scope="module", autouse=True)
def few_resamples() -> Iterator[None]:
    """The bootstrap of a fit, which takes most of its time, is short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fits, "fit", partial(fits.fit, resamples=30))
        yield


def curve(y: Callable[[np.ndarray], np.ndarray], x: np.ndarray = X) -> Curve:
    return Curve(Path("run"), {}, tuple(x), tuple(y(x)))


def s_shaped(x: np.ndarray, top: float = 0.9) -> np.ndarray:
    return Sigmoid()(x, np.array([0.1, top, 12.0, 2.0]))


def test_the_law_that_was_planted_foretells_the_rest_and_another_is_farther_off() -> None:
    right, wrong, stays = (read(Reading(law=law), [[curve(s_shaped)]]) for law in (Sigmoid(), Power(), None))
    came = s_shaped(X[20:])
    assert right["error"] < 1e-4 and right["refused"] == 0 and right["reached"] == came[-1]
    assert stays["error"] == pytest.approx(np.abs(came - s_shaped(X)[19]).mean()) and stays["closer"] == 0
    assert right["closer"] == pytest.approx(stays["error"] - right["error"])
    assert wrong["error"] > 10 * right["error"]


def test_what_a_law_may_not_look_at_does_not_change_what_it_says() -> None:
    bent = curve(lambda x: np.where((x < 4) | (x > 20), 0.5, s_shaped(x)))
    reading = Reading(law=Sigmoid(), since=0.1)
    # all that was held out came to 0.5, and of the first tenth nothing was seen
    assert read(reading, [[bent]])["error"] == pytest.approx(np.abs(s_shaped(X[20:]) - 0.5).mean(), abs=1e-4)


def test_a_law_with_too_few_points_is_refused_and_the_last_measurement_stands() -> None:
    found = read(Reading(law=Sigmoid(), until=0.1), [[curve(s_shaped)]])
    assert found["refused"] == 1 and found["closer"] == 0 and found["error"] > 0.3


def test_the_setting_that_a_law_says_ends_best_is_chosen_and_need_not_have_led() -> None:
    def early(x: np.ndarray) -> np.ndarray:
        return Sigmoid()(x, np.array([0.1, 0.6, 4.0, 2.0]))

    groups = [[curve(early)], [curve(lambda x: Sigmoid()(x, np.array([0.1, 0.9, 18.0, 2.0])))]]
    at = [early(X)[-1], groups[1][0].y[-1]]
    assert early(X)[19] > groups[1][0].y[19] and at[0] < at[1]
    assert read(Reading(law=Sigmoid()), groups)["chosen"] == at[1]
    assert read(Reading(), groups)["chosen"] == at[0]


def test_runs_of_a_setting_are_one_group_and_what_stays_is_each_one_of_its_own() -> None:
    low, high = curve(lambda x: 0.2 + 0 * x), curve(lambda x: 0.6 + 0 * x)
    assert read(Reading(), [[low, high]])["error"] == 0


SMALL = RECIPE.replace(iterations=12, every=1, method={"budget": 256, "batch": 2})
FORETOLD = Extrapolation(
    name="foretold",
    run=SMALL,
    settings={"8": {"method": {"rollouts": 8}}, "64": {"method": {"rollouts": 64}}},
    seeds=2,
    readings={"sigmoid": Reading(law=Sigmoid()), "stays": Reading()},
)


def test_the_runs_are_kept_and_laws_are_rows_as_strategies_are(tmp_path: Path) -> None:
    FORETOLD.replace(seed=3).train(tmp_path / "a")
    assert sorted(p.name for p in (tmp_path / "a" / "runs").iterdir()) == ["64-6", "64-7", "8-6", "8-7"]
    rows = rows_of(tmp_path / "a", "eval")
    assert [row["strategy"] for row in rows] == list(FORETOLD.strategies) == ["sigmoid", "stays"]
    assert rows[1]["measures"]["closer"] == [0.0] and {"chosen", "reached"} <= rows[0]["measures"].keys()
    # it is done, so it is not done again; and where it was stopped, its runs are not run again
    FORETOLD.replace(seed=3).train(tmp_path / "a", resume=True)
    assert rows_of(tmp_path / "a", "eval") == rows
    other = SMALL.replace(method={"rollouts": 64}, seed=6)
    other.train(tmp_path / "b" / "runs" / "64-6")
    before = rows_of(tmp_path / "b" / "runs" / "64-6", times=True)
    FORETOLD.replace(seed=3).train(tmp_path / "b", resume=True)
    assert rows_of(tmp_path / "b" / "runs" / "64-6", times=True) == before
    assert [r["measures"] for r in read_rows(tmp_path / "b" / "metrics.jsonl")] == [r["measures"] for r in rows]


def test_runs_of_another_seed_are_others() -> None:
    seeds = [{run.seed for _, run in planned(FORETOLD.replace(seed=s), Path("x")).values()} for s in (0, 1)]
    assert seeds == [{0, 1}, {2, 3}]


def test_a_setting_that_does_not_fit_is_refused_before_anything_is_run() -> None:
    with pytest.raises(ConfigError, match="rollout"):
        FORETOLD.replace(settings={"8": {"method": {"rollout": 8}}})


def test_nothing_held_out_is_refused() -> None:
    with pytest.raises(ConfigError, match="evaluate more often"):
        read(Reading(law=Power()), [[curve(s_shaped, np.array([40.0]))]])
    with pytest.raises(ConfigError, match="nothing lies between since"):
        FORETOLD.replace(readings={"late": {"since": 0.5}})


def test_a_claim_compares_laws_as_it_does_strategies(tmp_path: Path) -> None:
    claim = Claim(
        name="foretold",
        paper="none",
        statement="A law is nearer than nothing.",
        recipe=FORETOLD,
        arms={"run": FORETOLD},
        measure="error",
        expected=Ordering(relations=("run@stays > run by 0.01",)),
        reported=Ordering(relations=("run > run@stays in chosen",)),
        tuning_seeds=(8, 9),
        grid={"run.method.rate": (0.1, 0.2, 0.3, 0.4, 0.5)},
        tuned_by="reached",
        tuning={"seeds": 1, "run.iterations": 6},
        cost="iterations",
        seeds=(1, 2),
    )
    found = run_claim(claim, tmp_path)
    arms = found["arms"]
    assert arms.keys() == {"run", "run@stays"}
    (effect,) = found["effects"]
    means = [arms[side]["measures"]["error"]["value"] for side in ("run@stays", "run")]
    assert effect["mean"] == pytest.approx(means[0] - means[1]) and found["costs"]
    assert len(found["tuned"]["run"]["tried"]) == 5
    with pytest.raises(ConfigError, match="power"):
        run_claim(claim.replace(expected=Ordering(relations=("run@power > run",))), tmp_path / "other")
