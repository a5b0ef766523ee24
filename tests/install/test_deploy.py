"""Images and job files: what they name is there, and their commands are those that Longstride takes."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from longstride.cli.main import main

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RECORD = """#!/bin/bash
printf '%s\\n' "CARDS=$CUDA_VISIBLE_DEVICES" "$@" > {folder}/{name}.txt
{then}
"""
"""A program that writes down how it was called."""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """Programs of a node with cards, in their place; the variables with which they are found."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, then in {
        "vllm-$CUDA_VISIBLE_DEVICES": "exec sleep 600",
        "torchrun": "",
        "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
        "curl": 'at=${{@: -1}}; at=${{at##*:}}; until grep -qsx "${{at%/*}}" {folder}/vllm-*.txt; do sleep 0.1; done',
    }.items():
        program = programs / name.partition("-")[0]
        program.write_text(RECORD.format(folder=tmp_path, name=name, then=then.format(folder=tmp_path)))
        program.chmod(0o755)
    paths = [str(programs), os.environ["PATH"]]
    return {"PATH": ":".join(paths), "MODEL": "base", "OUT": str(tmp_path / "run"), "HOME": str(tmp_path)}


def called(folder: Path, name: str) -> tuple[str, list[str]]:
    """Cards and arguments."""
    cards, *arguments = (folder / f"{name}.txt").read_text().splitlines()
    return cards.removeprefix("CARDS="), arguments


def learner(arguments: list[str]) -> list[str]:
    """What Longstride is called with."""
    return arguments[arguments.index("longstride") + 1 :]


@pytest.mark.parametrize("script", ["node.sh", "slurm.sbatch"])
def test_a_node_samples_on_two_cards_and_trains_on_six(
    script: str, machine: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["bash", str(DEPLOY / script), "iterations=3"], env=machine, cwd=ROOT, check=True, timeout=240)
    ports = []
    for card in "01":
        _, server = called(tmp_path, f"vllm-{card}")
        assert server[:2] == ["serve", "base"]
        options = dict(zip(server[2::2], server[3::2], strict=True))
        assert (options["--tensor-parallel-size"], options["--host"]) == ("1", "127.0.0.1")
        assert json.loads(options["--weight-transfer-config"]) == {"backend": "nccl"}
        ports.append(options["--port"])
    cards, trained = called(tmp_path, "torchrun")
    assert cards == "2,3,4,5,6,7" and trained[trained.index("--nproc-per-node") + 1] == "6"
    assert main([*learner(trained), "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert len(set(ports)) == 2 and all(f'"http://127.0.0.1:{port}/v1"' in printed for port in ports)
    assert "iterations = 3" in printed
    assert 'type = "nccl"' in printed and "sharded = true" in printed


def test_a_node_goes_on_with_a_run_that_is_there(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    subprocess.run(["bash", str(DEPLOY / "node.sh"), "iterations=3"], env=machine, check=True, timeout=240)
    assert learner(called(tmp_path, "torchrun")[1]) == ["train", "--resume", str(tmp_path / "run")]


def test_a_word_of_cards_is_a_server(machine: dict[str, str], tmp_path: Path) -> None:
    subprocess.run(
        ["bash", str(DEPLOY / "node.sh")], env=machine | {"SERVER_CARDS": "0,1"}, cwd=ROOT, check=True, timeout=240
    )
    _, server = called(tmp_path, "vllm-0,1")
    assert server[server.index("--tensor-parallel-size") + 1] == "2"


def test_a_server_that_ends_at_once_ends_the_job(machine: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bin" / "vllm").write_text("#!/bin/bash\nexit 3\n")
    (tmp_path / "bin" / "curl").write_text("#!/bin/bash\nsleep 1\nexit 7\n")
    found = subprocess.run(["bash", str(DEPLOY / "node.sh")], env=machine, capture_output=True, text=True, timeout=240)
    assert found.returncode == 1 and "a server has ended before it was ready" in found.stderr


def test_the_job_asks_slurm_for_one_node_with_eight_cards_and_may_be_put_back() -> None:
    asked = re.findall(r"^#SBATCH --([\w-]+)(?:=(\S+))?$", (DEPLOY / "slurm.sbatch").read_text(), re.M)
    wanted = {"nodes": "1", "ntasks": "1", "gpus-per-node": "8", "requeue": "", "open-mode": "append"}
    assert wanted.items() <= dict(asked).items()


def test_the_job_of_skypilot_runs_the_same_node(machine: dict[str, str], tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="needs pip install pyyaml")
    job: dict[str, Any] = yaml.safe_load((DEPLOY / "skypilot.yaml").read_text())
    assert job["resources"]["accelerators"].endswith(":8") and job["num_nodes"] == 1
    (tmp_path / "longstride" / "bin").mkdir(parents=True)
    (tmp_path / "longstride" / "bin" / "activate").touch()
    variables = {name: str(value) for name, value in job["envs"].items()} | machine
    subprocess.run(["bash", "-euc", job["run"]], env=variables, cwd=ROOT, check=True, timeout=240)
    assert called(tmp_path, "torchrun")[0] == "2,3,4,5,6,7"
    extras = re.findall(r"'\.\[(.*)\]'", job["setup"])[0].split(",")
    assert set(extras) <= _extras()


@pytest.mark.parametrize("name", ["Dockerfile", "cuda.Dockerfile"])
def test_an_image_copies_what_is_there_and_asks_for_extras_that_exist(name: str) -> None:
    text = (DEPLOY / name).read_text()
    copied = [word for line in re.findall(r"^COPY (.+)$", text, re.M) for word in line.split()[:-1]]
    shown = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    assert copied and all((ROOT / path).exists() for path in copied) and set(copied) <= set(shown)
    assert set(re.findall(r"^ARG EXTRAS=(\S+)$", text, re.M)[0].split(",")) <= _extras()
    assert re.findall(r"^USER \d+$", text, re.M)
    if lint := shutil.which("hadolint"):
        subprocess.run([lint, str(DEPLOY / name)], check=True)


def _extras() -> set[str]:
    import tomllib

    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
