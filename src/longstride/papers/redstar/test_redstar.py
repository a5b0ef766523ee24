"""RedStar: as many steps whatever the number of traces, and a model, tasks and traces of one's own."""

import json
from pathlib import Path

from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.papers.redstar.recipe import BATCH, CLAIM, STEPS
from longstride.run.recipe import Recipe


def test_arms_differ_in_traces_and_take_as_many_steps() -> None:
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and arm.cloning is not None
        assert arm.cloning.episodes * arm.cloning.learner.epochs == STEPS * BATCH
    assert CLAIM.changes("short_1024") == {"cloning.demonstrations.demonstrators.behaviours": ["subgoals"]}
    assert {*CLAIM.changes("long_64")} == {"cloning.episodes", "cloning.learner.epochs"}


def test_an_own_model_of_another_architecture_with_own_tasks_and_traces_by_settings_alone(tmp_path: Path) -> None:
    rows = [{"prompt": "red lamp", "completion": text} for text in ("home red", "home red no", "home lamp no", "red")]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown = f'{{type="file_successes",path="{tmp_path / "traces.jsonl"}",unjudged=true}}'
    run = train_elsewhere(
        "redstar",
        tmp_path,
        f"cloning.demonstrations={shown}",
        "cloning.episodes=4",
        "cloning.learner.epochs=10",
        "cloning.learner.batch_samples=4",
        "cloning.learner.warmup_steps=0",
        "cloning.learner.lr=1e-2",
        "iterations=1",
        "evaluation.every=1",
    )
    losses = [row["loss"] for row in rows_of(run, "cloning")]
    assert losses[-1] < losses[0] - 1
    assert rows_of(run, "cloning")[-1]["examples"] == 40
