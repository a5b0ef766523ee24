"""Recipes and components in files of a user's own: found by path, module or entry point, and found again by a run."""

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from guides import own_modules

from longstride import papers
from longstride.cli.main import _warnings_as_lines, main
from longstride.core.errors import ChangedWarning, ConfigError
from longstride.core.modules import import_file
from longstride.papers.naming import find_claim, find_experiment
from longstride.run.experiment import load_run_experiment
from longstride.run.recipe import Recipe

MINE = '''
"""Half a point for everybody."""
from longstride.papers import load
from longstride.rewards import Reward, Verdict


class Half(Reward):
    points: float = 0.5

    def __call__(self, trajectory, state, seed):
        return Verdict(self.points, True)


RECIPE = load("tti").replace(
    name="mine", reward=Half(), iterations=1, episodes_per_iteration=4, budget={"turns": 2}, test_budget={"turns": 2},
    evaluation={"tasks": 3, "baselines": False},
)
SMALL = RECIPE.replace(episodes_per_iteration=2)
NOTHING = 3
'''


@pytest.fixture(autouse=True)
def forgets(tmp_path: Path) -> Iterator[None]:
    """Forgets the modules that a test writes."""
    with own_modules(tmp_path):
        yield


def write(folder: Path, name: str, text: str = MINE) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def command(folder: Path, *args: object) -> int:
    """Runs `longstride ARGS` as a fresh Python would: it knows no module below `folder`."""
    with own_modules(folder):
        return main([*map(str, args)])


def run(*args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "longstride", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


class TestNaming:
    def test_a_file_stands_for_its_recipe_and_another_one_is_named_behind_a_colon(self, tmp_path: Path) -> None:
        path = write(tmp_path, "mine_a.py")
        found, small = find_experiment(str(path)), find_experiment(f"{path}:SMALL")
        assert isinstance(found, Recipe) and isinstance(small, Recipe)
        assert found.reward.as_data() == {"type": "mine_a:Half", "points": 0.5}
        assert (found.episodes_per_iteration, small.episodes_per_iteration) == (4, 2)

    def test_a_module_below_the_working_folder_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        write(tmp_path, "pack_b/mine.py")
        monkeypatch.chdir(tmp_path)
        assert find_experiment("pack_b.mine:RECIPE").name == "mine"
        with pytest.raises(ConfigError, match="pack_b.mine has no recipe NOTHING; it has RECIPE, SMALL: name one by"):
            find_experiment("pack_b.mine:NOTHING")

    def test_a_toml_file_begins_from_a_recipe_and_names_components_beside_it(self, tmp_path: Path) -> None:
        write(tmp_path, "mine_c.py")
        toml = write(
            tmp_path,
            "mine.toml",
            'base = "tti"\niterations = 3\n[budget.turns]\nlimit = 12\n[reward]\ntype = "mine_c:Half"\npoints = 2.0\n',
        )
        found, tti = find_experiment(str(toml)), papers.load("tti")
        assert isinstance(found, Recipe) and isinstance(tti, Recipe)
        assert found.reward.as_data() == {"type": "mine_c:Half", "points": 2.0}
        assert found.budget.at(9, "easy").turns == 12 and found.replay == tti.replay
        other = write(tmp_path, "other.toml", 'base = "mine.toml"\nseed = 5\n')
        assert find_experiment(str(other)) == found.replace(seed=5)

    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ('base = "ttii"', "did you mean 'tti'"),
            ('base = "tti"\niteration = 3', "did you mean 'iterations'"),
            ('base = "tti"\ntype = "control_recipe"', "the base is a recipe"),
            ('base = "tti"\n[reward]\ntype = "gone_module:Half"', "No module named 'gone_module'"),
        ],
    )
    def test_a_mistake_in_a_toml_file_names_the_file(self, tmp_path: Path, text: str, says: str) -> None:
        path = write(tmp_path, "wrong.toml", text)
        with pytest.raises(ConfigError) as e:
            find_experiment(str(path))
        assert str(e.value).startswith(str(path)) and says in str(e.value)

    def test_a_claim_stands_in_a_file(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            "mine_d.py",
            MINE
            + "from longstride.claims.claim import Claim\nfrom longstride.stats import Ordering\n"
            + 'CLAIM = Claim(name="mine", paper="none", statement="s", recipe=SMALL, arms={"a": SMALL, "b": RECIPE},\n'
            + '              expected=Ordering(relations=("a > b",)))\n',
        )
        assert find_claim(str(path)).name == "mine"
        with pytest.raises(ConfigError, match="has no claim SMALL; expected SMALL = Claim"):
            find_claim(f"{path}:SMALL")


