"""What goal distances cost a run, and a law that is fitted to it by one command."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import begin_run

from longstride.cli.main import main
from longstride.core.errors import RunError
from longstride.core.sealed import place_of, seal
from longstride.report.curves import curve_of

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
