"""What every paper and every recipe keeps to, and a run of one recipe of each kind that is stopped and goes on.

A new paper is checked without a line here; a new kind of experiment needs a representative.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import rows_of, weights_hash

from longstride import papers
from longstride.claims.tuning import arm_run, axes
from longstride.cli.main import main
from longstride.control import TrainingPhase
from longstride.core.component import build
from longstride.core.config import dump_toml, resolve
from longstride.core.errors import ConfigError, ModelError
from longstride.exact.experiment import ExactProblem, ExactRecipe
from longstride.papers.card import TOPICS, Paper
from longstride.papers.former import FORMER
from longstride.run.experiment import Experiment, load_experiment
from longstride.run.recipe import Recipe

LISTED = papers.catalogue()
CLAIMS = sorted(name for name, listed in LISTED.items() if listed.claim)
REPRESENTATIVES: dict[str, dict[str, Any]] = {
    "tti": {
        "iterations": 2,
        "episodes_per_iteration": 6,
        "budget": {"turns": 3},
        "test_budget": {"turns": 1},
        "evaluation": {"tasks": 1, "every": 1, "baselines": False},
    },
    "cql": {
        "tasks": {"episodes": 2},
        "phases": (TrainingPhase(iterations=2, updates=3),),
        "test_horizon": {"limit": 5},
        "evaluation": {"episodes": 1},
    },
    "grpo": {"iterations": 2, "episodes_per_iteration": 8, "evaluation": {"tasks": 1, "every": 1}},
    "design_bench": {
        "tasks": {"designs": 20, "horizon": 20},
        "fit": {"epochs": 1},
        "iterations": 2,
        "every": 1,
        "proposals": 4,
    },
    "grpo/exact": {"iterations": 2},
}
"""A cheap recipe of many turns, of control, of groups, of design, and an exact one; and what makes it tiny."""


class Unknown(ExactProblem):
    """A problem that no method of a paper solves."""

    def measures(self, solution: Mapping[str, Any]) -> dict[str, float]:
        return {}


every_recipe = pytest.mark.parametrize("name", LISTED)
every_claim = pytest.mark.parametrize("name", CLAIMS)


@every_recipe
def test_a_recipe_is_of_its_file_and_stays_what_it_is_through_toml(name: str, tmp_path: Path):
    recipe = papers.load(name)
    assert isinstance(recipe, Experiment) and recipe.name == name
    (tmp_path / "recipe.toml").write_text(dump_toml(recipe), encoding="utf-8")
    assert load_experiment(tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_an_override_changes_what_it_names_and_a_misspelt_one_names_the_nearest_key(name: str):
    recipe = papers.load(name)
    assert resolve(type(recipe), recipe, ["seed=7"]) == recipe.replace(seed=7) != recipe
    with pytest.raises(ConfigError, match="unknown key 'sead'; did you mean 'seed'"):
        resolve(type(recipe), recipe, ["sead=7"])


@pytest.mark.parametrize("name", papers.cards())
def test_a_paper_shows_what_it_says_beside_what_is_here_and_has_a_card(name: str):
    card = papers.cards()[name]
    home = next(folder / name for folder in papers.HOMES if (folder / name).is_dir())
    text = ast.get_docstring(ast.parse((home / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert re.search(r"^\|( [^|]+ \|){2,}\n\|(---\|){2,}$", text, re.M), "the docstring has no table"
    assert card.topics and set(card.topics) <= set(TOPICS)
    if isinstance(card, Paper):
        assert card.title and card.authors and re.fullmatch(r"\d{4}\.\d{4,5}", card.arxiv)
        assert re.search(r"^Deviations?:", text, re.M)


@pytest.mark.parametrize("name", [name for name, card in papers.cards().items() if isinstance(card, Paper)])
def test_the_first_line_of_a_paper_agrees_with_its_card(name: str):
    card = papers.cards()[name]
    assert isinstance(card, Paper)
    authors = card.authors.split(", ")
    assert all(len(author.split()) >= 2 for author in authors), "a name is a first and a last one, or a team's"
    assert card.year == 2000 + int(card.arxiv[:2]) and len(card.title) > 10
    assert len(set(card.topics)) == len(card.topics) and len(set(card.systems)) == len(card.systems)
    first, *_ = (papers.HOMES[0] / name / "__init__.py").read_text(encoding="utf-8").split("\n\n")
    assert re.search(rf"{re.escape(authors[0].split()[-1])}\b.*, {card.year}, arXiv {card.arxiv}\.$", first), first


def test_no_two_papers_have_one_number_or_one_row_in_the_table_of_systems():
    cards = [card for card in papers.cards().values() if isinstance(card, Paper)]
    numbers, rows = [card.arxiv for card in cards], [row for card in cards for row in card.systems]
    assert len(set(numbers)) == len(numbers) and len(set(rows)) == len(rows)


def _unknown(recipe: Recipe) -> None:
    raise ModelError("the hub was not asked")


@pytest.mark.parametrize("name", [name for name in LISTED if name.endswith("/published")])
def test_a_published_recipe_is_printed_and_names_a_source_for_its_numbers(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    listed, recipe = LISTED[name], papers.load(name)
    text = ast.get_docstring(ast.parse((papers.HOMES[0] / listed.home / "published.py").read_text(encoding="utf-8")))
    assert isinstance(listed.card, Paper) and f"(arXiv {listed.card.arxiv}" in listed.summary
    assert text and re.search(r"^\| setting \| (published|released) \| source[^|]* \|$", text, re.M)
    assert type(recipe) is type(papers.load(listed.home)), "it varies the main recipe"
    if isinstance(recipe, Recipe):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", recipe.start), "a model of the paper's size, by its name on the hub"
    monkeypatch.setattr("longstride.run.memory.plan", _unknown)  # it would ask the hub
    assert main(["train", name, "--dry-run"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["name"] == name


def test_a_former_name_says_what_it_is_called_now():
    for name, now in FORMER.items():
        assert now in LISTED
        with pytest.raises(ConfigError, match=f"^'{name}' is called '{now}' now$"):
            papers.load(name)


def test_a_paper_that_does_not_act_says_what_it_has():
    with pytest.raises(ConfigError, match="tti_map has no recipe of that name; it has tti_map/exact"):
        papers.load("tti_map")


@pytest.mark.parametrize("name", [name for name, listed in LISTED.items() if not listed.acts])
def test_an_exact_recipe_refuses_a_problem_of_another_type(name: str):
    recipe = papers.load(name)
    assert isinstance(recipe, ExactRecipe) and isinstance(recipe.problem, recipe.method.solves())
    with pytest.raises(ConfigError, match=f"solves problems of type {recipe.method.solves().type_name()}, got unknown"):
        recipe.replace(problem=Unknown())


def test_what_acts_is_not_computed():
    for name, listed in LISTED.items():
        assert listed.acts is not isinstance(papers.load(name), ExactRecipe), name


@every_claim
def test_the_arms_of_a_claim_resolve_and_differ_and_its_relations_name_them(name: str):
    claim = papers.load_claim(name)
    assert claim.name == name and len(set(claim.seeds)) == len(claim.seeds) >= 3
    for arm in (claim.recipe, *claim.arms.values()):
        assert build(Experiment, arm.as_data()) == arm and type(arm) is type(claim.recipe)
    assert len({repr(arm.as_data()) for arm in claim.arms.values()}) == len(claim.arms), "two arms are one"
    assert claim.relations
    for relation in claim.relations:
        for side in (relation.better, relation.worse):
            arm, _, under = side.partition("@")
            assert arm in claim.arms
            if under:
                names = claim.arms[arm].strategies
                assert set(claim.ways.get(under, ())) <= set(names) and (under in claim.ways or under in names[1:])
    for arm in claim.arms:  # in the world of a seed, under the first setting of each grid
        arm_run(claim, arm, {key: of[0] for key, of in axes(claim, arm).items()}, claim.seeds[0])


@pytest.mark.slow
def test_recipes_of_language_agents_are_read_without_torch():
    names = [name for name in LISTED if isinstance(papers.load(name), Recipe)]
    program = (
        "import sys; from longstride import papers\n"
        f"for name in {names!r}: papers.load(name)\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_kind_of_experiment_has_a_representative():
    kinds = {type(papers.load(name)) for name in LISTED}
    assert kinds == {type(papers.load(name)) for name in REPRESENTATIVES}


class StopsAfterFirst:
    """Interrupts a run at the first row of its second iteration."""

    def __call__(self, row: dict[str, Any]) -> None:
        if row["iteration"] == 2:
            raise KeyboardInterrupt

    def progress(self, phase: str, done: int, total: int) -> None:
        pass


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_recipe_of_each_kind_runs_and_goes_on_exactly_where_it_was_stopped(name: str, tmp_path: Path):
    recipe = papers.load(name).replace(**REPRESENTATIVES[name])
    assert recipe.iterations == 2
    recipe.train(tmp_path / "uninterrupted")
    with pytest.raises(KeyboardInterrupt):
        recipe.train(tmp_path / "resumed", StopsAfterFirst())
    recipe.train(tmp_path / "resumed", resume=True)
    assert rows_of(tmp_path / "uninterrupted") == rows_of(tmp_path / "resumed")
    assert weights_hash(tmp_path / "uninterrupted") == weights_hash(tmp_path / "resumed")