class TestMistakes:
    @pytest.mark.parametrize(
        ("text", "says"),
        [
            ("x = 1\ny = x +\n", "line 2: SyntaxError"),
            ("import math\n\nmath.nothing\n", "line 3: AttributeError"),
            ("import nothing_of_that_name\n", "line 1: ModuleNotFoundError"),
            (
                "from longstride import papers\n\nRECIPE = papers.load('tti').replace(seeds=1)\n",
                "line 3: recipe.seeds: unknown key",
            ),
        ],
    )
    def test_an_error_in_the_file_is_one_message_with_the_line(self, tmp_path: Path, text: str, says: str) -> None:
        path = write(tmp_path, f"wrong_{abs(hash(text))}.py", text)
        with pytest.raises(ConfigError) as e:
            find_experiment(str(path))
        assert str(e.value).startswith(str(path)) and says in str(e.value)

    def test_a_file_with_the_name_of_another_module_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"cannot be imported as 'json': that is .*json.__init__\.py; rename"):
            import_file(write(tmp_path, "json.py"))

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=f"there is no file {tmp_path / 'gone.py'}"):
            find_experiment(str(tmp_path / "gone.py"))

    def test_a_file_without_a_recipe_says_what_was_expected(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="has no recipe RECIPE; expected a recipe, such as"):
            find_experiment(str(write(tmp_path, "empty_file.py", "x = 1\n")))


def test_a_run_of_an_own_file_is_trained_resumed_evaluated_and_played_back_from_anywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = write(tmp_path / "own", "mine.py"), tmp_path / "run"
    assert command(tmp_path, "train", path, "--out", folder) == 0
    said = json.loads((folder / "format.json").read_text())
    assert said["modules"]["mine"]["file"] == str(path)

    capsys.readouterr()
    assert command(tmp_path, "playback", folder, 1) == 0
    assert "nothing differs" in (said := capsys.readouterr().out) and "reward 0.5" in said
    assert command(tmp_path, "train", "--resume", folder, "iterations=2") == 0
    assert capsys.readouterr().err == ""

    path.write_text(MINE + "# another line\n")
    assert command(tmp_path, "eval", folder, "--json") == 0
    said = capsys.readouterr().err
    assert said.split("\n")[0] == f"warning: {path} has changed since {folder} was made with it"
    assert said.count("has changed") == 1
    with _warnings_as_lines():
        for each in (folder, "second", "third"):
            warnings.warn(ChangedWarning(path, each), stacklevel=1)
    assert capsys.readouterr().err.splitlines() == [
        f"warning: {path} has changed since {folder} was made with it",
        f"warning: {path} has changed since 3 runs were made with it",
    ]

    path.rename(path.with_name("moved.py"))
    remedy = "which is not there any more; put it back, or its new folder on PYTHONPATH"
    assert command(tmp_path, "eval", folder) == 2
    assert capsys.readouterr().err == f"error: {folder} was made with {path}, {remedy}\n"
    assert command(tmp_path, "view", folder) == 0


@pytest.mark.slow
def test_a_script_that_trains_has_the_name_of_its_file(tmp_path: Path) -> None:
    script = MINE + (
        "if __name__ == '__main__':\n"
        "    from pathlib import Path\n"
        "    from longstride import load_run, train\n"
        "    train(RECIPE, Path(__file__).with_name('run'))\n"
        "    assert isinstance(load_run(Path(__file__).with_name('run')).recipe.reward, Half)\n"
    )
    path = write(tmp_path, "script_e.py", script)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = load_run_experiment(tmp_path / "run")
    assert isinstance(found, Recipe) and found.reward.as_data()["type"] == "script_e:Half"
    played = run("playback", tmp_path / "run", 1)  # where Python begins anew
    assert played.returncode == 0 and "nothing differs" in played.stdout and "reward 0.5" in played.stdout


def test_recipes_of_other_packages_are_listed_and_found_without_importing_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "pack_f/__init__.py", "")
    write(tmp_path, "pack_f/mine.py")
    info = tmp_path / "pack_f-1.0.dist-info"
    write(info, "METADATA", "Metadata-Version: 2.1\nName: pack-f\nVersion: 1.0\n")
    write(
        info,
        "entry_points.txt",
        "[longstride.recipes]\nhalf = pack_f.mine:SMALL\ntti = pack_f.mine:RECIPE\ngone = pack_f.gone:RECIPE\n",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = papers.catalogue()
    half = found["half"]
    assert half[:3] == ("pack-f", "Half a point for everybody.", "pack_f.mine")
    assert half.acts and not half.claim and half.attribute == "SMALL" and half.card is None
    assert found["tti"].home == "tti" and "is not installed" in found["gone"].summary
    assert "pack_f.mine" not in sys.modules
    assert papers.load("half").name == "mine"
    with pytest.raises(ConfigError, match="No module named 'pack_f.gone'"):
        papers.load("gone")
    assert main(["list"]) == 0
    assert "pack-f:" in capsys.readouterr().out
