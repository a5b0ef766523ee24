"""Where members of families are found that no import brings by itself."""

import importlib
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import longstride
from longstride.core.component import Component, find, member_of
from longstride.core.implementation import IMPLEMENTATIONS
from longstride.core.locations import LOCATIONS
from longstride.envs.sites.tasks import BROWSERS
from longstride.rewards.evaluators import EVALUATORS

PACKAGE = Path(longstride.__file__).parent
PLACES = [(family, name, module) for family, members in LOCATIONS.items() for name, module in members.items()]
REGISTRIES: dict[str, Mapping[str, Any]] = {
    "browser": BROWSERS,
    "evaluator": EVALUATORS,
    "implementation": IMPLEMENTATIONS,
}
"""Families whose members are functions."""
EXTRAS = {"browsergym", "gymnasium", "h5py", "minari", "miniwob", "playwright", "ray"}
"""Optional packages: a module of a wing that needs one as it is imported registers nothing without it."""


@pytest.mark.parametrize(("family", "name", "module"), PLACES)
def test_a_name_is_registered_by_the_module_that_is_named_for_it(family: str, name: str, module: str) -> None:
    importlib.import_module(module)
    if family in REGISTRIES:
        assert find(REGISTRIES[family], family, name) is REGISTRIES[family][name]
    else:
        families = {cls.type_name(): cls for cls in Component.__subclasses__()}
        assert member_of(families[family], name).reference() == name


def test_a_member_that_is_found_by_name_stands_in_a_wing_unless_the_command_line_or_torch_says_otherwise() -> None:
    others = {"experiment", "implementation", "strategy", "choice"}
    places = {module.split(".")[1] for family, _, module in PLACES if family not in others}
    assert places <= {"adapters", "control", "exact", "starts", "web"}


@pytest.mark.parametrize("wing", ["control", "web", "cluster", "starts"])
def test_what_a_wing_registers_in_a_family_that_is_imported_without_it_is_listed(wing: str) -> None:
    inside = f"longstride.{wing}."
    for path in sorted((PACKAGE / wing).rglob("*.py")):
        try:
            importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
        except ImportError as e:
            assert e.name in EXTRAS, e
    found = {
        (family.type_name(), name)
        for family in Component.__subclasses__()
        if not family.__module__.startswith(inside) or family.type_name() in LOCATIONS
        for name, member in family.members().items()
        if member.__module__.startswith(inside) and member.__module__ != family.__module__
    }
    found |= {
        (family, name)
        for family, members in REGISTRIES.items()
        for name, function in members.items()
        if function.__module__.startswith(inside)
    }
    assert found == {(family, name) for family, name, module in PLACES if module.startswith(inside)}


def test_a_recipe_names_a_demonstrator_that_nothing_has_imported() -> None:
    shown = "cloning.demonstrations"
    changes = [f"{shown}.type=scripted_demonstrations", f"{shown}.demonstrators.type=puzzle_behaviours"]
    command = [sys.executable, "-m", "longstride", "train", "grpo", *changes, "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, timeout=300)
    assert done.returncode == 0, done.stderr
    assert 'type = "puzzle_behaviours"' in done.stdout
