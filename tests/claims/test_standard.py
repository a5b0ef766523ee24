"""The standard that claims are held to: arms are tuned alike, equal cost decides, and a claim is frozen before its
seeds are run."""

import json
import subprocess
from argparse import Namespace
from pathlib import Path
from typing import Any

import climbing
import numpy as np
import pytest
from climbing import CLAIM, RATES, RECIPE, SLIPS, claim
from scipy.special import ndtri, stdtrit

from longstride import papers
from longstride.claims import frozen as freezing
from longstride.claims import stages as staging
from longstride.claims.claim import setting
from longstride.claims.controls import dose_void, learns_nothing, rise, void
from longstride.claims.curves import at_equal_cost, costs_differ, matched
from longstride.claims.frozen import SUFFIX, check_unspent, freeze, frozen_at, hash_of, kept_beside
from longstride.claims.judging import judge, judge_kept
from longstride.claims.kept import read_kept, without_means, write_kept
from longstride.claims.pilot import seeds_needed, told
from longstride.claims.runner import check_tuning, prepare, run_claim
from longstride.claims.stages import Load, stages
from longstride.claims.tuning import arm_run, tune
from longstride.claims.worlds import Among, Between, world
from longstride.core.errors import ConfigError, RunError
from longstride.core.provenance import came_after, committed
from longstride.papers.grpo.recipe import RECIPE as GRPO
from longstride.report.claims import page
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.run.listener import Silent
from longstride.stats import Ordering, Relation, paired_difference_clustered


def tuned(of: Any, folder: Path) -> dict[str, Any]:
    return tune(of, folder, lambda run: Silent(), 1)


class TestTuning:
    def test_two_settings_of_one_folder_are_refused(self, tmp_path: Path):
        with pytest.raises(ConfigError, match="two settings of slips would have one folder, slips,name=a_b,seed=10,"):
            tuned(CLAIM.replace(grid={"name": ("climbing", "a b", "a_b", "c", "d")}), tmp_path)

    def test_every_arm_enters_at_its_own_best(self, tmp_path: Path):
        result = run_claim(CLAIM, tmp_path)
        assert {arm: of["chosen"] for arm, of in result["tuned"].items()} == {
            "firm": {"method.rate": 1.0},
            "slips": {"method.rate": 1.0},
            "hardly": {"method.rate": 1.0},
            "more": {"method.rate": 1.0},
        }
        assert [changes for changes, _ in result["tuned"]["slips"]["tried"]] == [{"method.rate": r} for r in RATES]
        assert [arm["measures"]["success"]["value"] for arm in result["arms"].values()] == [1.0, 0.7, 0.9, 0.89]
        assert result["arms"]["slips"]["changes"] == {"method.slip": 0.3}  # what it is about, not what tuning chose
        assert result["verdict"] == "reproduced" and result["because"] == []

    def test_the_weaker_side_is_tuned_first_and_on_tuning_seeds_alone(self, tmp_path: Path):
        seen: list[str] = []

        def watch(run: str) -> Silent:
            seen.append(run)
            return Silent()

        tune(CLAIM, tmp_path, watch, 1)
        assert seen[0] == "slips,rate=0.01,seed=10" and seen[-1] == "more,rate=1.9,seed=11" and len(seen) == 48

    def test_an_arm_that_is_about_a_setting_or_lacks_it_keeps_its_own(self, tmp_path: Path):
        gentle = RECIPE.replace(method={"rate": 0.05})
        found = tuned(CLAIM.replace(arms={**CLAIM.arms, "gentle": gentle}), tmp_path)
        assert found["gentle"] == {"chosen": {}, "tried": [], "ends": []}
        own = tuned(claim(grid={"slips: method.rate": RATES}, tuning_seeds=(10,)), tmp_path / "own")
        assert [len(own[arm]["tried"]) for arm in ("firm", "slips")] == [0, 6]
        with pytest.raises(ConfigError, match="no arm has method.rte"):
            tuned(claim(grid={"method.rte": RATES}, tuning_seeds=(10,)), tmp_path)

    def test_of_level_settings_the_one_nearest_to_the_middle_is_taken(self, tmp_path: Path):
        flat = claim(grid={"method.samples": (1, 2, 3, 4, 5)}, tuning_seeds=(10,))
        firm = tuned(flat, tmp_path)["firm"]
        assert [mean for _, mean in firm["tried"]] == pytest.approx([1 - 0.7**4] * 5, abs=1e-6)
        assert firm["chosen"] == {"method.samples": 3}

    def test_ends_are_those_of_the_numbers_of_a_grid_that_has_other_values_too(self, tmp_path: Path):
        of = claim(grid={"problem.noise": (None, 0.0, 0.05, 0.1, 0.2)}, tuning_seeds=(10,))
        firm = tuned(of, tmp_path)["firm"]
        assert (
            firm["chosen"] == {"problem.noise": 0.2} and firm["ends"] == ["problem.noise"] and len(firm["tried"]) == 5
        )

    def test_the_lowest_is_best_where_the_claim_says_so(self, tmp_path: Path):
        found = tuned(CLAIM.replace(lower_is_better=True), tmp_path)
        assert found["firm"]["chosen"] == {"method.rate": 0.01} and found["firm"]["ends"] == ["method.rate"]

    def test_a_weaker_side_that_is_best_at_an_end_of_its_grid_leaves_the_claim_undecided(self, tmp_path: Path):
        short = CLAIM.replace(grid={"method.rate": (0.01, 0.02, 0.03, 0.04, 0.1)})
        weak = short.replace(arms={**CLAIM.arms, "firm": RECIPE.replace(method={"rate": 1.0})})
        result = run_claim(weak, tmp_path)
        assert result["effects"][0]["verdict"] == "reproduced" and result["verdict"] == "undecided"
        assert result["because"][0] == "slips is at its best at an end of the grid, method.rate=0.1"

    def test_where_the_lowest_is_best_the_weaker_side_stands_on_the_left(self):
        lowest = CLAIM.replace(lower_is_better=True)
        assert CLAIM.weaker == ["slips"] and lowest.weaker == ["firm"]
        assert lowest.replace(tuned_by="samples").weaker == ["slips"]  # what is compared is best when highest
        curves = {
            arm: [[{"iterations": 0, "values": {"success": [end, end]}}]] * 5
            for arm, end in {"firm": 0.9, "slips": 0.2, "hardly": 0.5, "more": 0.49}.items()
        }
        for end, why in (("firm", ["firm is at its best at an end of the grid, rate=1.9"]), ("slips", [])):
            ends = {a: {"chosen": {"rate": 1.9}, "ends": ["rate"] * (a == end), "tried": []} for a in curves}
            found = judge(lowest.replace(cost=""), curves, ends, range(5))
            assert found["because"] == why and found["verdict"] == ("undecided" if why else "reproduced")

    def test_too_few_seeds_are_named_as_what_forbids_a_verdict(self, tmp_path: Path):
        result = run_claim(CLAIM, tmp_path, seeds=(0, 1, 2))
        assert result["verdict"] == "undecided"
        assert result["because"] == ["3 seeds, and fewer than 5 decide nothing"]

    def test_runs_that_tune_may_be_shorter_and_those_that_decide_are_not(self, tmp_path: Path):
        result = run_claim(CLAIM.replace(tuning={"iterations": 1}), tmp_path)
        assert result["tuned"]["firm"]["tried"][0] == [{"method.rate": 0.01}, 0.01]
        assert result["arms"]["firm"]["measures"]["samples"]["value"] == 32

    def test_sides_go_on_at_full_length_until_no_neighbour_is_better(self, tmp_path: Path):
        of = CLAIM.replace(tuning={"problem.top": 0.0})  # where nothing is to climb, all rates are level
        found = tuned(of, tmp_path)
        assert [changes["method.rate"] for changes, _ in found["firm"]["whole"]] == [0.1, 0.03, 0.3, 1.0, 1.9]
        assert found["firm"]["chosen"] == {"method.rate": 1.0} and found["firm"]["ends"] == []
        assert "whole" not in found["more"] and "whole" not in tuned(CLAIM, tmp_path / "whole")["firm"]

    def test_a_grid_that_cannot_be_tried_is_refused(self):
        with pytest.raises(ValueError, match="at least 5 items"):
            claim(grid={"method.rate": (0.1, 0.2)}, tuning_seeds=(10,))
        with pytest.raises(ValueError, match="tried on tuning_seeds"):
            claim(grid={"method.rate": RATES})
        with pytest.raises(ValueError, match=r"\[4\] are both"):
            claim(tuning_seeds=(4, 6))
        with pytest.raises(ValueError, match="name the cost"):
            claim(equal_cost=True)


