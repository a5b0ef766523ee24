"""What a shell is offered: bash asks, as it does when Tab is pressed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longstride import papers
from longstride.cli.main import main

NO_BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


BREAKS = ' \t\n"=:'
"""What parts words for bash."""
OFFERED = [
    ("tr", ["train"]),
    ("train tti/m", ["tti/mended", "tti/miniwob"]),
    ("train mine", ["mine.toml"]),
    ("train tti learner.warm", ["learner.warmup_steps="]),
    ("train tti --seed 1 iter", ["iterations="]),
    ("train tti --dry-run --s", ["--seed"]),
    ("train tti loss.ty", ["loss.type="]),
    ("train tti loss.type=p", ["ppo"]),  # to readline what stands behind "=" is a word of its own
    ("train tti evaluation.baselines=", ["false", "true"]),
    ("train tti seed=", []),
    ("train tti --track w", ["wandb"]),
    ("eval runs/a --strategy ch", ["check_again", "chosen"]),
    ("eval runs/a --strategy part", ["particles"]),
    ("eval runs/a --strategy beam --guide pro", ["probe"]),
    ("claim nash", ["nash_mp", "nash_mp/exact"]),
    ("list --topic jud", ["judges"]),
]


@pytest.mark.parametrize(("line", "expected"), OFFERED)
def test_what_fits_is_offered_in_place_of_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]
) -> None:
    """Asked as the script asks, in a copy of this process, for answering ends it."""
    papers.load("tti")  # the copy has what was imported
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").touch()
    asked = {"LINE": f"longstride {line}", "POINT": str(len(f"longstride {line}"))}
    told = {"": "1", "_SHELL": "bash", "_COMP_WORDBREAKS": BREAKS, "_STDOUT_FILENAME": "offered"}
    if (child := os.fork()) == 0:
        try:
            os.environ |= {f"COMP_{name}": value for name, value in asked.items()}
            os.environ |= {f"_ARGCOMPLETE{name}": value for name, value in told.items()}
            main([])
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert (tmp_path / "offered").read_text().split() == expected


@NO_BASH
@pytest.mark.parametrize(("line", "expected"), [OFFERED[1], OFFERED[7]])
def test_bash_offers_what_fits_in_place_of_the_last_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, expected: list[str]
) -> None:
    program = tmp_path / "longstride"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m longstride "$@"\n')
    program.chmod(0o755)
    asks = """
        COMP_LINE="longstride $1" COMP_POINT=$((11 + ${#1})) COMP_TYPE=9 COMP_WORDBREAKS=$' \\t\\n"=:'
        $(complete -p longstride | sed 's/.*-F \\([^ ]*\\).*/\\1/') longstride
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "-c", script("bash", capsys) + asks, "bash", line], capture_output=True, text=True, timeout=60,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_reads(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    printed = script(shell, capsys)
    assert "longstride" in printed
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=printed, text=True, timeout=30).returncode == 0
