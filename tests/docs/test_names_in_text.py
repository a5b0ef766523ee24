"""What docs and docstrings name exists: files by their path, tests by their name, modules by theirs."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import ismodule
from pathlib import Path

import pytest
from guides import DOCS

import longstride

ROOT = DOCS.parent
SOURCE = Path(longstride.__file__).parent
PAGES = [*DOCS.rglob("*.md"), *(path for path in ROOT.glob("*.md") if path.stem != "CHANGELOG")]
"""Not the changelog, which names what is gone."""
MODULES = [path for path in SOURCE.rglob("*.py") if not path.name.startswith("test_") and path.stem != "published"]
"""Not published settings, which name the files of releases."""
TESTS = ROOT / "tests"
_PATH = re.compile(r"(?<![\w/.:<-])((?:[\w.-]+/)+[\w-]+\.(?:py|md|cpp|js))(?!\w)")
_TEST = re.compile(r"(?<![\w/])(?:\w+/)*test_\w+\.py\b")
_MODULE = re.compile(r"`(?:longstride\.)?([a-z_]+(?:\.\w+)+)`")
FOREIGN = {"core/action/functions.py", "evaluation_harness/helper_functions.py"}
"""Files of BrowserGym and of WebArena."""
PACKAGES = {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"learner", "run"}
"""Packages whose name begins neither a key of a recipe nor a variable of a guide."""


@cache
def text(path: Path) -> str:
    """What a file says: a page without its blocks of code; of a module its docstrings."""
    if path.suffix == ".md":
        return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return "\n\n".join(docstrings(ast.parse(path.read_text(encoding="utf-8"))))


def docstrings(node: ast.AST) -> Iterator[str]:
    """Texts that stand alone, in a module, its classes and its functions: no expression has a statement in it."""
    for inside in ast.iter_child_nodes(node):
        if (
            isinstance(inside, ast.Expr)
            and isinstance(inside.value, ast.Constant)
            and isinstance(inside.value.value, str)
        ):
            yield inside.value.value
        elif not isinstance(inside, ast.expr):
            yield from docstrings(inside)


def said(files: list[Path], pattern: re.Pattern[str]) -> dict[str, Path]:
    """All that is named so, with a file that names it."""
    return {name: path for path in files for name in pattern.findall(text(path))}


def is_there(name: str, by: Path) -> bool:
    """Whether a file of this path stands beside who names it, or in a place that the text speaks of."""
    placeholder = re.search(r"\b[A-Z]{2,}\b(?!\.md)|^path/to/", name)
    generated = re.match(r"(\.\./)*((papers|studies|benchmarks)/\w+|claims|shown)\.md$", name)
    return bool(placeholder or generated or name in FOREIGN) or any(
        (f / name).exists() for f in (ROOT, SOURCE, DOCS, TESTS, by.parent)
    )


@pytest.mark.parametrize("files", [PAGES, MODULES], ids=["docs", "docstrings"])
def test_a_file_that_is_named_exists(files: list[Path]) -> None:
    assert {name: by for name, by in said(files, _PATH).items() if not is_there(name, by)} == {}
    assert {name: by for name, by in said(files, _TEST).items() if not is_there(name, by)} == {}


@pytest.mark.parametrize("files", [PAGES, MODULES], ids=["docs", "docstrings"])
def test_a_module_that_is_named_has_what_is_named_in_it(files: list[Path]) -> None:
    def exists(name: str) -> bool:
        known = found = import_module("longstride")
        for part in name.split("."):
            if ismodule(known) and hasattr(known, "__path__") and find_spec(f"{known.__name__}.{part}"):
                found = import_module(f"{known.__name__}.{part}")
            elif ismodule(known):
                found = getattr(known, part, None)
            else:
                return True  # a field or a method, which the class says
            if found is None:
                return False
            known = found
        return True

    named = {name: by for name, by in said(files, _MODULE).items() if name.partition(".")[0] in PACKAGES}
    assert {name: by for name, by in named.items() if not name.endswith((".py", ".toml")) and not exists(name)} == {}


def test_every_package_stands_in_the_table_of_the_architecture() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Packages")[2].partition("## Where")[0]
    listed = {name for row in re.findall(r"^\| (`.*?) \|", table, re.M) for name in re.findall(r"`(\w+)/`", row)}
    assert {path.parent.name for path in SOURCE.glob("*/__init__.py")} == listed


def test_what_a_promise_names_stands_in_the_tests_that_hold_it() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = [row for row in page.partition("## Promises")[2].splitlines() if _TEST.search(row)]
    assert len(rows) >= 10
    for row in rows:
        held = "".join((TESTS / name).read_text(encoding="utf-8") for name in _TEST.findall(row))
        named = re.findall(r"::(\w+)`|`([^`]+ = [^`]+)`", row)
        assert [name for pair in named for name in pair if name and name not in held] == []