class TestCost:
    ARMS = {"firm": RECIPE.replace(method={"samples": 10}), "slips": SLIPS}

    def test_arms_that_cost_alike_are_judged(self, tmp_path: Path):
        result = run_claim(claim(cost="samples"), tmp_path)
        assert result["costs"] == {"firm > slips by 0.1": 0.0} and result["verdict"] == "reproduced"

    def test_nothing_is_judged_where_costs_differ_by_more_than_a_twentieth(self, tmp_path: Path):
        result = run_claim(claim(cost="samples", arms=self.ARMS), tmp_path)
        assert result["costs"] == {"firm > slips by 0.1": 0.2}
        assert result["effects"][0]["verdict"] == "reproduced" and result["verdict"] == "undecided"
        assert result["because"] == ["firm > slips by 0.1: samples differ by 20 %"]

    def test_at_equal_cost_each_arm_is_read_where_the_thriftier_one_ends(self, tmp_path: Path):
        result = run_claim(claim(cost="samples", equal_cost=True, arms=self.ARMS), tmp_path)
        firm = [1 - 0.7**k for k in range(5)]
        slipped = 0.0
        for _ in range(4):
            slipped += 0.3 * (1 - slipped) - 0.3
        at = firm[3] + 0.2 * (firm[4] - firm[3])  # 32 samples lie between 30 and 40
        assert result["effects"][0]["mean"] == pytest.approx(at - slipped, abs=1e-5)
        assert result["verdict"] == "reproduced"

    def test_a_curve_without_evaluations_on_the_way_is_refused_before_anything_is_run(self, tmp_path: Path):
        rare = claim(
            cost="samples",
            equal_cost=True,
            tuning_seeds=(10, 11),
            arms={arm: of.replace(every=4) for arm, of in self.ARMS.items()},
        )
        for judged in (run_claim, prepare, lambda of, _: stages(of)):
            with pytest.raises(ConfigError, match="firm is to be read at equal samples.* of 4 iterations every 4;"):
                judged(rare, tmp_path)
        assert not [path for path in tmp_path.rglob("*") if path.name == "metrics.jsonl"]
        early = [{"samples": n, "strategy": "", "values": {"samples": [n], "success": [0.5]}} for n in (0, 40)]
        with pytest.raises(ConfigError, match="firm cannot be read at 40 samples: its evaluations are at 0, 40;"):
            at_equal_cost(Relation.of("firm > slips"), "success", "samples", {"firm": [early], "slips": [early]})

    def test_what_training_spends_is_a_cost(self):
        def curve(*steps: int) -> list[dict[str, Any]]:
            return [{"env_steps": n, "values": {"success": [n / 100, None, 1.0]}} for n in steps]

        curves = {"long": [curve(0, 50, 100), curve(0, 60, 120)], "short": [curve(0, 40, 80), curve(0, 40, 80)]}
        relation = Relation.of("long > short")
        assert costs_differ(relation, "env_steps", curves) == pytest.approx(30 / 110)
        found = at_equal_cost(relation, "success", "env_steps", curves)
        np.testing.assert_allclose(found["long"], [[0.8, 1], [0.8, 1]])
        np.testing.assert_allclose(found["short"], found["long"])

    def test_a_way_to_spend_is_read_from_its_first_cost_on(self):
        def way(*spent: int) -> list[dict[str, Any]]:
            return [{"strategy": "", "values": {"spent_tokens": [n], "success": [n / 100]}} for n in spent]

        curves = {"turns": [way(10, 11, 12)], "votes": [way(10, 20, 40)], "dear": [way(13, 20, 40)]}
        found = at_equal_cost(Relation.of("turns > votes"), "success", "spent_tokens", curves)
        np.testing.assert_allclose([found["turns"], found["votes"]], [[[0.12]], [[0.12]]])
        with pytest.raises(ConfigError, match="dear cannot be read at 12 spent_tokens"):
            at_equal_cost(Relation.of("turns > dear"), "success", "spent_tokens", curves)

    def test_ways_to_spend_at_the_test_are_not_matched_by_what_training_spent(self):
        def ends(*by_cost: float) -> list[list[dict[str, Any]]]:
            spent = {"env_steps": 100, "sampled_tokens": 900, "iterations": 4}
            return [[spent | {"strategy": "", "values": {"success": [y]}} for y in by_cost]] * 2

        start = {"env_steps": 0, "sampled_tokens": 0, "iterations": 0, "strategy": "", "values": {"success": [0.0]}}
        curves = {"a": [[start, *points] for points in ends(0.5)], "a@turns": ends(0.5, 0.6), "a@votes": ends(0.5, 0.9)}
        curves["b"] = curves["a"]
        found = matched(["a@turns > a@votes", "a > b"], "success", curves)
        assert [e["relation"] for e in found] == ["a > b", "a > b"]
        kept = read_kept(Path(papers.__file__).parent / "tti" / "results" / "spent.json")
        assert kept["matched"] and "at equal env steps" not in page(kept, drawn=False)

    def test_a_cost_that_falls_is_refused(self):
        def way(*spent: int) -> list[dict[str, Any]]:
            return [{"strategy": "", "values": {"spent_tokens": [n], "success": [0.5]}} for n in spent]

        curves = {"a": [way(10, 30, 20)], "b": [way(10, 20, 40)]}
        with pytest.raises(ConfigError, match="it falls from one evaluation of a to a later one"):
            at_equal_cost(Relation.of("a > b"), "success", "spent_tokens", curves)

    def test_a_dose_at_equal_cost_is_read_where_each_of_its_relations_has_tasks(self):
        """A task that failed in one relation is there in the others."""

        def curve(end: float, failed: bool = False) -> list[dict[str, Any]]:
            values = [0.0, end / 2, end]
            return [
                {"strategy": "", "env_steps": k, "values": {"success": [v, None if failed else 0.0, v]}}
                for k, v in enumerate(values)
            ]

        ends = {"hardly": 0.8, "more": 0.6, "slips": 0.4}
        curves = {arm: [curve(end, failed=arm == "slips") for _ in range(5)] for arm, end in ends.items()}
        curves["firm"] = [curve(1.0) for _ in range(5)]
        dosed = claim(
            cost="env_steps", equal_cost=True, control=None, dose=("firm > hardly", "firm > more", "firm > slips")
        )
        found = judge(dosed, curves, {arm: {"chosen": {}, "ends": []} for arm in curves}, range(5))["dose"]
        assert found["means"] == pytest.approx([0.2 * 2 / 3, 0.4 * 2 / 3, 0.6]) and found["verdict"] == "reproduced"


