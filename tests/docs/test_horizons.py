"""What horizons do: every row of its tables is that of the files that are kept beside it."""

import json

import pytest
from guides import DOCS

pytest.importorskip("matplotlib", reason="needs the extra `plot`")

PAGE, KEPT = DOCS / "horizons.md", DOCS / "horizons"


def test_every_row_of_a_table_is_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from examples import cards, distances, regimes

    monkeypatch.chdir(DOCS.parent)
    page = PAGE.read_text(encoding="utf-8").splitlines()
    for rows in (regimes.table(), cards.table(), distances.table(), distances.law_table()):
        at = page.index(rows[0])
        assert len(rows) > 2 and page[at : at + len(rows)] == rows


@pytest.mark.parametrize("name", ["far", "steps"])
def test_the_differences_of_a_claim_are_those_of_its_result(name: str) -> None:
    kept = json.loads((DOCS.parent / f"src/longstride/papers/tti/results/{name}.json").read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    for e in (*kept["effects"], *kept["control_effects"]):
        assert f"{e['mean']:+.3f} [{e['lo']:+.3f}, {e['hi']:+.3f}]" in page
    assert "dose" not in kept or ", ".join(f"{mean:+.3f}" for mean in kept["dose"]["means"]) in page


def test_the_hits_of_the_regimes_are_those_of_the_predictions_that_were_committed_before() -> None:
    said = json.loads((KEPT / "regimes_predicted.json").read_text(encoding="utf-8"))
    found = json.loads((KEPT / "regimes.json").read_text(encoding="utf-8"))
    hits = 0
    for name, regime in found["regimes"].items():
        for other, r in regime["growing_minus"].items():
            predicted = said["regimes"][name]["success"]["growing"] - said["regimes"][name]["success"][other]
            ends = regime["success"]
            measured = sum(a - b for a, b in zip(ends["growing"], ends[other], strict=True)) / len(ends["growing"])
            assert (r["predicted"], r["measured"][0]) == pytest.approx((predicted, measured))
            sides = [0 if abs(x) < said["level"] else 1 if x > 0 else -1 for x in (predicted, measured)]
            assert r["hit"] == (sides[0] == sides[1])
            hits += r["hit"]
    assert found["hits"] == hits and found["relations"] == 2 * len(found["regimes"])
