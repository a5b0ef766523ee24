"""Recipes: one file per paper, the recipe (`RECIPE`) and beside it its claim (`CLAIM`).

What always holds: `catalogue` imports no recipe, so listing costs nothing; a name is the name of a file here.
"""

import ast
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from longstride.claims.runner import Claim
    from longstride.run.experiment import Experiment


class Page(NamedTuple):
    """What is known of a recipe without importing it."""

    summary: str
    """First line of its docstring."""
    module: str
    claim: bool
    """Whether there is a claim beside the recipe."""


def catalogue() -> dict[str, Page]:
    """Every recipe by name, in alphabetical order."""
    pages = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assigned = {t.id for s in tree.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
        if "RECIPE" in assigned:
            summary = (ast.get_docstring(tree) or "").partition("\n")[0]
            pages[path.stem] = Page(summary, f"{__name__}.{path.stem}", "CLAIM" in assigned)
    return pages


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
    claims = {n: page for n, page in catalogue().items() if page.claim}
    return importlib.import_module(_find("claim", name, claims).module).CLAIM


def _find(what: str, name: str, pages: dict[str, Page]) -> Page:
    if name not in pages:
        from longstride.core.component import unknown  # pydantic, which the catalogue alone does not need

        raise ConfigError(unknown(what, name, pages))
    return pages[name]