class TestPilot:
    def test_it_runs_the_arms_at_their_best_on_tuning_seeds(self, tmp_path: Path):
        _, pilot = prepare(CLAIM, tmp_path)
        assert pilot["mean"] == pytest.approx(0.3) and pilot["sd"] == 0 and pilot["seeds"] == [10, 11]
        assert (pilot["needed"], pilot["claimed"]) == (5, 5)
        assert told(pilot).startswith(
            "firm > slips by 0.1: +0.300, seeds differ by 0.000 (of 2); for its margin 5 seeds"
        )
        assert {path.name for path in (tmp_path / "climbing").iterdir()} == {"tuning"}

    def test_a_control_that_could_not_fail_is_told_before_its_seeds_are_spent(self, tmp_path: Path):
        _, pilot = prepare(CLAIM, tmp_path)
        assert "void" not in pilot and "void" not in told(pilot)
        full = CLAIM.replace(name="full", control=Ordering(relations=("firm > hardly by 0.1",)))
        _, pilot = prepare(full, tmp_path)
        assert told(pilot).endswith("; the control firm > hardly by 0.1 is void: an arm of it is at the ceiling")

    def test_a_measure_that_there_is_not_is_refused_before_seeds_are_spent(self, tmp_path: Path):
        absent = CLAIM.replace(reported=Ordering(relations=("firm > slips in joy",)))
        with pytest.raises(ConfigError, match="joy"):
            prepare(absent, tmp_path)

    def test_with_so_many_seeds_an_interval_and_its_power_fit_into_the_margin(self):
        rng, margin = np.random.default_rng(0), 0.05
        pilot = rng.normal(0, 0.06, (400, 1)) + rng.normal(0, 0.3, (400, 40))
        n = seeds_needed(pilot, margin)
        assert n is not None
        drawn = rng.normal(0, 0.06, (n, 1)) + rng.normal(0, 0.3, (n, 40))
        e = paired_difference_clustered(drawn, np.zeros_like(drawn), 0)
        sd = np.hypot(0.06, 0.3 / np.sqrt(40))
        assert (e.hi - e.lo) / 2 + 0.84 * sd / np.sqrt(n) == pytest.approx(margin, rel=0.2)

    def test_seeds_that_differ_less_than_their_tasks_do_are_taken_to_differ_by_chance(self):
        level, n = np.array([[1.0, -1.0]] * 3), 55  # tasks scatter by sqrt(2), so the mean of two by 1
        assert stdtrit(n - 1, 0.975) * np.sqrt(2 / n) + ndtri(0.8) / np.sqrt(n) == pytest.approx(0.5, abs=0.005)
        assert seeds_needed(level, 0.5) == n

    def test_more_seeds_than_can_be_run_are_no_number(self):
        assert seeds_needed(np.array([[0.0], [9.0]]), 0.001) is None

    def test_a_relation_without_a_margin_has_no_number_of_seeds(self, tmp_path: Path):
        with pytest.raises(ConfigError, match="has no margin"):
            prepare(CLAIM.replace(expected=Ordering(relations=("firm > slips",))), tmp_path)


