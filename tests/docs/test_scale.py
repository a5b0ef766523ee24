"""Past one machine: every row of its tables is that of what is kept, and the plan that is kept is the one of today."""

import json

import pytest
from guides import DOCS


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS.parent)


def test_every_row_of_a_table_is_what_is_kept() -> None:
    from examples import scale

    page = (DOCS / "scale.md").read_text(encoding="utf-8").splitlines()
    for rows in scale.tables().values():
        at = page.index(rows[0])
        assert len(rows) > 2 and page[at : at + len(rows)] == rows


@pytest.mark.slow
def test_a_plan_that_is_kept_is_what_the_command_says_today() -> None:
    from examples import scale

    kept = {
        (one["card"]["name"], one["cards"], tuple(one["changes"])): one
        for one in json.loads((DOCS / "scale.json").read_text(encoding="utf-8"))
    }
    asked = ("H200", 8, ())
    assert list(kept) == list(scale.ASKED)
    again = json.loads(json.dumps(scale.plan(*asked)))
    assert again["best"]["hours"] == pytest.approx(kept[asked]["best"]["hours"])
    assert again["facts"] == kept[asked]["facts"]
