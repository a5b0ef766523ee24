"""The layers of the packages: a package imports those above it, and no two of one line import each other.

Imports inside functions count as well; those under `TYPE_CHECKING` do not. What stands in a wing is found by name alone
(`longstride.wings`).
"""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import longstride

ROOT = Path(longstride.__file__).parent
LINES = """
core
stats
scaling
envs models
engines rewards curriculum methods
rollout learner
strategies
run
claims
control web cluster adapters
design
starts exact
setups
papers
studies
report
api
bench
cli
"""
LINE = {package: n for n, line in enumerate(LINES.split("\n")) for package in line.split()}
TOP = {"longstride", "longstride.wings", "longstride.__main__"}
"""Modules of no package: what every import loads first (it knows the wings by name), and the entry of the command."""
MODULES = {
    ".".join(("longstride", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
    if not path.name.startswith("test_")
}


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of Longstride that a module imports, wherever in it."""
    return frozenset(_imports(ast.parse(MODULES[module].read_text(encoding="utf-8"))))


def _imports(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names if alias.name in MODULES)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, "imports of Longstride are absolute"
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from (m for name in names if (m := name if name in MODULES else child.module) in MODULES)
        else:
            yield from _imports(child)


def package(module: str) -> str:
    return module.split(".")[1]


def test_every_package_has_its_line() -> None:
    assert {package(module) for module in MODULES.keys() - TOP} == LINE.keys()


@pytest.mark.parametrize("name", LINE)
def test_a_package_imports_those_above_it_alone(name: str) -> None:
    wrong = [
        f"{module} imports {target}"
        for module in sorted(MODULES.keys() - TOP)
        if package(module) == name
        for target in sorted(imports(module) - TOP)
        if package(target) != name and LINE[package(target)] >= LINE[name]
    ]
    assert not wrong


def test_what_every_import_loads_first_is_the_core() -> None:
    assert imports("longstride") == {"longstride.wings"}
    assert {package(target) for target in imports("longstride.wings")} == {"core"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {m: imports(m) - {m} for m in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as e:
        pytest.fail(" imports ".join(reversed(e.args[1])))


def test_a_paper_imports_no_other_paper_unless_its_docstring_names_it() -> None:
    folders = {m: m.split(".")[2] for m in MODULES if m.startswith(("longstride.papers.", "longstride.studies."))}
    papers = {m: folder for m, folder in folders.items() if m.count(".") == 3}
    for module in papers:
        for target in imports(module) & papers.keys():
            home = MODULES[module].parent / "__init__.py"
            docstring = ast.get_docstring(ast.parse(home.read_text(encoding="utf-8"))) or ""
            same = papers[module] == papers[target]
            assert same or f"`{papers[target]}`" in docstring, f"{module} imports {target} and does not say why"


def test_a_public_class_has_a_name_of_its_own() -> None:
    """So that a reader meets one thing under a name, and `type` finds one component, whatever was imported."""
    places: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
