"""`longstride doctor`: what it looks for, and what it says of what is missing."""

import json
import tomllib
from pathlib import Path

import pytest

from longstride.cli import doctor
from longstride.cli.main import main
from longstride.core.errors import RunError

ROOT = Path(__file__).parent.parent


def test_the_extras_of_doctor_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        extra: tuple(p.partition("[")[0].partition(">")[0] for p in packages if not p.startswith("longstride["))
        for extra, packages in project["optional-dependencies"].items()
    }
    assert declared == doctor.EXTRAS


def test_everything_that_the_package_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = {
        line.partition("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    # BrowserGym and MLflow need older versions of what others use: each is used from an environment of its own; what
    # needs a GPU brings its own builds of torch
    apart = ("browsergym", "mlflow", "vllm", "liger", "torchao")
    extras = [p for extra, packages in doctor.EXTRAS.items() if extra not in apart for p in packages]
    wanted = [*project["dependencies"], *extras]
    assert {w.partition(">")[0].lower() for w in wanted} <= pins


def test_doctor_names_what_is_missing_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"track": ("no-such-package",)})
    monkeypatch.setattr(doctor, "_generation", lambda: "said 'x'")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    checks = {c["name"]: c for c in found["checks"]}
    assert found["ok"]
    assert checks["extra track"]["found"] == "missing: no-such-package"
    assert checks["extra track"]["fix"] == "pip install 'longstride[track]'"
    assert "solved in" in checks["self-test: web"]["found"]


def test_doctor_fails_where_a_self_test_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise RunError("the shipped model is missing")

    monkeypatch.setattr(doctor, "_generation", broken)
    monkeypatch.setattr(doctor, "_web_episode", lambda: "solved")
    assert main(["doctor"]) == 1
    assert "FAIL self-test: base model  the shipped model is missing" in capsys.readouterr().out
