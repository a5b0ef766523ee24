"""What of others' texts reaches a terminal, and what of numbers JSON."""

import io
import json
import math
from pathlib import Path

import pytest
from helpers import begin_run, make_task, make_trajectory, make_turn
from report_rows import evaluation
from rich.console import Console

from longstride import papers
from longstride.cli.main import main
from longstride.core.config import dump_toml, load_toml
from longstride.core.errors import OwnCodeError
from longstride.core.sealed import dumps, place_of, seal
from longstride.report.live import Live
from longstride.rewards import Verdict
from longstride.rollout.interface import checked_verdict
from longstride.rollout.store import TRAJECTORIES, TrajectoryStore

EVIL = "\x1b]0;owned\x07\x1b[2Jred\x9b31m\x08\r"
"""A title, a cleared screen, a colour by one character, and what overwrites."""


def obeyed(text: str) -> bool:
    """Whether a terminal takes something in it for a command."""
    return any(not (c.isprintable() or c in "\n\t") for c in text)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Two runs of someone else whose names and settings are written for a terminal."""
    folders = []
    for name in ("one", "two"):
        folder = tmp_path / name
        begin_run(
            folder, f"name = {json.dumps(EVIL + name).replace(chr(0x7F), '')}\nmodel = {json.dumps(EVIL + name)}\n"
        )
        rows = [evaluation(i, "agent", 0.5) | {"measures": {EVIL: [0.0, 1.0], "success": [0.0, 1.0]}} for i in (0, 5)]
        rows[1]["summary"] = rows[1]["summary"] | {"by_source": {EVIL: {"episodes": 1, "success": 1.0, "length": 1.0}}}
        (folder / "metrics.jsonl").write_text(
            "".join(seal(json.dumps(r), place_of(k)) + "\n" for k, r in enumerate(rows))
        )
        folders.append(str(folder))
    return folders


@pytest.mark.parametrize(
    "command", [["compare"], ["compare", "--json"], ["compare", "--measure", "x"], ["fit", "--y", "x"]]
)
def test_texts_of_a_run_folder_command_no_terminal(runs, command, capsys):
    main([command[0], *runs, *command[1:]])
    shown = capsys.readouterr()
    assert "red" in shown.out + shown.err and not obeyed(shown.out + shown.err)


def test_an_episode_that_is_played_back_commands_no_terminal(tmp_path, monkeypatch, capsys):
    from longstride.rollout import playback

    begin_run(tmp_path, papers.load("tti"))
    turn = make_turn(observation=EVIL, action=f"say {EVIL}", url=EVIL, error=EVIL)
    episode = make_trajectory([turn], task=make_task(goal=EVIL))
    TrajectoryStore(tmp_path / TRAJECTORIES).append([episode])
    monkeypatch.setattr(playback, "play_back", lambda *of: (episode, []))
    assert main(["playback", str(tmp_path), "0"]) == 0
    shown = capsys.readouterr().out
    assert "red" in shown and not obeyed(shown)


def test_warnings_and_errors_command_no_terminal(desk_file, capsys):
    assert main(["train", str(desk_file)]) == 2
    shown = capsys.readouterr().err
    assert "red" in shown and "warning:" in shown and not obeyed(shown)


@pytest.fixture
def desk_file(tmp_path: Path) -> Path:
    """A file of the user's own that warns and fails with texts of others."""
    path = tmp_path / "talks_too_much.py"
    path.write_text(
        "import warnings\nfrom longstride.core.errors import LongstrideWarning\n"
        f"warnings.warn({EVIL!r}, LongstrideWarning)\nraise ValueError({EVIL!r})\n"
    )
    return path


@pytest.mark.parametrize("terminal", [True, False])
def test_the_live_view_passes_nothing_on_that_a_terminal_obeys(terminal):
    row = evaluation(0, "agent", 0.5)
    row["strategy"], row["summary"]["by_difficulty"] = EVIL, {}
    row["summary"]["by_source"] = {EVIL: {"success": 1.0}}
    console = Console(file=io.StringIO(), width=100, force_terminal=False, color_system=None)
    live = Live(EVIL, 5, console)
    live(row)
    live({"kind": "eval", "iteration": 1, "policy": "agent", "measures": {EVIL: [1.0]}})
    if terminal:
        console.print(live._view())
    shown = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    assert "red" in shown and not obeyed(shown)


def test_a_resolved_recipe_can_be_shown_and_read_back(tmp_path):
    recipe = papers.load("tti").replace(name="\x1b]0;\x07\x9b31m\x7f\u0085")
    text = dump_toml(recipe)
    assert not obeyed(text)
    (tmp_path / "recipe.toml").write_text(text)
    assert load_toml(type(recipe), tmp_path / "recipe.toml") == recipe


@pytest.mark.parametrize("reward", [1.7e308, -1e16, math.inf, math.nan, 10**400, "1"])
@pytest.mark.parametrize("place", ["reward", "term"])
def test_a_reward_that_cannot_be_added_up_is_refused_by_its_size(reward, place):
    verdict = Verdict(reward, False) if place == "reward" else Verdict(0.0, False, terms={"speed": reward})
    with pytest.raises(
        OwnCodeError, match=r"(the reward|the term 'speed') is .*; expected a finite number, of at most 1e\+15"
    ):
        checked_verdict(verdict, "Own")


def test_json_has_null_in_place_of_what_is_no_number_of_json(tmp_path):
    data = {"a": [math.inf, {"b": math.nan}, (-math.inf, 1.5)], "c": "Infinity", "d": True}
    assert json.loads(dumps(data)) == {"a": [None, {"b": None}, [None, 1.5]], "c": "Infinity", "d": True}
    episode = make_trajectory(1, evidence={"distance": math.inf})
    assert "Infinity" not in episode.to_json()
