"""The package as others get it: a wheel that works in a fresh environment, and is the same from the source archive."""

import os
import site
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.metadata import Metadata

ROOT = Path(__file__).parents[2]
FEW = [
    *("iterations=1", "episodes_per_iteration=4", "group_size=2", "evaluation.tasks=2", "evaluation.baselines=false"),
    *("budget.turns=2", "test_budget.turns=2", "engine.processes=1"),
]

pytest.importorskip("hatchling", reason="needs pip install hatchling")


def called(*argv: str | Path, folder: Path) -> str:
    """What a command prints, without what this environment tells Python of modules."""
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV_"))}
    found = subprocess.run(list(map(str, argv)), cwd=folder, env=hidden, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def build(source: Path, out: Path, *kinds: str) -> list[Path]:
    targets = [option for kind in kinds for option in ("-t", kind)]
    called(sys.executable, "-m", "hatchling", "build", "-d", out, *targets, folder=source)
    return sorted(out.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Source archive and wheel."""
    archive, wheel = build(ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")[::-1]
    return (archive, wheel) if archive.name.endswith(".tar.gz") else (wheel, archive)


def test_the_description_is_valid_and_shown(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        found = Metadata.from_email(wheel.read(name), validate=True)
    assert found.description_content_type == "text/markdown" and (found.description or "").startswith("# Longstride")
    if find_spec("twine"):
        called(sys.executable, "-m", "twine", "check", "--strict", *built, folder=ROOT)


def test_the_source_archive_makes_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (again,) = build(source, tmp_path / "dist", "wheel")
    with zipfile.ZipFile(again) as one, zipfile.ZipFile(built[1]) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
        assert not [name for name in one.namelist() if "/bench/" in name or "/test_" in name]


@pytest.mark.slow
def test_it_is_installed_and_trains_in_an_empty_folder(built: tuple[Path, Path], tmp_path: Path) -> None:
    venv, empty = tmp_path / "venv", tmp_path / "empty"
    empty.mkdir()
    called(sys.executable, "-m", "venv", venv, folder=tmp_path)
    python = venv / "bin" / "python"
    called(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", built[1], folder=tmp_path)
    # what it needs is taken from this environment: a plain line brings its packages, and not what it has in development
    below = called(python, "-c", "import site; print(site.getsitepackages()[0])", folder=tmp_path).strip()
    (Path(below) / "below.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    assert str(venv) in called(python, "-c", "import longstride; print(longstride.__file__)", folder=empty)
    printed = called(venv / "bin" / "longstride", "train", "tti", *FEW, folder=empty)
    (run,) = (empty / "runs").iterdir()
    assert (run / "report.html").is_file() and str(Path("runs") / run.name) in printed