class TestWorlds:
    DRAWN = {"problem.top": Between(low=0.5, high=1.5), "method.slip": Between(low=0.05, high=0.1)}

    def test_two_seeds_draw_two_worlds_and_all_arms_of_a_seed_share_one(self):
        drawn = CLAIM.replace(worlds=self.DRAWN)
        runs = {(arm, seed): arm_run(drawn, arm, {}, seed) for arm in drawn.arms for seed in (1, 2)}
        tops = {key: run.as_data()["problem"]["top"] for key, run in runs.items()}
        assert len({tops["firm", 1], tops["firm", 2]}) == 2
        assert all(tops[arm, seed] == tops["firm", seed] for arm, seed in tops)

    def test_an_arm_that_sets_a_constant_otherwise_keeps_its_own(self):
        drawn = CLAIM.replace(worlds=self.DRAWN)
        slips = [arm_run(drawn, arm, {}, 1).as_data()["method"]["slip"] for arm in ("firm", "slips", "hardly")]
        assert 0.05 <= slips[0] <= 0.1 and slips[1:] == [0.3, 0.1]

    def test_a_constant_that_is_added_changes_no_other(self):
        assert world(self.DRAWN | {"a": Among(values=(1, 2))}, 5).items() >= world(self.DRAWN, 5).items()

    def test_ranges_are_even_in_what_they_say_and_hold_their_ends(self):
        rng = np.random.default_rng(0)
        logs = [Between(low=0.01, high=1.0, log=True).draw(rng) for _ in range(400)]
        assert min(logs) >= 0.01 and max(logs) <= 1 and np.median(logs) == pytest.approx(0.1, rel=0.3)
        whole = [Between(low=1, high=3).draw(rng) for _ in range(300)]
        assert {type(n) for n in whole} == {int} and all(70 < whole.count(n) < 130 for n in (1, 2, 3))
        table = Between(low=0.0, high=1.0, shape=(2, 3)).draw(rng)
        assert [len(row) for row in table] == [3, 3] and type(table) is tuple
        with pytest.raises(ValueError, match="a range goes up"):
            Between(low=1.0, high=1.0)
        with pytest.raises(ValueError, match="above 0 for log"):
            Between(low=0, high=1, log=True)

    def test_the_share_of_worlds_is_said_with_the_constant_that_it_turns_with(self, tmp_path: Path):
        steep, quick = Between(low=0.0, high=0.6), RECIPE.replace(method={"rate": 1.0})
        drawn = claim(
            arms={"firm": quick, "slips": quick.replace(method={"slip": 0.2})},
            worlds={"problem.top": Between(low=0.9, high=1.0), "method.slip": steep},
            control=None,
            dose=("more > hardly", "firm > slips", "firm > hardly"),
            seeds=tuple(range(40)),
        )
        result = run_claim(drawn, tmp_path)
        worlds = result["effects"][0]["worlds"]
        slips = [world(drawn.worlds, seed)["method.slip"] for seed in range(40)]
        holds = [0.2 - slip > 0.1 for slip in slips]  # slipping costs what it is, and the drawn slip is that of `firm`
        assert worlds["share"] == pytest.approx(np.mean(holds)) and worlds["lo"] < np.mean(holds) < worlds["hi"] < 0.5
        assert worlds["against"] == pytest.approx(np.mean([slip > 0.2 for slip in slips]))
        assert list(worlds["turns"]) == ["method.slip", "problem.top"]
        low, middle, high = worlds["turns"]["method.slip"]
        assert low["mean"] > middle["mean"] > high["mean"] and (low["from"], high["to"]) == pytest.approx(
            (min(slips), max(slips)), abs=1e-5
        )
        assert result["verdict"] == "not reproduced" and "of the worlds [" in result["because"][0]

    def test_a_world_that_an_arm_refuses_is_named_before_anything_is_run(self, tmp_path: Path):
        drawn = CLAIM.replace(worlds={"problem.height": Between(low=0.0, high=1.0)})
        with pytest.raises(ConfigError, match=r"slips: .*height.*in the world that seed 10 draws"):
            run_claim(drawn, tmp_path)
        assert not list(tmp_path.rglob("metrics.jsonl"))
        with pytest.raises(ConfigError, match="is drawn by the seed and tuned"):
            CLAIM.replace(worlds={"method.rate": Between(low=0.1, high=1.0)})
        with pytest.raises(ConfigError, match="is drawn by the seed and tuned"):
            CLAIM.replace(worlds={"method.slip": Between(low=0.1, high=1.0)}, grid={"slips: method.slip": RATES})
        with pytest.raises(ConfigError, match="folders are named by arms"):
            CLAIM.replace(arms={**CLAIM.arms, "x:y": RECIPE})


