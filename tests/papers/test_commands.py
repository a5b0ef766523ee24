"""The commands and files of settings on the pages of papers and studies: what they set is there. Nothing is run."""

import importlib
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from longstride import papers
from longstride.core.config import resolve
from longstride.papers.naming import find_experiment
from longstride.run.experiment import Experiment

LISTED = papers.catalogue()
STANDS_FOR = {"type=SOURCE": "type=modular_chain", "model=MODEL": "model=base-puzzles"}
"""What is left to the reader, and something of the kind. Commands of other things of his own are left out."""
WITH_A_VALUE = ("--out", "--seeds", "--tasks")


def commands(text: str) -> Iterator[str]:
    """Those that stand in lines of their own, and those within sentences."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in re.findall(r"^ *(longstride (?:train|eval|sweep) .*)", text, re.M):
        yield re.sub(r"\s\s+#.*", "", line)
    yield from re.findall(r"`(longstride (?:train|eval|sweep) [^`]*)`", " ".join(text.split()))


def words_of(command: str) -> tuple[str, list[str]]:
    """The recipe that a command names, and its overrides; of a grid the first value of each key."""
    for what, instead in STANDS_FOR.items():
        command = command.replace(what, instead)
    _, verb, recipe, *words = shlex.split(command)
    found: list[str] = []
    for k, word in enumerate(words):
        before = words[k - 1] if k else ""
        if before == "--grid":
            found.append(word.partition(",")[0])
        elif not word.startswith("--") and before not in WITH_A_VALUE and not (verb == "sweep" and k == 0):
            found.append(word)
    return recipe, found


def pages() -> Iterator[str]:
    """The docstrings of papers, studies and their recipes."""
    modules = {listed.module for listed in LISTED.values()}
    for module in sorted(modules | {name.rpartition(".")[0] for name in modules}):
        yield inspect.getdoc(importlib.import_module(module)) or ""


def on_pages() -> Iterator[str]:
    """Each command once that names a recipe of ours and only what is here."""
    seen: set[str] = set()
    for page in pages():
        for command in commands(page):
            ours = command.split()[2].strip("`") in LISTED
            if ours and not re.search(r"--strategy|=\.\.\.|my_module", command) and command not in seen:
                seen.add(command)
                yield command


def write_files(text: str, folder: Path) -> None:
    """The files of tasks that a text names."""
    for name in re.findall(r"=\s?\"?([\w-]+\.jsonl)", text):
        (folder / name).write_text('{"prompt": "one and one", "answer": "2"}\n' * 4, encoding="utf-8")


@pytest.mark.parametrize("command", on_pages())
def test_a_command_of_a_page_sets_what_is_there(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(command, tmp_path)
    recipe, overrides = words_of(command)
    resolve(Experiment, find_experiment(recipe), overrides)


@pytest.mark.parametrize(
    "text", [text for page in pages() for text in re.findall(r"^    base = .*(?:\n    .*)*", page, re.M)]
)
def test_a_file_of_settings_on_a_page_sets_what_is_there(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(text, tmp_path)
    (tmp_path / "own.toml").write_text(inspect.cleandoc(text), encoding="utf-8")
    assert find_experiment("own.toml").as_data() != find_experiment(tomllib.loads(text)["base"]).as_data()
