"""What a message suggests can be set: no suggestion leads in a circle."""

import re

import pytest

from longstride import papers
from longstride.core.component import component_in
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.core.hints import fields_below
from longstride.run.experiment import Experiment


def leads_on(recipe: Experiment, settings: list[str]) -> bool:
    """Whether there is no such key; 1 may or may not fit."""
    try:
        resolve(type(recipe), recipe, settings)
    except ConfigError as e:
        return re.search("unknown key|no fields|is a list", str(e)) is not None
    return False


@pytest.mark.parametrize("name", [pytest.param("tti", marks=pytest.mark.slow), "cql", "trim/exact"])
def test_every_key_that_is_suggested_is_there(name):
    recipe = papers.load(name)
    suggested = set()
    for word in sorted({key.rpartition(".")[2] for key, _ in fields_below(type(recipe), component_in)}):
        try:
            resolve(type(recipe), recipe, [f"{word}=1"])
        except ConfigError as e:
            suggested |= set(re.findall(r"'([^']+)'", str(e).partition("did you mean ")[2].partition("?")[0]))
    assert len(suggested) > 10
    assert [settings for settings in suggested if leads_on(recipe, f"{settings}=1".split())] == []


def test_a_key_of_another_type_is_suggested_with_that_type():
    recipe = papers.load("tti")
    with pytest.raises(ConfigError, match=r"did you mean 'loss\.type=\w+ loss\.clip_low'"):
        resolve(type(recipe), recipe, ["clip_low=0.1"])


def test_a_component_of_ones_own_that_lacks_a_field_says_so_in_a_line(tmp_path, capsys):
    from longstride.cli.main import main

    (tmp_path / "lacking.py").write_text(
        "from longstride.core.component import Component\n"
        "class Lacking(Component):\n    width: int\n    height: int = 1\n"
        "RECIPE = Lacking(height='x')\n"
    )
    assert main(["train", str(tmp_path / "lacking.py")]) == 2
    said = capsys.readouterr().err
    assert "lacking.py, line 5: Lacking.width: it is missing, and has no default" in said
    assert "Lacking.height: " in said and "(got 'x')" in said and "pydantic" not in said
