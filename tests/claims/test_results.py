"""Kept results: those that count are of their claim as it stands, name a commit and what ran; all others say so."""

import importlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longstride import papers
from longstride.claims.claim import Claim, changed, differing
from longstride.claims.judging import LOWEST_FIRST, verdict_of
from longstride.claims.kept import differences, read_kept, without_means, write_kept
from longstride.claims.standard import lacking, word
from longstride.core import provenance
from longstride.core.component import build
from longstride.core.errors import RunError
from longstride.core.provenance import came_after, clean, commit
from longstride.report.claims import _worlds, counts, page, tally
from longstride.run.experiment import Experiment
from longstride.stats import Effect, Finding

ROOT = Path(__file__).parents[2]
RESULTS = {name: read_kept(path) for name, path in papers.results().items()}
COUNTED = [name for name, result in RESULTS.items() if "earlier" not in result]
EARLIER = [name for name in RESULTS if name not in COUNTED]
"""Results whose claim has changed since they were measured."""


@pytest.mark.parametrize("name", COUNTED)
def test_a_result_that_counts_is_of_its_claim_as_it_stands(name: str):
    claim, result = papers.load_claim(name), RESULTS[name]
    assert differences(claim, result) == []
    recipe = build(Experiment, result["recipe"])
    for side, arm in result["arms"].items():
        built = build(Experiment, changed(result["recipe"], arm["changes"]))
        now = claim.changes(side.partition("@")[0])
        assert without_means(dict(differing(recipe.as_data(), built.as_data()))) == without_means(now)
        assert all(len(of["by_seed"]) == len(claim.seeds) for of in arm["measures"].values())
    assert (result["statement"], result["paper"]) == (claim.statement, claim.paper)


@pytest.mark.parametrize("name", EARLIER)
def test_a_result_of_an_earlier_form_is_of_a_claim_that_has_changed_and_its_page_says_so(name: str):
    listed = papers.catalogue().get(name)
    assert listed is None or differences(papers.load_claim(name), RESULTS[name])
    assert "counted nowhere" in page(RESULTS[name], drawn=True)


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_called_as_its_file_and_its_verdict_follows_from_its_differences(name: str):
    result = RESULTS[name]
    assert result["name"] == name and result["clean"] is not False

    def findings(part: list[dict[str, Any]]) -> list[Finding]:
        found = [Finding(e["relation"], Effect(e["mean"], e["lo"], e["hi"]), e["gap"], e["verdict"]) for e in part]
        for f in found:
            e = f.effect
            assert f.verdict == ("reproduced" if e.lo > f.gap else "not reproduced" if e.hi <= f.gap else "undecided")
        return found

    valid = [e for e in result["control_effects"] if "void" not in e]
    doses = [result["dose"]["verdict"]] if "dose" in result else []
    judged = min([verdict_of(findings(result["effects"]), findings(valid)), *doses], key=LOWEST_FIRST.index)
    if result.get("because"):
        assert result["verdict"] != "reproduced"
        return
    assert result.get("judged", [judged])[-1] == judged
    assert result["verdict"] == min(result.get("judged", [judged]), key=LOWEST_FIRST.index)


@pytest.mark.skipif(commit() is None, reason="needs the history of a checkout")
@pytest.mark.parametrize("name", [name for name, result in RESULTS.items() if result.get("frozen")])
def test_a_frozen_claim_was_committed_before_it_was_run_and_is_what_is_kept(name: str):
    result, place = RESULTS[name], papers.results()[name].with_suffix(".frozen.json")
    held = subprocess.run(
        ["git", "-C", str(place.parent), "show", f"{result['frozen']['commit']}:./{place.name}"],
        capture_output=True,
        text=True,
    )
    if held.returncode:
        pytest.skip("the history is cut off")
    assert json.loads(held.stdout)["hash"] == result["frozen"]["hash"] == json.loads(place.read_text())["hash"]
    assert came_after(result["commit"], result["frozen"]["commit"], place)


