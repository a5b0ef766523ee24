"""What goal distances cost a run, and a law that is fitted to it by one command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import begin_run

from longstride.cli.main import main
from longstride.core.errors import ConfigError, RunError
from longstride.core.sealed import place_of, seal
from longstride.report.curves import Curve, by_setting, cheapest, curve_of

STEPS = 1000


def write(run: Path, success: dict[int, list[float]], turns: int = 8) -> Path:
    """A run of which success by goal distance is known before training and after each iteration, of 1000 steps and 500
    tokens."""
    rows: list[dict[str, Any]] = []
    for i in range(len(next(iter(success.values())))):
        if i:
            rows.append({"kind": "train", "iteration": i, "summary": {"sampled_tokens": 500}})
        brief = {str(d): {"episodes": 10, "success": of[i]} for d, of in success.items()}
        rows.append(
            {
                "kind": "eval", "iteration": i, "policy": "agent" if i else "warm_start", "strategy": "direct",
                "total_env_steps": STEPS * i, "total_episodes": 100 * i, "seconds": float(i),
                "summary": {"episodes": 40, "success": 0.5, "by_distance": brief}, "measures": {},
            }
        )  # fmt: skip
    run.mkdir()
    begin_run(run, f'name = "walks"\niterations = 3\n[budget]\nturns = {turns}\n')
    (run / "metrics.jsonl").write_text("".join(seal(json.dumps(r), place_of(k)) + "\n" for k, r in enumerate(rows)))
    return run


def test_a_distance_costs_what_was_spent_until_half_of_its_tasks_were_done(tmp_path: Path) -> None:
    success = {
        4: [0.6, 0.7, 0.8, 0.9],  # done before training
        8: [0.1, 0.3, 0.7, 0.9],  # half of the way from the second to the third
        16: [0.0, 0.1, 0.5, 0.4],
        32: [0.0, 0.0, 0.2, 0.4],  # never
    }
    run = write(tmp_path / "run", success)
    steps = curve_of(run, "goal_distance", "env_steps")
    assert dict(zip(steps.x, steps.y, strict=True)) == pytest.approx({8.0: 1500, 16.0: 2000})
    assert curve_of(run, "goal_distance", "tokens").y == pytest.approx((750, 1000))
    assert curve_of(run, "goal_distance", "episodes").y == pytest.approx((150, 200))
    never = write(tmp_path / "never", {32: [0.0, 0.0, 0.2, 0.4]})
    with pytest.raises(RunError, match="env_steps by goal_distance"):
        curve_of(never, "goal_distance", "env_steps")


def test_one_command_fits_what_distances_cost_and_holds_it_to_farther_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rising(d: int, factor: float) -> list[float]:
        at = factor * d**1.5 / STEPS  # where half is reached, in iterations
        return list(np.clip(0.5 + 0.05 * (np.arange(21) - at), 0, 1))

    for turns, factor in ((8, 100), (48, 300)):
        distances = (4, 6, 8, 11, 16) if turns == 48 else (4, 6, 8, 11, 16, 23, 32)
        write(tmp_path / f"turns-{turns}", {d: rising(d, factor) for d in distances}, turns)
    out = tmp_path / "laws.json"
    words = [
        "--law",
        "rising_power",
        "--x",
        "goal_distance",
        "--y",
        "env_steps",
        "--by",
        "budget.turns",
        "--until",
        "16",
    ]
    assert main(["fit", str(tmp_path), *words, "--out", str(out)]) == 0
    assert "inside" in capsys.readouterr().out
    short, long = json.loads(out.read_text(encoding="utf-8"))["groups"]
    for group, factor in ((short, 100), (long, 300)):
        assert group["fit"]["values"] == pytest.approx({"log_factor": np.log(factor), "exponent": 1.5}, rel=1e-3)
    (near, *_), (far, real, _, lo, hi) = short["held_out"]
    assert (near, far) == (23, 32) and lo <= real <= hi and "held_out" not in long
    assert main(["allocate", str(out), "--budget", "9000"]) != 0
    assert "says nothing of a budget" in capsys.readouterr().err


def test_attempts_are_points_of_the_last_evaluation_side_by_side_or_one_after_the_other(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    begin_run(run, 'name = "attempts"\niterations = 1\n')
    rows = [
        {
            "kind": "eval", "iteration": i, "policy": policy, "strategy": "direct", "total_env_steps": 0,
            "total_episodes": 0, "seconds": 0.0, "summary": {"success": first},
            "measures": {
                "success": [first, first], "pass@2": [0.5, 0.7], "pass@4": [0.8, None],
                "within@1": [0.0, 1.0], "within@2": [1.0, 1.0], "within@10": [1.0, 1.0],
            },
        }
        for i, policy, first in ((0, "warm_start", 0.1), (1, "agent", 0.3))
    ]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(seal(json.dumps(r), place_of(k)) + "\n" for k, r in enumerate(rows)))
    side_by_side, in_turn = (curve_of(run, "attempts", y) for y in ("pass", "within"))
    assert side_by_side.x == (1, 2, 4) and side_by_side.y == pytest.approx((0.3, 0.6, 0.8))
    assert in_turn.x == (1, 2, 10) and in_turn.y == (0.5, 1.0, 1.0)
    with pytest.raises(RunError, match="has no success@N: set evaluation.attempts"):
        curve_of(run, "attempts", "success")


def test_runs_are_told_apart_by_settings_of_any_kind_and_a_law_takes_numbers() -> None:
    of = lambda **settings: Curve(Path("run"), settings, (1.0,), (1.0,))  # noqa: E731
    found = by_setting([of(k="long"), of(k=[2, 8]), of(k=None), of(k=3), of(k=[2, 8])], "k")
    assert {k: len(runs) for k, runs in found.items()} == {3: 1, "None": 1, "[2, 8]": 2, "long": 1}
    with pytest.raises(ConfigError, match="k is 'long', and a law takes numbers"):
        cheapest([of(k="long")], ["k"], "k")


def swept(home: Path, ratio: float, batch: int, seed: int, steps: float) -> Path:
    """A run whose success rises evenly to 1, over so many times 1000 steps."""
    run = write(home / f"{ratio}-{batch}-{seed}", {4: [0.0] * 11})
    begin_run(run, f'name = "walks"\niterations = 3\nbatch = {batch}\n[[phases]]\nutd = {ratio}\n')
    rows = [json.loads(line.rpartition("\t")[0] or line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        if row["kind"] == "eval":
            row["measures"] = {"return": [min(row["total_env_steps"] / (1000 * steps), 1.0) - 1.0] * 2}
    (run / "metrics.jsonl").write_text("".join(seal(json.dumps(r), place_of(k)) + "\n" for k, r in enumerate(rows)))
    return run


def test_what_a_level_costs_by_a_setting_is_that_of_the_best_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of the return costs 500 steps * steps: (2 + 4 / ratio) thousand in all at the best batch, 64 / ratio."""
    for ratio in (1.0, 2.0, 4.0, 8.0):
        for batch in (64, 32, 16, 8):
            for seed in (0, 1):
                wrong = 0 if batch == 64 / ratio else 3
                swept(tmp_path, ratio, batch, seed, 2 + 4 / ratio + wrong + 0.2 * (seed - 0.5))
    words = ["fit", str(tmp_path), "--x", "phases.0.utd", "--reach", "return=-0.5", "--best", "batch", "--json"]
    assert main([*words, "--law", "power", "--y", "env_steps"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    expected = [(r, 500 * (2 + 4 / r + s)) for r in (1.0, 2.0, 4.0, 8.0) for s in (-0.1, 0.1)]
    np.testing.assert_allclose(sorted(group["points"]), expected)
    found = group["fit"]["values"]
    assert (found["limit"], found["factor"], found["exponent"]) == pytest.approx((1000, 2000, 1.0), rel=0.05)
    assert main([*words, "--law", "rising_power", "--y", "batch"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["points"] == [[1.0, 64.0], [2.0, 32.0], [4.0, 16.0], [8.0, 8.0]]
    for wrong, said in (
        (["--reach", "return=0.5"], "at 1 training brought no combination to the level in all its runs"),
        (["--reach", "return"], "expected a measure and a level, such as return=-300"),
        (["--y", "success"], "what a level costs is iteration, episodes, env_steps, seconds, tokens or a setting"),
        (["--x", "phases.0.utdd"], "did you mean 'phases.0.utd'"),
    ):
        assert main([*words[:-1], "--y", "env_steps", *wrong]) == 2
        assert said in capsys.readouterr().err
