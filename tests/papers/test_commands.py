"""The commands on the pages of papers and studies: what they set is there, in recipes that there are. None is run."""

import importlib
import inspect
import re
import shlex
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


def on_pages() -> Iterator[str]:
    """Each command once that names a recipe of ours and only what is here."""
    modules = {listed.module for listed in LISTED.values()}
    seen: set[str] = set()
    for module in sorted(modules | {name.rpartition(".")[0] for name in modules}):
        for command in commands(inspect.getdoc(importlib.import_module(module)) or ""):
            ours = command.split()[2].strip("`") in LISTED
            if ours and not re.search(r"--strategy|=\.\.\.|my_module", command) and command not in seen:
                seen.add(command)
                yield command


@pytest.mark.parametrize("command", on_pages())
def test_a_command_of_a_page_sets_what_is_there(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"=(\w+\.jsonl)", command):
        (tmp_path / name).write_text('{"prompt": "one and one", "answer": "2"}\n' * 4, encoding="utf-8")
    recipe, overrides = words_of(command)
    resolve(Experiment, find_experiment(recipe), overrides)
