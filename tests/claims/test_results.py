"""Kept results: those that count are of their claim as it stands, name a commit and what ran; all others say so."""

import importlib
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longstride import papers
from longstride.claims.claim import Claim, changed, differing
from longstride.claims.judging import LOWEST_FIRST, verdict_of
from longstride.claims.kept import differences, read_kept, write_kept
from longstride.core import provenance
from longstride.core.component import build
from longstride.core.errors import RunError
from longstride.core.provenance import clean, commit
from longstride.report.claims import counts, page, shown
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
        assert dict(differing(recipe.as_data(), built.as_data())) == claim.changes(side.partition("@")[0])
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

    def findings(part: str) -> list[Finding]:
        found = [
            Finding(e["relation"], Effect(e["mean"], e["lo"], e["hi"]), e["gap"], e["verdict"]) for e in result[part]
        ]
        for f in found:
            e = f.effect
            assert f.verdict == ("reproduced" if e.lo > f.gap else "not reproduced" if e.hi <= f.gap else "undecided")
        return found

    judged = verdict_of(findings("effects"), findings("control_effects"))
    assert result.get("judged", [judged])[-1] == judged
    assert result["verdict"] == min(result.get("judged", [judged]), key=LOWEST_FIRST.index)


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


def test_what_counts_is_counted_by_kind_and_verdict():
    def result(kind: str, verdict: str, **more: Any) -> dict[str, Any]:
        return {"recipe": {"type": kind}, "verdict": verdict, **more}

    found = [
        result("exact_recipe", "reproduced"),
        result("exact_recipe", "undecided"),
        result("exact_recipe", "reproduced"),
        result("recipe", "not reproduced"),
        result("recipe", "reproduced", earlier=["seeds: [0, 1], now [10, 11]"]),
    ]
    assert counts(found) == {
        "exact": {"reproduced": 2, "undecided": 1},
        "language model": {"not reproduced": 1},
        "control": {},
    }
    assert shown(found) == "exact 2 of 3, language model 0 of 1, control 0 of 0"


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
    assert moved(seeds=claim.seeds[:3]) == [f"seeds: {result['seeds']}, now [100, 101, 102]"]
    assert moved(control=None) == ["control: ['alike_group > alike_batch by 0.02'], now []"]
    gone = result | {"recipe": result["recipe"] | {"episodes": 256}}
    assert differences(claim, gone) == ["its settings are of a form that is gone: episodes: unknown key 'episodes'"]


def test_what_a_run_is_computed_with_may_be_otherwise():
    claim, result = papers.load_claim("mirothinker"), RESULTS["mirothinker"]
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