class TestControls:
    def reason(self, better: float, worse: float, spread: float = 0.02, **changes: Any) -> str:
        arms = claim().arms
        of = claim(arms={**arms, "hardly": arms["hardly"].replace(iterations=changes.pop("iterations", 4))}, **changes)
        scatter = np.array([[-spread], [0.0], [spread]])
        return void(of, of.relations[1], better + scatter, worse - scatter)

    def test_one_that_has_room_is_valid(self):
        assert self.reason(0.5, 0.5) == ""

    def test_what_could_not_have_failed_is_void_and_says_why(self):
        assert self.reason(0.5, 0.5, iterations=1) == "its arms run shorter than those of the effect"
        wide = Ordering(relations=("hardly > more by 0.2",))
        assert self.reason(0.5, 0.5, control=wide) == "its margin is larger than that of the effect, 0.1"
        assert self.reason(0.97, 0.9) == "an arm of it is at the ceiling"
        assert self.reason(0.2, 0.03) == "an arm of it is at the floor"
        assert self.reason(0.2, 0.03, scale=(-1.0, 1.0)) == ""
        assert self.reason(0.5, 7.0) == "success leaves the scale of the claim, 0 to 1"
        assert self.reason(0.5, 0.5, spread=1e-6) == "its arms are equal by algebra"

    def test_a_claim_whose_controls_are_void_or_that_has_none_is_not_reproduced(self, tmp_path: Path):
        result = run_claim(claim(control=Ordering(relations=("slips > firm by 0.1",))), tmp_path / "a")
        assert result["control_effects"][0]["void"] == "an arm of it is at the floor"
        assert (result["verdict"], result["because"]) == ("undecided", ["every control is void"])
        result = run_claim(claim(control=None), tmp_path / "b")
        assert (result["verdict"], result["because"]) == ("undecided", ["it has no control"])

    def test_a_control_that_shows_the_effect_counts_wherever_its_arms_stand(self, tmp_path: Path):
        result = run_claim(claim(control=Ordering(relations=("firm > slips by 0.05",))), tmp_path)
        (control,) = result["control_effects"]
        assert (control["verdict"], "void" in control, result["verdict"]) == ("reproduced", False, "not reproduced")

    def test_a_relation_that_was_only_reported_shows_nothing_when_it_decides_later(self, tmp_path: Path):
        first = run_claim(claim(reported=Ordering(relations=("firm > more by 0.05",))), tmp_path)
        write_kept(tmp_path / "first.json", first)
        promoted = claim(expected=Ordering(relations=("firm > more by 0.05",)))
        again = judge_kept(promoted, tmp_path / "first.json", tmp_path / "again")
        assert again["effects"][0]["verdict"] == "reproduced" and again["verdict"] == "undecided"
        assert again["because"] == ["firm > more by 0.05 was only reported when the claim was run"]

    def test_a_cost_that_nothing_spends_is_refused(self):
        curve = [{"sampled_tokens": 0, "values": {"success": [0.5, 0.5]}}] * 3
        with pytest.raises(ConfigError, match="sampled_tokens is not measured by these runs"):
            costs_differ(Relation.of("firm > slips"), "sampled_tokens", {"firm": [curve] * 5, "slips": [curve] * 5})

    def test_an_effect_that_rises_with_its_cause_is_a_control(self, tmp_path: Path):
        dose = ("firm > hardly", "firm > more", "firm > slips")
        result = run_claim(claim(control=None, dose=dose), tmp_path)
        assert result["verdict"] == "reproduced" == result["dose"]["verdict"] and len(result["dose"]["means"]) == 3

    def test_an_effect_that_does_not_rise_with_its_cause_is_not_reproduced(self, tmp_path: Path):
        result = run_claim(claim(control=None, dose=("firm > slips", "firm > more", "firm > hardly")), tmp_path)
        assert result["effects"][0]["verdict"] == "reproduced" and result["verdict"] == "not reproduced"

    def test_a_dose_is_void_where_no_effect_could_show_below_the_strongest(self, tmp_path: Path):
        of = claim(control=None, dose=("firm > hardly", "firm > more", "firm > slips"))
        assert dose_void(of, [(0.99, 0.98), (0.97, 0.96), (0.9, 0.2)]).startswith("both arms stand at the ceiling")
        assert dose_void(of, [(0.99, 0.98), (0.03, 0.04), (0.9, 0.2)]).startswith(
            "both arms stand at the ceiling or the f"
        )
        assert dose_void(of, [(0.99, 0.98), (0.97, 0.93), (0.9, 0.2)]) == ""
        assert dose_void(of.replace(scale=(-1.0, 2.0)), [(0.99, 0.98), (0.97, 0.96), (0.9, 0.2)]) == ""
        assert dose_void(of.replace(scale=(0.0, 0.5)), [(0.99, 0.98), (0.97, 0.96), (0.9, 0.2)]) == "", (
            "outside the scale"
        )
        low = of.replace(scale=(-50.0, 1.0))
        result = run_claim(low, tmp_path)
        assert result["verdict"] == "undecided" and result["because"] == [f"the dose is void: {result['dose']['void']}"]
        kept = {key: value for key, value in result["dose"].items() if key != "void"}
        first = result | {"verdict": "reproduced", "because": [], "dose": kept}
        write_kept(tmp_path / "first.json", first)
        again = judge_kept(low, tmp_path / "first.json", tmp_path / "again")
        assert (again["verdict"], again["because"]) == ("undecided", result["because"])

    def test_a_step_back_on_the_way_is_no_rise(self):
        at = [np.full((5, 1), mean) for mean in (0.1, 0.4, 0.3)]
        assert rise(("a > b",) * 3, at)["verdict"] == "undecided"
        at.sort(key=lambda of: of[0, 0])
        assert rise(("a > b",) * 3, at)["verdict"] == "reproduced"
        assert rise(("a > b",) * 3, at[::-1])["verdict"] == "not reproduced"
        assert rise(("a > b",) * 3, [of[:4] for of in at[::-1]])["verdict"] == "undecided", "four seeds decide nothing"
        with pytest.raises(ValueError, match="3 strengths or more, got 2"):
            claim(dose=("firm > slips", "firm > more"))

    def test_where_one_strength_has_more_tasks_seeds_alone_are_pairs(self):
        seeds = np.arange(8.0)[:, None]
        found = rise(("a > b",) * 3, [seeds + np.zeros(3), seeds + np.ones(5), seeds + 2.0 + np.array([-1.0, 1.0])])
        assert found["means"] == [3.5, 4.5, 5.5] and (found["mean"], found["lo"], found["hi"]) == (2.0, 2.0, 2.0)


