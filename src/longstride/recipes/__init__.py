"""Recipes: one file per paper, in folders by family: the paper's algorithm, the recipe (`RECIPE`) and its claim
(`CLAIM`). `setups` has what several of them share: tasks, model and numbers of a kind of problem.

What always holds: `catalogue` imports no recipe, so listing costs nothing; a recipe's name is that of its file, and no
two files have one name; a recipe imports setups, and no other recipe but that of the paper that it varies.
"""

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from longstride.claims.claim import Claim
    from longstride.run.experiment import Experiment


class Listed(NamedTuple):
    """What is known of a recipe without importing it."""

    family: str
    """Name of its folder."""

    summary: str
    """First line of its docstring."""
    module: str
    claim: bool
    """Whether there is a claim beside the recipe."""


def catalogue() -> dict[str, Listed]:
    """Every recipe by name, family by family, in alphabetical order."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*/[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = {t.id for s in tree.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
        if "RECIPE" in assigned:
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            family = path.parent.name
            found[path.stem] = Listed(family, summary, f"{__name__}.{family}.{path.stem}", "CLAIM" in assigned)
    return found


def load(name: str) -> "Experiment":
    """The recipe called `name`.

    Raises:
        ConfigError: there is none; the nearest name is given.
    """
    return importlib.import_module(_find("recipe", name, catalogue()).module).RECIPE


def load_claim(name: str) -> "Claim":
    """The claim beside the recipe called `name`.

    Raises:
        ConfigError: there is none; the nearest name is given.
    """
    claims = {n: listed for n, listed in catalogue().items() if listed.claim}
    return importlib.import_module(_find("claim", name, claims).module).CLAIM


def _find(what: str, name: str, known: dict[str, Listed]) -> Listed:
    if name not in known:
        from longstride.core.component import unknown  # pydantic, which the catalogue alone does not need

        raise ConfigError(unknown(what, name, known))
    return known[name]
