"""Intervals, measures, orderings: hand-computed values and coverage."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.stats import (
    Ordering,
    mean_interval,
    overall,
    paired_difference,
    paired_difference_clustered,
    pass_at_k,
    sign_test,
    wilson_interval,
)
from longstride.stats.bootstrap import t_over_z
from longstride.stats.reliable import (
    interquartile_mean,
    performance_profile,
    probability_of_improvement,
    stratified_interval,
)


@pytest.mark.parametrize(
    ("df", "level", "t", "z"), [(1, 0.95, 12.7062, 1.95996), (4, 0.95, 2.7764, 1.95996), (7, 0.9, 1.8946, 1.64485)]
)
def test_students_t_is_wider_than_the_normal_by_the_tables(df: int, level: float, t: float, z: float):
    assert t_over_z(df, level) == pytest.approx(t / z, abs=1e-4)


def test_an_interval_of_many_values_is_the_normal_one():
    values = [0.0, 1.0] * 200
    lo, hi = mean_interval(values, seed=0)
    assert (lo, hi) == pytest.approx((0.5 - 1.96 * 0.025, 0.5 + 1.96 * 0.025), abs=0.003)


def test_an_interval_of_few_values_is_nearly_students():
    values = [0.1, 0.4, 0.5, 0.7, 0.8]  # mean 0.5, standard error 0.1225
    assert mean_interval(values, seed=0) == pytest.approx((0.5 - 2.776 * 0.1225, 0.5 + 2.776 * 0.1225), abs=0.04)


def test_an_interval_is_a_function_of_values_and_seed():
    values = [0.0, 0.2, 0.9, 0.4]
    assert mean_interval(values, 1) == mean_interval(values, 1)
    assert mean_interval(values, 1) != mean_interval(values, 2)


def test_a_lower_level_gives_a_narrower_interval():
    values = list(np.random.default_rng(0).normal(size=40))
    wide, narrow = mean_interval(values, 0, 0.99), mean_interval(values, 0, 0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12))
def test_an_interval_contains_its_mean(values: list[float]):
    lo, hi = mean_interval(values, 0)
    assert lo <= np.mean(values) <= hi


def test_no_values_and_lone_pairs_are_refused():
    with pytest.raises(ValueError, match="empty"):
        mean_interval([], 0)
    with pytest.raises(ValueError, match="at least two"):
        paired_difference([1.0], [0.0], 0)
    with pytest.raises(ValueError, match=r"\(2,\) and \(3,\)"):
        paired_difference([1.0, 2.0], [0.0, 1.0, 2.0], 0)
    assert mean_interval([0.3], 0) == (0.3, 0.3)


@pytest.mark.parametrize("n", [3, 5, 30])
def test_intervals_cover_the_true_mean_about_as_often_as_they_say(n: int):
    rng = np.random.default_rng(n)
    hits = 0
    for repeat in range(200):
        lo, hi = mean_interval(list(rng.normal(0.3, 1.0, size=n)), repeat)
        hits += lo <= 0.3 <= hi
    assert 0.9 <= hits / 200 <= 0.99


def test_what_pairs_share_cancels():
    base = np.random.default_rng(0).normal(0, 10, size=8)
    effect = paired_difference(list(base + 0.5), list(base), 0)
    assert (effect.mean, effect.lo, effect.hi) == pytest.approx((0.5, 0.5, 0.5))


def test_the_two_level_interval_sees_scatter_between_seeds_and_within():
    rng = np.random.default_rng(0)
    zero = np.zeros((6, 50))
    between = np.repeat([[-1.0], [1.0], [0.5], [-0.5], [0.2], [-0.2]], 50, axis=1)
    within = np.tile(rng.permutation([1.0, -1.0] * 25), (6, 1))
    seeds, tasks = (paired_difference_clustered(x, zero, 0) for x in (between, within))
    assert seeds.mean == pytest.approx(0.0)
    by_seed = paired_difference(list(between[:, 0]), [0.0] * 6, 0)
    assert (seeds.lo, seeds.hi) == pytest.approx((by_seed.lo, by_seed.hi), abs=0.05)
    assert tasks.hi - tasks.lo == pytest.approx(2 * 1.96 / 300**0.5 * 1.437, rel=0.1)  # widened for six seeds


def test_two_level_intervals_cover_when_seeds_differ():
    rng = np.random.default_rng(1)
    zero, hits = np.zeros((5, 20)), 0
    for repeat in range(100):
        effect = paired_difference_clustered(rng.normal(size=(5, 1)) + rng.normal(size=(5, 20)), zero, repeat)
        hits += effect.lo <= 0 <= effect.hi
    assert hits >= 90


def test_a_sign_test_counts_the_ways_in_which_coins_fall():
    assert sign_test(2, 0) == pytest.approx(1 / 2) and sign_test(0, 6) == pytest.approx(1 / 32)
    assert sign_test(3, 1) == pytest.approx(2 * (1 + 4) / 16) and sign_test(0, 0) == 1


def test_pass_at_k_counts_subsets():
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6)
    assert pass_at_k(5, 1, 1) == pytest.approx(0.2)
    assert pass_at_k(5, 0, 5) == 0.0
    assert pass_at_k(5, 3, 3) == 1.0
    with pytest.raises(ValueError, match="k=6"):
        pass_at_k(5, 1, 6)


def test_wilson_interval_is_that_of_the_formula():
    assert wilson_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(10, 10)[1] == 1.0
    with pytest.raises(ValueError, match="3 of 2"):
        wilson_interval(3, 2)


ARMS = {
    "growing": [0.60, 0.62, 0.61, 0.63, 0.59],
    "short": [0.40, 0.42, 0.40, 0.43, 0.41],
    "noisy": [0.20, 0.95, 0.55, 0.70, 0.35],
}


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        ("growing > short", "reproduced"),
        ("growing > short by 0.1", "reproduced"),
        ("growing > short by 0.3", "not reproduced"),
        ("growing > short by 0.2", "undecided"),
        ("short > growing", "not reproduced"),
        ("growing > noisy", "undecided"),
        ("growing > growing", "not reproduced"),
    ],
)
def test_a_verdict_follows_from_the_interval_and_the_gap(relation: str, verdict: str):
    (finding,) = Ordering(relations=(relation,)).judge({"success": ARMS}, "success", seed=0)
    assert finding.verdict == verdict
    assert overall([finding]) == verdict


def test_an_effect_is_the_mean_difference_in_the_direction_of_the_relation():
    up, down = Ordering(relations=("growing > short", "short > growing by 0.05")).judge(
        {"success": ARMS}, "success", seed=0
    )
    assert up.effect.mean == pytest.approx(0.198)
    assert (down.effect.mean, down.gap) == pytest.approx((-0.198, 0.05))
    assert overall([up, down]) == "not reproduced"


def test_a_relation_may_name_its_own_measure():
    results = {"success": ARMS, "length": {"short": [1.0, 2.0], "growing": [5.0, 6.0]}}
    relations = ("growing > short", "growing > short by 2 in length", "short > growing in length")
    found = Ordering(relations=relations).judge(results, "success", seed=0)
    assert [f.effect.mean for f in found] == pytest.approx([0.198, 4, -4])
    assert [(f.relation, f.gap) for f in found] == list(zip(relations, (0, 2, 0), strict=True))
    with pytest.raises(ConfigError, match="no results in 'length': unknown arm 'noisy'"):
        Ordering(relations=("noisy > short in length",)).judge(results, "success", seed=0)


def test_orderings_take_results_by_seed_and_task():
    rng = np.random.default_rng(0)
    arms = {"a": rng.random((5, 100)) < 0.8, "b": rng.random((5, 100)) < 0.2}
    assert Ordering(relations=("a > b by 0.2",)).judge({"success": arms}, "success", 0)[0].verdict == "reproduced"


@pytest.mark.parametrize(("seeds", "verdict"), [(2, "undecided"), (4, "undecided"), (5, "reproduced")])
def test_a_few_seeds_that_are_alike_by_chance_decide_nothing(seeds: int, verdict: str):
    arms = {"a": [0.5] * seeds, "b": [0.2] * seeds}
    said = [Ordering(relations=(text,)).judge({"success": arms}, "success", 0)[0] for text in ("a > b by 0.1", "b > a")]
    assert [f.effect.hi - f.effect.lo for f in said] == [0, 0]
    assert [f.verdict for f in said] == [verdict, verdict.replace("reproduced", "not reproduced")]


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ({"growing": [1, 2], "shrt": [1, 2]}, "unknown arm 'short'; did you mean 'shrt'"),
        ({"growing": [1, 2], "short": [1, 2, 3]}, "same two or more seeds"),
        ({"growing": [1], "short": [2]}, "same two or more seeds"),
        ({"growing": [1, float("nan")], "short": [1, 2]}, "a value is missing"),
    ],
)
def test_arms_that_cannot_be_compared_give_one_message(arms: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        Ordering(relations=("growing > short",)).judge({"success": arms}, "success", 0)


@pytest.mark.parametrize("relation", ["a < b", "a>b", "a > b > c", "a > b by much", "a > b in", "a > b in x by 2", ""])
def test_a_relation_that_cannot_be_read_is_refused(relation: str):
    with pytest.raises(ConfigError, match="a relation is"):
        build(Ordering, {"relations": [relation]})


class TestReliable:
    """By the definitions of rliable 1.2.0, whose `metrics` gave the numbers."""

    X = [[0.64, 0.27, 0.04], [0.02, 0.81, 0.91], [0.61, 0.73, 0.54], [0.94, 0.82, 0.0], [0.86, 0.03, 0.73]]
    Y = [[0.14, 0.69, 0.43], [0.24, 0.34, 0.02], [0.1, 0.54, 0.52], [0.49, 0.31, 0.8]]

    def test_the_interquartile_mean_is_that_of_all_scores(self) -> None:
        assert interquartile_mean([[9.0, 2, 1, 3, 0]]) == 2.0  # floor(5 / 4) = 1 at each end
        assert interquartile_mean(self.X) == pytest.approx(0.5766666666666667)
        assert interquartile_mean(self.Y) == pytest.approx(0.38833333333333336)

    def test_the_probability_of_improvement_is_the_mean_over_tasks(self) -> None:
        assert probability_of_improvement(self.X, self.Y) == pytest.approx(0.65)
        assert probability_of_improvement(self.Y, self.X) == pytest.approx(0.35)
        assert probability_of_improvement([[1], [2]], [[2], [2]]) == 0.25  # a tie is half

    def test_a_profile_is_the_share_of_scores_above_a_threshold(self) -> None:
        assert performance_profile(self.X, [0, 0.5, 0.94]) == pytest.approx([14 / 15, 10 / 15, 0])

    def test_runs_are_drawn_anew_within_each_task(self) -> None:
        found = stratified_interval(interquartile_mean, self.X, seed=0)
        # 4,000 samples of rliable's kind: 0.2855 to 0.7733
        assert (found.mean, found.lo, found.hi) == pytest.approx((0.5767, 0.2855, 0.7733), abs=0.05)
        assert found == stratified_interval(interquartile_mean, self.X, seed=0)
        both = stratified_interval(probability_of_improvement, self.X, self.Y, seed=0)
        assert (both.mean, both.lo, both.hi) == pytest.approx((0.65, 0.4, 0.8667), abs=0.05)

    def test_scores_that_cannot_be_compared_are_refused(self) -> None:
        with pytest.raises(ValueError, match="runs, tasks"):
            interquartile_mean([1, 2, 3])
        with pytest.raises(ValueError, match="same tasks, got 3 and 1"):
            probability_of_improvement(self.X, [[1.0]])
