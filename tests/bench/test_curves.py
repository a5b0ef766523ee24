"""Learning curves beside peers: what both sides are given, and places of a curve."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longstride.bench import curves
from longstride.bench.curves import LONG, PLACES, SHORT, SIDES, at_places, grid, ours, recipe_of, record, theirs
from longstride.bench.maze import BENCHMARK
from longstride.bench.peers import Peer
from longstride.cli.main import main

gymnasium = pytest.importorskip("gymnasium")


def test_a_curve_is_read_between_its_points_and_at_its_end() -> None:
    assert at_places([0, 100], [0.0, 10.0], 100).tolist() == [2, 4, 6, 8, 10]
    assert at_places([0, 50, 120], [0.0, 5.0, 12.0], 100)[-1] == 10  # what came after the end is read at it


@pytest.mark.parametrize("name", SIDES)
def test_both_sides_have_the_same_numbers(name: str) -> None:
    side = SIDES[name]
    recipe = recipe_of(side, 3, LONG[name], Path("data.npz"))
    (level,), agent, theirs = recipe.agent.levels, recipe.agent, side.settings
    assert recipe.seed == 3 and SHORT[name] < LONG[name]
    assert agent.batch // agent.slices == theirs["batch_size"]
    assert level.data.discount == theirs["gamma"]
    assert getattr(level.policy, "trunk", level.critic.trunk).width == side.units  # pyright: ignore
    if "reward_scale" in theirs:
        assert level.data.reward_scale == theirs["reward_scale"]
    if "tau" in theirs:
        assert level.critic.tau == theirs["tau"]  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    if side.offline:
        (phase,) = recipe.phases
        assert phase.iterations * phase.updates == LONG[name] and theirs["critic_learning_rate"] == agent.critic_lr
        assert theirs.get("actor_learning_rate", 3e-4) == agent.policy_lr
    elif name != "PPO":
        assert theirs["learning_rate"] == agent.critic_lr
        assert recipe.phases[0].utd * agent.slices == 1.0  # a step of the critics for each step
    if side.kwargs:
        assert recipe.tasks.kwargs == side.kwargs and recipe.tasks.id.endswith(side.id)  # pyright: ignore[reportAttributeAccessIssue]


def test_ours_ends_at_so_many_steps_and_what_sac_collects_is_a_set_that_others_learn_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIDES, "SAC", replace(SIDES["SAC"], changes=("phases.0.utd=0.01",)))
    monkeypatch.setattr("longstride.bench.curves.EPISODES", 1)
    data = record(400, tmp_path)
    with np.load(data) as file:
        assert file["actions"].shape == (400, 1) and 1 < np.abs(file["actions"]).max() <= 2  # the environment's units
    curve = ours(SIDES["IQL"], 10, data, 0)["curve"]
    assert curve.shape == (PLACES,) and (curve < 0).all()
    assert (ours(SIDES["DQN"], 30, data, 0)["curve"] > 0).all()


def test_in_the_maze_walls_stop_each_step_costs_and_only_the_goal_ends_an_episode() -> None:
    side = SIDES["DQN, maze"]
    env = gymnasium.make(f"longstride.bench.{side.id}", **side.kwargs)
    assert env.reset(seed=0)[0] == 0 and grid("umaze") == ["SFF", "HHF", "GFF"]
    seen = [env.step(action) for action in (1, 0, 2, 2, 1, 1, 0, 0)]  # into a wall, out of the grid, then around
    assert [s[0] for s in seen] == [0, 0, 1, 2, 5, 8, 7, 6]
    assert [s[1] for s in seen] == [-1.0] * 8
    assert [s[2] for s in seen] == [False] * 7 + [True] and not any(s[3] for s in seen)
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(100)] == [False] * 99 + [True]


def test_the_maze_is_made_where_there_is_no_longstride() -> None:
    beside = Path(curves.__file__).with_name("curves_peer.py").parent
    program = (
        "import gymnasium, json, sys; env = gymnasium.make(sys.argv[1], **json.loads(sys.argv[2])); env.reset();"
        "assert 'longstride' not in sys.modules and env.step(2)[0] == 1"
    )
    side = SIDES["DQN, maze"]
    subprocess.run([sys.executable, "-c", program, side.id, json.dumps(side.kwargs)], cwd=beside, check=True)


def test_the_maze_alone_takes_neither_a_recorded_set_nor_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "record", lambda *_: pytest.fail("nothing learns offline"))
    monkeypatch.setattr(curves, "ours", lambda *_: {"curve": -np.arange(1.0, PLACES + 1)})
    monkeypatch.setattr(curves, "find_spec", lambda name: None)
    rows, versions = BENCHMARK.measure(None, 2, print)
    assert [row.name for row in rows] == ["DQN, maze, curve of 1,500 steps", "DQN, maze, end of 1,500 steps"]
    assert rows[0].unit == "minus return" and np.asarray(rows[1].ours).tolist() == [[5.0], [5.0]]
    assert versions.keys() == {"torch"}


def test_what_a_peer_answers_is_read_at_the_same_places(tmp_path: Path) -> None:
    program = tmp_path / "peer.py"
    program.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    assert asked['data'].endswith('a.npz') and asked['algorithm'] == 'IQL' and asked['every'] == 20\n"
        "    print(json.dumps({'x': [0, 100], 'y': [-10.0, -5.0]}), flush=True)\n"
    )
    with Peer(sys.executable, program) as peer:
        assert theirs(peer, SIDES["IQL"], 100, tmp_path / "a.npz", 0)["curve"].tolist() == [-9, -8, -7, -6, -5]


def test_a_benchmark_without_a_short_form_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "store", "--short"]) == 2
    assert "store has no short form" in capsys.readouterr().err


def test_mujoco_is_left_out_where_one_side_lacks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "record", lambda total, folder: tmp_path)
    monkeypatch.setattr(curves, "ours", lambda *_: {"curve": np.ones(PLACES)})
    for there in (None, object()):
        monkeypatch.setattr(curves, "find_spec", lambda name, there=there: there)
        rows, versions = curves.measure(None, 1, print, SHORT)
        assert (
            any("MuJoCo" in row.name for row in rows)
            == (there is not None)
            == ("left out: InvertedPendulum" not in versions)
        )
