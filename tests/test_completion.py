"""What a shell is offered."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longstride.cli.main import main


def offered(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["completion", "words", *words]) == 0
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tr",), ["train"]),
        (("train", "tti/m"), ["tti/mended", "tti/miniwob"]),
        (("train", "tti", "learner.warm"), ["learner.warmup_steps="]),
        (("train", "tti", "--seed", "1", "iter"), ["iterations="]),
        (("train", "tti", "--s"), ["--seed"]),
        (("train", "tti", "--seed", ""), []),
        (("train", "tti", "loss.ty"), ["loss.type="]),
        (("train", "tti", "loss.type=p"), ["loss.type=ppo"]),
        (("train", "tti", "evaluation.baselines="), ["evaluation.baselines=false", "evaluation.baselines=true"]),
        (("train", "tti", "seed="), []),
        (("train", "tti", "--track", "w"), ["wandb"]),
        (("train", "--"), None),
        (("eval", "runs/a", "--browser", "ch"), ["chromium"]),
        (("bench", "brow"), ["browser"]),
        (("claim", "nash"), ["nash_mp/exact"]),
        (("nonsense", ""), []),
        (("train", "tti", "x y"), []),
    ],
)
def test_what_fits_in_place_of_the_last_word(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], expected: list[str] | None
) -> None:
    found = offered(capsys, *words)
    assert found == expected if expected is not None else {"--out", "--resume", "--track"} <= set(found)


def test_all_commands_are_offered(capsys: pytest.CaptureFixture[str]) -> None:
    assert {"train", "eval", "compare", "export", "completion"} <= set(offered(capsys, ""))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_reads(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert subprocess.run([shell, "-n"], input=script, text=True, timeout=30).returncode == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "expected"), [("train tti/mi", "tti/miniwob"), ("train tti loss.type=pp", "ppo"), ("bench ste", "step")]
)
def test_bash_offers_what_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, expected: str) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    program = tmp_path / "longstride"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m longstride "$@"\n')
    program.chmod(0o755)
    typed = f"COMP_WORDBREAKS=' =:'; COMP_LINE='longstride {line}'; COMP_POINT=${{#COMP_LINE}}"
    asks = f'{typed}; compopt() {{ :; }}; _longstride; echo "${{COMPREPLY[@]}}"'
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script + asks], capture_output=True, text=True, env=os.environ | {"PATH": path}, timeout=60
    )
    assert done.stdout == expected + "\n", done.stderr