@pytest.mark.skipif(commit() is None, reason="needs the history of a checkout")
def test_every_result_names_a_commit_of_the_history():
    names = "\n".join(result["commit"] for result in RESULTS.values())
    git = ["git", "-C", str(ROOT)]
    shallow = subprocess.run([*git, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True, check=True)
    if shallow.stdout.strip() == "true":
        pytest.skip("the history is cut off")
    told = subprocess.run([*git, "cat-file", "--batch-check"], input=names, capture_output=True, text=True, check=True)
    assert [line for line in told.stdout.splitlines() if " commit " not in line] == []


def test_the_overview_of_the_repository_is_that_of_its_results(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    written = importlib.import_module("generate").claims_readme()
    assert written == (ROOT / "claims" / "README.md").read_text(encoding="utf-8"), "run `python docs/generate.py`"


def test_the_readme_has_each_effect_that_is_shown_and_counts_what_was_run_again():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.split("effects are shown:")[1].split("All claims, counted:")[0]
    shown = {name for name in COUNTED if word(RESULTS[name]) == "shown"}
    assert set(re.findall(r"^\| `(\S+)` \|", table, re.M)) == shown
    again, hold = (
        int(n) for n in re.findall(r"(\d+) exact claims have been run again[\s\S]*? (\d+) hold\.", readme)[0]
    )
    held, null, undecided = re.findall(
        r"success is computed: (\d+) hold in their worlds, (\d+) null, (\d+) open", readme
    )[0]
    assert (again, hold) == (int(held) + int(null) + int(undecided), int(held))
    former = [RESULTS[name]["verdict"] for name in EARLIER if name.endswith("one_world")]
    reproduced = int(re.findall(r"(\d+) of them had been reproduced", readme)[0])
    assert (again, reproduced) == (len(former), former.count("reproduced"))


def test_a_claim_that_was_not_run_says_how_long_it_takes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    generate = importlib.import_module("generate")
    hours = json.loads(generate.HOURS.read_text(encoding="utf-8"))
    assert set(hours) <= {name for name, listed in papers.catalogue().items() if listed.claim}
    name = next(iter(hours))
    assert generate._not_run(name).endswith(f", all together about {hours[name]:g} hours of a core")


def test_a_third_of_one_value_is_that_value():
    turns = {"n": [{"from": a, "to": b, "mean": 0.1, "share": 1.0} for a, b in ((8, 8), (8, 16), (0.25, 0.5))]}
    worlds = {"share": 0.6, "lo": 0.4, "hi": 0.8, "against": 0.1, "turns": turns}
    said = _worlds({"effects": [{"relation": "a > b", "worlds": worlds}]})
    assert [line.split(" | ")[1] for line in said if line.startswith("| `n`")] == ["8", "8 to 16", "0.25 to 0.5"]


class TestWords:
    """What a kept result is called."""

    DESIGN = {"worlds": {"problem.noise": {}}, "cost": "samples"}
    TUNED = {"a": {"tried": [[{}, 0.0]]}, "b": {"tried": [[{}, 0.0]]}}

    def result(self, kind: str = "exact_recipe", **more: Any) -> dict[str, Any]:
        found = {"recipe": {"type": kind}, "verdict": "reproduced", "ordering": ["a > b by 0.1"]}
        found |= {"design": self.DESIGN, "tuned": self.TUNED, "frozen": {"hash": "0", "commit": "1"}}
        return found | {"pilot": {"needed": 5, "claimed": 6}} | more

    def test_an_exact_problem_holds_and_a_run_is_shown(self):
        assert word(self.result()) == "holds" and word(self.result("recipe")) == "shown"
        assert (
            word(self.result(verdict="not reproduced")) == "null" and word(self.result(verdict="undecided")) == "open"
        )

    def test_what_lacks_a_rule_is_of_an_earlier_standard_and_says_which(self):
        one_world = self.result(design={"cost": "samples"})
        assert lacking(one_world) == ["its world is one, and not drawn"] and word(one_world) == "below standard"
        assert lacking(self.result("recipe", design={"cost": "env_steps"})) == []  # a run draws no worlds
        assert lacking(self.result(tuned={"a": self.TUNED["a"]})) == ["b is not tuned"]
        assert lacking(self.result(design=self.DESIGN | {"cost": ""})) == ["no cost is named"]
        assert lacking(self.result(frozen=None)) == ["it was not frozen before its seeds were run"]
        assert lacking(self.result("recipe", pilot=None)) == ["no pilot says how many seeds its margin takes"]
        few = self.result("recipe", pilot={"needed": 9, "claimed": 6})
        assert (
            lacking(few) == ["its pilot asks for 9 seeds"] and lacking(few | {"recipe": {"type": "exact_recipe"}}) == []
        )

    def test_what_was_tuned_on_shorter_runs_is_shown_where_no_neighbour_takes_the_lead_at_full_length(self):
        effect = {"relation": "a > b by 0.1", "lo": 0.15, "gap": 0.1}
        of = self.result("recipe", design=self.DESIGN | {"tuning": {"iterations": 2}}, effects=[effect], measure="m")
        assert lacking(of) == ["b is tuned on shorter runs alone"]
        assert lacking(of | {"verdict": "not reproduced"}) == []

        def checked(means: tuple[float | None, float | None], low: bool = False) -> list[str]:
            arm = {"chosen": {"lr": 1}, "tried": [[{}, 0.0]], "whole": [[{"lr": k}, means[k]] for k in (0, 1)]}
            tuned = {"a": arm, "b": self.TUNED["b"]} if low else {"a": self.TUNED["a"], "b": arm}
            return lacking(of | {"design": of["design"] | {"lower_is_better": low}, "tuned": tuned})

        assert checked((0.54, 0.5)) == [] and checked((0.4, 0.5)) == [] and checked((None, 0.5)) == []
        assert checked((0.5, None)) == ["b gains inf at full length by a setting beside its own"]
        assert checked((0.56, 0.5)) == ["b gains 0.060 at full length by a setting beside its own"]
        assert checked((0.56, 0.5), low=True) == []
        assert checked((0.44, 0.5), low=True) == ["a gains 0.060 at full length by a setting beside its own"]

    def test_a_result_of_before_the_standard_lacks_all_of_it(self):
        old = {"recipe": {"type": "exact_recipe"}, "verdict": "reproduced", "ordering": ["a@x > b"]}
        assert len(lacking(old)) == 4 and word(old) == "below standard"
        assert word(old | {"earlier": ["seeds: [0, 1], now [10, 11]"]}) == "earlier form"

    def test_they_are_counted_by_kind(self):
        found = [
            self.result(),
            self.result(verdict="not reproduced"),
            self.result(frozen=None),
            self.result("recipe", verdict="undecided"),
            self.result("recipe", earlier=["seeds: [0, 1], now [10, 11]"]),
        ]
        assert counts(found) == {
            "exact": {"holds": 1, "null": 1, "below standard": 1},
            "language model": {"open": 1},
            "control": {},
            "design": {},
        }
        assert tally(found) == {
            "exact": "1 hold in their worlds, 1 null, 1 below the standard",
            "language model": "1 open",
        }


def test_a_setting_a_seed_or_a_relation_that_is_otherwise_is_named():
    claim, result = papers.load_claim("grpo/exact"), RESULTS["grpo/exact"]
    recipe = claim.recipe.replace(iterations=7)

    def moved(**changes: Any) -> list[str]:
        return differences(Claim(**(dict(claim) | changes)), result)

    assert moved(recipe=recipe, arms={name: arm.replace(iterations=7) for name, arm in claim.arms.items()}) == [
        "recipe: iterations: 20, now 7"
    ]
    arms = dict(claim.arms) | {"none": claim.arms["none"].replace(method={"group": 4})}
    assert moved(arms=arms) == ["none: method.group: None, now 4"]
    assert moved(seeds=claim.seeds[:3]) == [f"seeds: {result['seeds']}, now [1000, 1001, 1002]"]
    assert moved(reported=None) == ["reported: ['group > none', 'group > batch in success'], now []"]
    gone = result | {"recipe": result["recipe"] | {"episodes": 256}}
    assert differences(claim, gone) == ["its settings are of a form that is gone: episodes: unknown key 'episodes'"]


def test_what_a_run_is_computed_with_may_be_otherwise():
    claim, result = papers.load_claim("iterresearch"), RESULTS["iterresearch"]
    settings = result["recipe"]["learner"]
    slower = result | {"recipe": result["recipe"] | {"learner": settings | {"micro_tokens": 1}}}
    assert differences(claim, slower) == []
    slower = result | {"recipe": result["recipe"] | {"learner": settings | {"lr": 1.0}}}
    assert differences(claim, slower) == [f"recipe: learner.lr: 1.0, now {settings['lr']}"]


def test_a_damaged_result_is_named(tmp_path: Path):
    result = write_kept(tmp_path / "x.json", RESULTS["grpo/exact"])
    assert result == RESULTS["grpo/exact"] == read_kept(tmp_path / "x.json")
    del result["arms"]
    write_kept(tmp_path / "x.json", result)
    with pytest.raises(RunError, match=r"x\.json cannot be read: KeyError: 'arms'"):
        read_kept(tmp_path / "x.json")


def test_code_is_clean_while_it_is_that_of_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    code = tmp_path / "package" / "core" / "provenance.py"
    code.parent.mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(code))
    assert commit() is clean() is None
    code.write_text("1")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "notes.txt").write_text("not of the code")
    assert len(commit() or "") == 40 and clean() is True
    code.write_text("2")
    assert clean() is False
    subprocess.run([*git, "checkout", "-q", "."], check=True)
    (code.parent / "more.py").touch()
    assert clean() is False