def test_what_was_gained_is_the_end_minus_the_start_of_the_same_task(tmp_path: Path):
    result = run_claim(claim(arms={"firm": RECIPE, "slips": SLIPS}, measure="gained_success"), tmp_path)
    assert result["arms"]["firm"]["measures"]["gained_success"]["by_seed"] == pytest.approx([1 - 0.7**4] * 5)
    higher = RECIPE.replace(problem={"top": 0.5})  # it begins at success .5, half way to what it can have
    result = run_claim(claim(arms={"firm": higher, "slips": SLIPS}, measure="gained_success"), tmp_path / "higher")
    assert result["arms"]["firm"]["measures"]["gained_success"]["value"] == pytest.approx(0.5 * (1 - 0.7**4), abs=1e-5)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a commit; `frozen.json` would stand in it."""
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1")
    commit_all(tmp_path)
    return tmp_path / f"climbing{SUFFIX}"


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit_all(folder: Path) -> str:
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "more")
    return git(folder, "rev-parse", "HEAD")


def test_a_setting_of_one_of_several_is_found_by_its_number():
    data = {"levels": [{"rate": 1.0}, {"rate": 2.0}], "rate": 3.0}
    places = ("levels.1.rate", "levels.2.rate", "levels.x.rate", "levels.1", "rate.0")
    assert [setting(data, place) for place in places] == [2.0, None, None, {"rate": 2.0}, None]


@pytest.mark.parametrize(
    ("design", "means", "warns"),
    [
        ({}, [0.0, 0.04], True),
        ({}, [0.0, 0.06], False),
        ({"scale": (-10.0, 10.0)}, [-9.5, -9.9], True),
        ({"lower_is_better": True}, [0.0, 0.0], False),
        ({"tuned_by": "loss"}, [0.0, 0.0], False),
        ({}, [], False),
    ],
)
def test_an_arm_that_learns_nothing_at_any_setting_is_pointed_at(design: Any, means: list[float], warns: bool):
    said = learns_nothing(design, [[{"method.rate": 1.0}, mean] for mean in means])
    assert said.startswith("at the floor at each of them") == warns and bool(said) == warns


def test_the_page_of_a_claim_points_at_an_arm_that_learns_nothing(tmp_path: Path):
    result = run_claim(CLAIM, tmp_path)
    assert "at the floor at each" not in page(result, drawn=True)
    result["tuned"]["slips"]["tried"] = [[changes, 0.01] for changes, _ in result["tuned"]["slips"]["tried"]]
    line = next(line for line in page(result, drawn=True).splitlines() if line.startswith("- slips: "))
    assert "the best of 6; at the floor at each of them, so" in line


class TestCheckTuning:
    def test_the_weaker_sides_of_a_kept_result_are_tried_at_full_length_beside_their_settings(self, tmp_path: Path):
        of = CLAIM.replace(tuning={"problem.top": 0.0})
        kept = run_claim(of, tmp_path / "first")
        for arm in kept["tuned"].values():  # as tuning was before it went on at full length
            arm |= {"chosen": {"method.rate": 0.3}}
            arm.pop("whole", None)
        path = tmp_path / "kept.json"
        write_kept(path, kept)
        found = check_tuning(of, path, tmp_path)
        assert found == json.loads((tmp_path / "climbing.json").read_text())
        assert {key for key in found if found[key] != kept[key]} == {"tuned"}
        whole = {
            arm: [changes["method.rate"] for changes, _ in t.get("whole", [])] for arm, t in found["tuned"].items()
        }
        assert whole == {"firm": [], "slips": [0.3, 0.1, 1.0, 1.9], "hardly": [], "more": []}
        said = page(found, drawn=True)
        assert "Arms enter at their best on other seeds, in runs with `problem.top` = 0.0:" in said
        assert "- slips: `method.rate` = 0.3, the best of 6; at full length another is better by 0.700, of 4" in said
        with pytest.raises(ConfigError, match="of an earlier form of climbing, which has otherwise: seeds"):
            check_tuning(of.replace(seeds=(5, 6, 7, 8, 9)), path, tmp_path)
        write_kept(path, run_claim(CLAIM, tmp_path / "long"))
        with pytest.raises(ConfigError, match="tuned at their full length"):
            check_tuning(CLAIM, path, tmp_path)


class TestStages:
    def test_what_is_said_beforehand_is_what_is_run(self, tmp_path: Path):
        of = CLAIM.replace(grid={"firm: method.rate": RATES}, tuning={"iterations": 2})
        prepare(of, tmp_path)
        before, told = len(list((tmp_path / of.name).glob("*/*/metrics.jsonl"))), stages(of)
        run_claim(of, tmp_path)
        after = len(list((tmp_path / of.name).glob("**/metrics.jsonl")))
        rates = len(RATES)
        assert told == {
            "tuning": Load(2 * rates, 2 * rates * 2, 0),
            "pilot": Load(2 * (4 + 2), 2 * (4 + 2) * RECIPE.iterations, 0),  # and firm beside its best
            "seeds": Load(5 * 4, 5 * 4 * RECIPE.iterations, 0),
        }
        assert before == told["tuning"].runs + told["pilot"].runs
        assert after - before == told["seeds"].runs, "what is tuned is read again"

    def test_a_pilot_of_arms_that_are_tuned_at_full_length_is_among_their_tuning(self, tmp_path: Path):
        prepare(CLAIM, tmp_path)
        made = len(list((tmp_path / CLAIM.name / "tuning").iterdir()))
        told = stages(CLAIM)
        assert told["pilot"].runs == 0 and told["tuning"].runs == made

    def test_the_command_says_it_and_runs_nothing(self, tmp_path: Path, monkeypatch: Any, capsys: Any):
        from longstride.cli.main import main

        monkeypatch.chdir(tmp_path)
        assert main(["claim", str(Path(climbing.__file__)), "--dry-run"]) == 0
        assert "  seeds: 20 runs, 80 iterations, 0 evaluations\n" in capsys.readouterr().out and not list(
            tmp_path.iterdir()
        )
        for grid, said in (
            ({"method.rat": RATES}, "no arm has method.rat to be tuned"),
            ({"method.rate": (*RATES, "a")}, "method.rate: Input should be a valid number"),
        ):
            with pytest.raises(ConfigError, match=said):
                stages(CLAIM.replace(grid=grid))
        assert main(["claim", str(Path(climbing.__file__)), "--estimate", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (
            told["seeds"] == {"runs": 20, "iterations": 80, "evaluations": 0}
            and 0 <= told["hours"] < 1
            and not list(tmp_path.iterdir())
        )

    def test_hours_are_those_of_all_runs_iterations_and_evaluations_by_the_mean_of_the_sides(self, monkeypatch: Any):
        monkeypatch.setattr(staging, "stages", lambda claim: {"tuning": Load(4, 40, 5), "seeds": Load(6, 60, 15)})
        seconds = {"firm": (3600, 36, 360), "slips": (7200, 72, 1080)}
        monkeypatch.setattr(staging, "_seconds", lambda claim, arm: seconds[arm])
        assert staging.hours(CLAIM) == pytest.approx(1.5 * 10 + 0.015 * 100 + 0.2 * 20)

    @pytest.mark.parametrize(
        ("evaluation", "made"), [({"every": 2}, 4), ({"every": 2, "start": False}, 3), ({"every": 9}, 2)]
    )
    def test_evaluations_are_those_of_the_start_of_each_so_many_iterations_and_of_the_end(
        self, evaluation: Any, made: int
    ):
        assert staging._evaluations(GRPO.replace(iterations=5, evaluation=evaluation)) == made

    def test_the_runs_that_a_law_is_fitted_to_are_counted(self):
        law = Extrapolation(
            name="law", run=RECIPE, seeds=3, readings={"a": Reading()}, settings={"a": {}, "b": {"iterations": 2}}
        )
        of = CLAIM.model_copy(update={"arms": {"firm": law}, "grid": {}, "tuning_seeds": (), "seeds": (0, 1)})
        assert stages(of)["seeds"] == Load(2, 2 * 3 * (RECIPE.iterations + 2), 0)

    def test_of_a_computed_problem_the_whole_run_is_measured_and_of_an_extrapolation_all_its_runs(
        self, monkeypatch: Any
    ):
        seconds = iter((0.0, 7.0, 0.0, 7.0))
        monkeypatch.setattr(staging.os, "times", lambda: [next(seconds), 0, 0, 0, 0])
        assert staging._seconds(CLAIM, "firm") == (7.0, 0.0, 0.0)
        law = {"last": Reading()}
        many = Extrapolation(name="many", run=RECIPE, seeds=3, readings=law, settings={"a": {}, "b": {"iterations": 2}})
        of = CLAIM.model_copy(update={"arms": {"firm": many}})
        assert staging._seconds(of, "firm") == (42.0, 0.0, 0.0)


class TestFrozen:
    @pytest.fixture(autouse=True)
    def _clean_code(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(freezing, "clean", lambda: True)  # whoever runs the tests may be at work on the code

    def test_unspent_seeds_are_refused_until_the_hash_is_committed(self, checkout: Path):
        runs = checkout.parent / "runs"
        tried, pilot = prepare(CLAIM, runs)
        with pytest.raises(ConfigError, match="no hash of it is committed, and its seeds are unspent"):
            run_claim(CLAIM, runs, place=checkout)
        freeze(CLAIM, checkout, tried, pilot)
        with pytest.raises(ConfigError, match="no hash of it is committed"):
            run_claim(CLAIM, runs, place=checkout)
        git(checkout.parent, "add", checkout.name)
        git(checkout.parent, "commit", "-qm", "frozen")
        result = run_claim(CLAIM, runs, place=checkout)
        head = git(checkout.parent, "rev-parse", "HEAD")
        assert result["frozen"] == {"hash": hash_of(CLAIM, tried), "commit": head}
        assert result["tuned"]["firm"]["chosen"] == {"method.rate": 1.0} and result["pilot"]["needed"] == 5

    def test_a_claim_that_differs_from_what_was_frozen_is_refused(self, checkout: Path):
        freeze(CLAIM, checkout, tuned(CLAIM, checkout.parent / "runs"), {})
        commit_all(checkout.parent)
        assert frozen_at(CLAIM, checkout)
        for other in (
            CLAIM.replace(expected=Ordering(relations=("firm > slips by 0.05",))),
            CLAIM.replace(seeds=(0, 1, 2, 3)),
            CLAIM.replace(arms={**CLAIM.arms, "slips": SLIPS.replace(method={"slip": 0.4})}),
            CLAIM.replace(statement="Who slips falls."),
            CLAIM.replace(cost=""),
        ):
            with pytest.raises(ConfigError, match="it is not what was frozen"):
                frozen_at(other, checkout)

    def test_changed_code_is_refused(self, checkout: Path, monkeypatch: pytest.MonkeyPatch):
        freeze(CLAIM, checkout, tuned(CLAIM, checkout.parent / "runs"), {})
        commit_all(checkout.parent)
        (checkout.parent / "code.py").write_text("2")
        with pytest.raises(ConfigError, match="changes that are not committed"):
            frozen_at(CLAIM, checkout)
        git(checkout.parent, "checkout", "-q", "code.py")
        monkeypatch.setattr(freezing, "clean", lambda: False)
        with pytest.raises(ConfigError, match="changes that are not committed"):
            frozen_at(CLAIM, checkout)

    def test_seeds_of_a_kept_result_are_spent_and_may_be_run_again(self, checkout: Path):
        result = run_claim(CLAIM, checkout.parent / "runs")
        kept_beside(checkout).write_text(json.dumps(result))
        assert frozen_at(CLAIM, checkout) is None
        with pytest.raises(ConfigError, match="unspent"):
            frozen_at(CLAIM.replace(seeds=(5, 6)), checkout)
        with pytest.raises(ConfigError, match=r"climbing\.json, so its seeds are spent; a changed experiment has"):
            check_unspent(CLAIM, checkout, checkout.parent / "none")
        check_unspent(CLAIM.replace(seeds=(5, 6)), checkout, checkout.parent / "none")

    def test_what_was_run_is_not_frozen_any_more(self, checkout: Path):
        runs = checkout.parent / "runs"
        run_claim(CLAIM, runs, seeds=(4, 20))
        with pytest.raises(
            ConfigError, match="has a run of one of its seeds, and a seed that was looked at decides noth"
        ):
            check_unspent(CLAIM, checkout, runs)
        check_unspent(CLAIM.replace(seeds=(0, 1, 2, 3, 5)), checkout, runs)

    def test_a_frozen_result_is_not_written_over_by_another(self, checkout: Path):
        runs = checkout.parent / "runs"
        tried, pilot = prepare(CLAIM, runs)
        freeze(CLAIM, checkout, tried, pilot)
        commit_all(checkout.parent)
        before = run_claim(CLAIM, runs, place=checkout)
        assert run_claim(CLAIM, runs, place=checkout)["effects"] == before["effects"]
        explored = run_claim(CLAIM, runs, seeds=(0, 1), place=checkout)
        assert (explored["name"], explored["verdict"]) == ("climbing.explored", "undecided")
        changed = CLAIM.replace(expected=Ordering(relations=("firm > slips by 0.5",)))
        with pytest.raises(ConfigError, match=r"climbing\.json keeps the result of what was frozen as"):
            run_claim(changed, runs)
        assert read_kept(runs / "climbing.json") == before

    def test_code_of_ones_own_is_frozen_too(self, checkout: Path, monkeypatch: pytest.MonkeyPatch):
        tried = {arm: {"chosen": {}} for arm in CLAIM.arms}
        before, record = hash_of(CLAIM, tried), freezing.own_modules(RECIPE.as_data())
        assert list(record) == ["climbing"]
        home = checkout.parent / "runs"
        RECIPE.train(home / "firm-0")
        freezing.check_runs(CLAIM, home, "0" * 40, checkout)
        changed = {"climbing": {**record["climbing"], "sha256": "0"}}
        monkeypatch.setattr(freezing, "own_modules", lambda data: changed)
        assert hash_of(CLAIM, tried) != before
        with pytest.raises(RunError, match="firm-0 was made with another file of the module 'climbing'"):
            freezing.check_runs(CLAIM, home, "0" * 40, checkout)

    def test_a_run_that_was_begun_before_the_claim_was_frozen_is_refused(self, checkout: Path):
        before = git(checkout.parent, "rev-parse", "HEAD")
        freeze(CLAIM, checkout, tuned(CLAIM, checkout.parent / "runs"), {})
        after = commit_all(checkout.parent)
        assert came_after(after, before, checkout) and came_after(before, after, checkout) is False
        assert came_after("0" * 40, after, checkout) is None
        home = checkout.parent
        RECIPE.train(home / "firm-0")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(freezing, "read_object", lambda path: {"commit": before})
            with pytest.raises(RunError, match="before the claim was frozen in"):
                freezing.check_runs(CLAIM, home, after, checkout)
            patch.setattr(freezing, "read_object", lambda path: {"commit": after})
            freezing.check_runs(CLAIM, home, after, checkout)

    def test_where_no_history_can_hold_it_a_claim_is_run_and_says_that_it_is_not_frozen(self, tmp_path: Path):
        assert run_claim(CLAIM, tmp_path, place=tmp_path / f"climbing{SUFFIX}")["frozen"] is None

    def test_other_seeds_explore_without_a_hash(self, checkout: Path):
        assert run_claim(CLAIM, checkout.parent / "runs", seeds=(20, 21), place=checkout)["frozen"] is None

    def test_what_a_run_is_computed_with_is_not_frozen(self):
        settings = {"engine": {"processes": 1}, "learner": {"threads": 2, "lr": 0.1}, "name": "x"}
        assert without_means(settings) == {"learner": {"lr": 0.1}, "name": "x"}
        assert without_means({"run": [settings]}) == {"run": [{"learner": {"lr": 0.1}, "name": "x"}]}

    def test_the_commit_of_a_file_is_the_one_that_made_it_so(self, checkout: Path):
        assert committed(checkout) is None
        checkout.write_text("{}")
        since = commit_all(checkout.parent)
        (checkout.parent / "more.py").write_text("3")
        commit_all(checkout.parent)
        assert committed(checkout) == ("{}", since)


def test_the_command_tunes_freezes_and_says_how_many_seeds_are_needed(tmp_path, monkeypatch, capsys):
    from longstride.cli.main import main

    monkeypatch.chdir(tmp_path)
    path = str(Path(climbing.__file__))
    assert main(["claim", path, "--pilot"]) == 0
    said = capsys.readouterr().out
    assert "for its margin 5 seeds are needed" in said and "  slips: method.rate=1.0\n" in said
    assert not list((tmp_path / "claims").glob("*.json"))
    assert main(["claim", path, "--freeze"]) == 0
    assert json.loads((tmp_path / "claims" / f"climbing{SUFFIX}").read_text())["hash"]
    assert "commit that, then run the claim" in capsys.readouterr().out
    assert main(["claim", path, "--seeds", "5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("climbing.explored: below standard\n") and "  it was not frozen before its" in said
    (tmp_path / "claims" / "climbing.explored.json").rename(kept := tmp_path / "claims" / "climbing.json")
    assert main(["claim", path, "--check-tuning"]) == 2 and "tuned at their full length" in capsys.readouterr().err
    kept.unlink()
    assert main(["claim", path, "--freeze"]) == 2 and "has a run of one of its seeds" in capsys.readouterr().err
    names = ["one", "two"]
    monkeypatch.setattr(
        "longstride.cli.claim.catalogue", lambda: dict.fromkeys(names, Namespace(claim=True, card=None))
    )
    monkeypatch.setattr("longstride.papers.naming.find_claim", lambda name: CLAIM.replace(name=name))
    assert main(["claim", "--all", "--pilot", "--json"]) == 0
    assert [found["name"] for found in json.loads(capsys.readouterr().out)["claims"]] == names
    assert main(["claim", path, "--pilot", "--judge"]) == 2
    assert "each of them is done alone" in capsys.readouterr().err
