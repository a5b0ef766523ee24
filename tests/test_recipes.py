"""What every recipe keeps to, and a run of one recipe a family that is stopped and goes on.

A new recipe is checked without a line here; a new family needs a representative.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers import rows_of, weights_hash

from longstride import recipes
from longstride.control import TrainingPhase
from longstride.core.component import build
from longstride.core.config import dump_toml, resolve
from longstride.core.errors import ConfigError
from longstride.run.experiment import Experiment, load_experiment
from longstride.run.recipe import Recipe

LISTED = recipes.catalogue()
CLAIMS = sorted(name for name, listed in LISTED.items() if listed.claim)
LONGEST = 190
"""Lines of a recipe file."""
REPRESENTATIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "agents": (
        "tti",
        {
            "iterations": 2,
            "episodes_per_iteration": 6,
            "budget": {"turns": 3},
            "test_budget": {"turns": 1},
            "evaluation": {"tasks": 1, "every": 1, "baselines": False},
        },
    ),
    "control": (
        "cql",
        {
            "tasks": {"episodes": 2},
            "phases": (TrainingPhase(iterations=2, updates=3),),
            "test_horizon": {"limit": 5},
            "evaluation": {"episodes": 1},
        },
    ),
    "reasoning": (
        "grpo",
        {"iterations": 2, "episodes_per_iteration": 8, "evaluation": {"tasks": 1, "every": 1}},
    ),
}
"""By family a cheap recipe, and what makes it tiny."""

every_recipe = pytest.mark.parametrize("name", LISTED)
every_claim = pytest.mark.parametrize("name", CLAIMS)


def source_of(name: str) -> str:
    family = Path(recipes.__file__).parent / LISTED[name].family
    return (family / f"{name}.py").read_text(encoding="utf-8")


def imported(source: str) -> set[str]:
    """Names of all modules of recipes that a file imports, at its top or anywhere inside."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or "."}
    return {module for module in found if module.startswith("longstride.recipes.")}


@every_recipe
def test_a_recipe_is_of_its_file_and_stays_what_it_is_through_toml(name: str, tmp_path: Path):
    recipe = recipes.load(name)
    assert isinstance(recipe, Experiment) and recipe.name == name
    (tmp_path / "recipe.toml").write_text(dump_toml(recipe), encoding="utf-8")
    assert load_experiment(tmp_path / "recipe.toml") == recipe


@every_recipe
def test_an_override_changes_what_it_names_and_a_misspelt_one_names_the_nearest_key(name: str):
    recipe = recipes.load(name)
    assert resolve(type(recipe), recipe, ["seed=7"]) == recipe.replace(seed=7) != recipe
    with pytest.raises(ConfigError, match="unknown key 'sead'; did you mean 'seed'"):
        resolve(type(recipe), recipe, ["sead=7"])


@every_recipe
def test_a_recipe_imports_setups_and_no_other_recipe_but_the_one_it_varies(name: str):
    """A variant is called after what it varies: `tti_map` may import `tti`."""
    for module in imported(source_of(name)):
        _, _, family, *other = module.split(".")
        varied = bool(other) and family == LISTED[name].family and name.startswith(f"{other[0]}_")
        assert family == "setups" or varied or not other, f"{name} imports {module}"


@every_recipe
def test_a_recipe_is_read_in_one_go_and_shows_its_paper_beside_what_is_here(name: str):
    source = source_of(name)
    text = ast.get_docstring(ast.parse(source)) or ""
    assert len(source.splitlines()) <= LONGEST
    assert re.search(r"^\|( [^|]+ \|){2,}\n\|(---\|){2,}$", text, re.M), "the docstring has no table"
    if not any(name.startswith(f"{other}_") for other in LISTED):  # a variant's paper is that of what it varies
        assert re.search(r"arXiv:? ?\d{4}\.\d{4,5}", text) and re.search(r"^Deviations?:", text, re.M)


@every_claim
def test_the_arms_of_a_claim_resolve_and_differ_and_its_relations_name_them(name: str):
    claim = recipes.load_claim(name)
    assert claim.name == name and len(set(claim.seeds)) == len(claim.seeds) >= 3
    for arm in (claim.recipe, *claim.arms.values()):
        assert build(Experiment, arm.as_data()) == arm and type(arm) is type(claim.recipe)
    assert len({repr(arm.as_data()) for arm in claim.arms.values()}) == len(claim.arms), "two arms are one"
    assert claim.relations
    for relation in claim.relations:
        for side in (relation.better, relation.worse):
            arm, _, strategy = side.partition("@")
            assert arm in claim.arms
            if strategy:
                of_arm = claim.arms[arm]
                assert isinstance(of_arm, Recipe) and strategy in [s.name for s in of_arm.evaluation.strategies[1:]]


def test_recipes_of_language_agents_are_read_without_torch():
    names = [name for name in LISTED if isinstance(recipes.load(name), Recipe)]
    program = (
        "import sys; from longstride import recipes\n"
        f"for name in {names!r}: recipes.load(name)\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# One family after the other


def test_every_family_has_a_representative():
    assert {listed.family for listed in LISTED.values()} == set(REPRESENTATIVES)


class StopsAfterFirst:
    """Interrupts a run at the first row of its second iteration."""

    def __call__(self, row: dict[str, Any]) -> None:
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    def progress(self, phase: str, done: int, total: int) -> None:
        pass


@pytest.mark.parametrize("family", REPRESENTATIVES)
def test_a_recipe_of_each_family_runs_and_goes_on_exactly_where_it_was_stopped(family: str, tmp_path: Path):
    name, changes = REPRESENTATIVES[family]
    recipe = recipes.load(name).replace(**changes)
    assert LISTED[name].family == family and recipe.iterations == 2
    recipe.train(tmp_path / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        recipe.train(tmp_path / "resumed", StopsAfterFirst())
    recipe.train(tmp_path / "resumed", resume=True)
    assert rows_of(tmp_path / "uninterrupted") == rows_of(tmp_path / "resumed")
    assert weights_hash(tmp_path / "uninterrupted") == weights_hash(tmp_path / "resumed")
