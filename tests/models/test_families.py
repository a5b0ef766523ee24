"""The table of families in the guide: what it says of each is what is found of a tiny model of it."""

import pytest
from families import FAMILIES, GUIDE, found, row, rows_in


def test_the_table_has_every_family() -> None:
    assert list(rows_in(GUIDE.read_text("utf-8"))) == list(FAMILIES)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_the_table_says_of_a_family_is_found(name: str) -> None:
    """Engine and learner agree, and a gradient does not depend on what shares a pass: `found` sees to that."""
    assert row(name, found(name)) == rows_in(GUIDE.read_text("utf-8"))[name]
