"""`longstride doctor`: what it looks for, and what it says of what is missing."""

import json
import tomllib
from pathlib import Path

import numpy
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from longstride.cli import doctor
from longstride.cli.main import main
from longstride.core.errors import RunError

ROOT = Path(__file__).parents[2]


def test_everything_that_the_package_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = {canonicalize_name(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text().splitlines()}
    # BrowserGym, MLflow and inspect need older versions of what others use, and each has an environment of its own;
    # what needs a GPU brings its own builds of torch
    apart = ("browsergym", "mlflow", "inspect", "vllm", "liger", "torchao")
    extras = [p for extra, packages in project["optional-dependencies"].items() if extra not in apart for p in packages]
    wanted = {canonicalize_name(Requirement(text).name) for text in (*project["dependencies"], *extras)}
    assert wanted - {"longstride"} <= pins


METADATA = """\
Metadata-Version: 2.4
Name: longstride
Version: 0
Provides-Extra: track
Provides-Extra: new
Provides-Extra: deep
Provides-Extra: here
Requires-Dist: numpy>=2
Requires-Dist: no-such-windows; platform_system == "none"
Requires-Dist: no-such-package>=1; extra == "track"
Requires-Dist: pytest>=999; extra == "new"
Requires-Dist: longstride[track]; extra == "deep"
Requires-Dist: pytest>=1; extra == "here"
"""


def test_doctor_names_what_is_missing_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "longstride-0.dist-info").mkdir()
    (tmp_path / "longstride-0.dist-info" / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "_generation", lambda: "said 'x'")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    checks = {c["name"]: c for c in found["checks"]}
    assert found["ok"]
    assert checks["requirements"]["found"] == f"numpy {numpy.__version__}"
    assert checks["extra track"]["found"] == checks["extra deep"]["found"] == "missing: no-such-package"
    assert checks["extra track"]["fix"] == "pip install 'longstride[track]'"
    assert checks["extra new"]["found"] == f"missing: pytest>=999 ({pytest.__version__} is installed)"
    here = {"ok": True, "found": f"pytest {pytest.__version__}", "fix": "", "needed": False}
    assert checks["extra here"] == {"name": "extra here", **here}
    assert "solved in" in checks["self-test: web"]["found"]


def test_doctor_fails_where_a_self_test_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> str:
        raise RunError("the shipped model is missing")

    def no_library() -> str:
        raise OSError("libcudart.so: cannot open shared object file")

    monkeypatch.setattr(doctor, "_generation", broken)
    monkeypatch.setattr(doctor, "_web_episode", no_library)
    monkeypatch.setattr(doctor, "_torch", no_library)
    assert main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "FAIL self-test: base model  the shipped model is missing" in said
    assert said.count("OSError: libcudart.so: cannot open shared object file") == 2
