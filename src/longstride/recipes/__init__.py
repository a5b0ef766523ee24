"""Recipes: one file per paper, in folders by family: the paper's algorithm, the recipe (`RECIPE`) and its claim
(`CLAIM`). `setups` has what several of them share: tasks, model and numbers of a kind of problem. `naming` finds what
a user names, recipes of other packages and own files included.

What always holds: `catalogue` imports no recipe, so listing costs nothing; a recipe's name is that of its file, and no
two files have one name; a recipe imports setups, and no other recipe but that of the paper that it varies. A package
adds recipes by the entry-point group `longstride.recipes` (`name = "package.module:RECIPE"`); a name of ours stays ours.
"""

import ast
import importlib.metadata
import sys
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longstride.core.errors import ConfigError, unknown
from longstride.core.modules import import_module

if TYPE_CHECKING:
    from longstride.claims.claim import Claim
    from longstride.run.experiment import Experiment

GROUP = "longstride.recipes"
"""Entry points that name recipes of other packages."""


class Listed(NamedTuple):
    """What is known of a recipe without importing it."""

    family: str
    """Name of its folder, or of the package that brings it."""

    summary: str
    """First line of its docstring."""
    module: str
    claim: bool
    """Whether there is a claim beside the recipe."""
    attribute: str = "RECIPE"
    """Name of the recipe in its module."""


def catalogue() -> dict[str, Listed]:
    """Every recipe by name, family by family, in alphabetical order; those of other packages behind ours."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*/[!_]*.py")):
        names, summary = _outline(path)
        if "RECIPE" in names:
            family = path.parent.name
            found[path.stem] = Listed(family, summary, f"{__name__}.{family}.{path.stem}", "CLAIM" in names)
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda p: (p.dist.name if p.dist else "", p.name))
    for point in points:
        file = _file(point.module)
        names, summary = _outline(file) if file else (frozenset(), f"{point.module} is not installed")
        family = point.dist.name if point.dist else point.module
        found.setdefault(point.name, Listed(family, summary, point.module, "CLAIM" in names, point.attr or "RECIPE"))
    return found


def load(name: str) -> "Experiment":
    """The recipe called `name`.

    Raises:
        ConfigError: there is none; the nearest name is given.
    """
    listed = _find("recipe", name, catalogue())
    return recipe_in(listed.module, listed.attribute)


def load_claim(name: str) -> "Claim":
    """The claim beside the recipe called `name`.

    Raises:
        ConfigError: there is none; the nearest name is given.
    """
    claims = {n: listed for n, listed in catalogue().items() if listed.claim}
    return claim_in(_find("claim", name, claims).module)


def recipe_in(module: str, attribute: str = "RECIPE", place: str = "") -> "Experiment":
    """The recipe in a module; `place` is what messages call the module, its name if left out.

    Raises:
        ConfigError: the module cannot be imported, or holds none under that name.
    """
    from longstride.run.experiment import Experiment

    found = getattr(holder := import_module(module), attribute, None)
    if not isinstance(found, Experiment):
        others = [name for name, value in vars(holder).items() if isinstance(value, Experiment)]
        hint = f"it has {', '.join(others)}: name one by {place or module}:{others[0]}" if others else (
            "expected a recipe, such as RECIPE = recipes.load('tti').replace(tasks=MyTasks())"
        )  # fmt: skip
        raise ConfigError(f"{place or module} has no recipe {attribute}; {hint}")
    return found


def claim_in(module: str, attribute: str = "CLAIM", place: str = "") -> "Claim":
    """The claim in a module; `place` is what messages call the module, its name if left out.

    Raises:
        ConfigError: the module cannot be imported, or holds none under that name.
    """
    from longstride.claims.claim import Claim

    found = getattr(import_module(module), attribute, None)
    if not isinstance(found, Claim):
        expected = f"expected {attribute} = Claim(name=..., recipe=..., arms=...)"
        raise ConfigError(f"{place or module} has no claim {attribute}; {expected}")
    return found


def _find(what: str, name: str, known: dict[str, Listed]) -> Listed:
    if name not in known:
        raise ConfigError(unknown(what, name, known))
    return known[name]


@cache  # like a module, a file is read once in a process
def _outline(path: Path) -> tuple[frozenset[str], str]:
    """The names that a module assigns, and the first line of its docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {t.id for s in tree.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    return frozenset(assigned), (ast.get_docstring(tree) or "").partition("\n")[0]


def _file(module: str) -> Path | None:
    """The file of a module, found without importing it or its packages."""
    folders, origin = None, None
    for name in accumulate(module.split("."), "{}.{}".format):
        specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return None
        folders, origin = spec.submodule_search_locations, spec.origin
    return Path(origin) if origin and origin.endswith(".py") else None
