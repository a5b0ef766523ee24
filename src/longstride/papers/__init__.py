"""Papers: one folder a paper, with its card, what it adds, the recipes that run it, and what was measured.

| file | holds |
|---|---|
| `__init__.py` | docstring (idea, table *paper | here*, deviations) and `CARD` |
| `method.py` | the components that the paper adds, without the numbers of a run |
| `recipe.py` | `RECIPE`, the main one: it acts, on a language model or on networks; `CLAIM`, what is expected of it |
| `exact.py` | `RECIPE` on a problem whose answer is computed (`longstride.exact`), and its `CLAIM` |
| `published.py` | `RECIPE` at the paper's own size, where that is known: each number with its source |
| any other | a further `RECIPE` |
| `results/FILE.frozen.json` | the hash of that claim, committed before it was run |
| `results/FILE.json` | final values of the claim in `FILE.py`; of a claim that is gone, where there is no such file |
| `test_*.py` | its tests |

`longstride.studies` has the same form for studies of our own. The recipe in `NAME/recipe.py` is called `NAME`, that in
`NAME/FILE.py` `NAME/FILE`. `catalogue` imports cards and no recipe, so listing is quick. A paper imports setups and no
other paper, unless its docstring says that it is that paper and more (a test holds it). Another package adds recipes by
the entry-point group `longstride.recipes` (`name = "package.module:RECIPE"`); a name of ours stays ours.
"""

import ast
import difflib
import importlib.metadata
import sys
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longstride.core.errors import ConfigError
from longstride.core.modules import import_module
from longstride.papers.card import Paper, Study
from longstride.papers.former import FORMER

if TYPE_CHECKING:
    from longstride.claims.claim import Claim
    from longstride.run.experiment import Experiment

GROUP = "longstride.recipes"
"""Entry points that name recipes of other packages."""
HOMES = (Path(__file__).parent, Path(__file__).parents[1] / "studies")
"""Folders of papers and of studies."""
MAIN = "recipe"
"""Name of the file whose recipe has the name of its paper."""


class Listed(NamedTuple):
    """What is known of a recipe without importing it."""

    home: str
    """Name of its paper or study, or of the package that brings it."""
    summary: str
    """First line of its docstring; of a main recipe, of its paper."""
    module: str
    claim: bool
    """Whether there is a claim beside the recipe."""
    acts: bool
    """Whether it acts on a model or in an environment, or is computed exactly."""
    attribute: str = "RECIPE"
    """Name of the recipe in its module."""
    card: Paper | Study | None = None
    """None for recipes of other packages."""
    result: Path | None = None
    """Where final values of its claim are kept, if they are."""

    @property
    def kind(self) -> str:
        """`exact`, `published` (settings at the paper's own size, which take its hardware) or `acts`."""
        if not self.acts:
            return "exact"
        return "published" if self.module.endswith(".published") else "acts"


@cache
def cards() -> dict[str, Paper | Study]:
    """The cards of all papers, then of all studies, by the name of their folder."""
    found = {}
    for home in HOMES:
        for path in sorted(home.glob("*/__init__.py")):
            module = f"longstride.{home.name}.{path.parent.name}"
            found[path.parent.name] = import_module(module).CARD
    return found


def catalogue() -> dict[str, Listed]:
    """Every recipe by name: a paper's main one and then its others, studies behind papers, other packages last."""
    found = dict(_ours())
    points = sorted(importlib.metadata.entry_points(group=GROUP), key=lambda p: (p.dist.name if p.dist else "", p.name))
    for point in points:
        file = _file(point.module)
        outline = _outline(file) if file else Outline(frozenset(), f"{point.module} is not installed", False)
        home = point.dist.name if point.dist else point.module
        found.setdefault(
            point.name,
            Listed(
                home=home,
                summary=outline.summary,
                module=point.module,
                claim="CLAIM" in outline.names,
                acts=not outline.exact,
                attribute=point.attr or "RECIPE",
            ),
        )
    return found


@cache  # like modules, files are looked for once in a process
def _ours() -> dict[str, Listed]:
    """The recipes of papers and studies."""
    found = {}
    for home in HOMES:
        for folder in sorted(path.parent for path in home.glob("*/__init__.py")):
            files = [path for path in folder.glob("[!_]*.py") if not path.name.startswith("test_")]
            for path in sorted(files, key=lambda path: (path.stem != MAIN, path.stem)):
                if "RECIPE" in _outline(path).names:
                    module = f"longstride.{home.name}.{folder.name}.{path.stem}"
                    found[_name(folder, path.stem)] = _listed(path, module)
    return found


def results() -> dict[str, Path]:
    """Where final values are kept, by the name of their claim; of claims that are gone too."""
    paths = [path for home in HOMES for path in home.glob("*/results/*.json") if "." not in path.stem]
    return dict(sorted((_name(path.parents[1], path.stem), path) for path in paths))


def _name(folder: Path, stem: str) -> str:
    """What a file in the folder of a paper is called."""
    return folder.name if stem == MAIN else f"{folder.name}/{stem}"


def _listed(path: Path, module: str) -> Listed:
    """The recipe in a file of ours."""
    folder, outline = path.parent, _outline(path)
    told = _outline(folder / "__init__.py") if path.stem == MAIN else outline
    result = folder / "results" / f"{path.stem}.json"
    return Listed(
        home=folder.name,
        summary=told.summary,
        module=module,
        claim="CLAIM" in outline.names,
        acts=not outline.exact,
        card=cards()[folder.name],
        result=result if result.exists() else None,
    )


def load(name: str) -> "Experiment":
    """The recipe called `name`.

    Raises:
        ConfigError: there is none; the nearest name is given.
    """
    listed = _ours().get(name) or _find("recipe", name, catalogue())
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
        hint = (
            f"it has {', '.join(others)}: name one by {place or module}:{others[0]}"
            if others
            else ("expected a recipe, such as RECIPE = papers.load('tti').replace(tasks=MyTasks())")
        )
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
    if name in known:
        return known[name]
    if name in FORMER:
        raise ConfigError(f"{name!r} is called {FORMER[name]!r} now")
    if others := [other for other, listed in known.items() if listed.home == name]:
        raise ConfigError(f"{name} has no {what} of that name; it has {', '.join(others)}")
    here = [file for file in (f"{name}.py", f"{name}.toml") if Path(file).is_file()]
    near = [*here, *difflib.get_close_matches(name, known, n=3)]
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise ConfigError(f"unknown {what} {name[:200]!r}; {hint}`longstride list` has all")


class Outline(NamedTuple):
    """What a file says of itself without being imported."""

    names: frozenset[str]
    """What it assigns."""
    summary: str
    """First line of its docstring."""
    exact: bool
    """Whether it imports from `longstride.exact`: what it runs is computed."""


@cache
def _outline(path: Path) -> Outline:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assigned = {t.id for s in tree.body if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    summary = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    imported = [s.module or "" for s in tree.body if isinstance(s, ast.ImportFrom)]
    return Outline(frozenset(assigned), summary, any(m.startswith("longstride.exact") for m in imported))


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
