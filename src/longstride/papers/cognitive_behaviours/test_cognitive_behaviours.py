"""Priming with behaviours: what is counted, what arms differ in, and a model, tasks and traces of one's own."""

import json
from pathlib import Path

from elsewhere import train_elsewhere
from helpers import make_trajectory, make_turn, rows_of

from longstride.papers.cognitive_behaviours.method import WordsSaid
from longstride.papers.cognitive_behaviours.recipe import CLAIM


def test_words_are_counted_in_all_turns_and_in_any_case() -> None:
    t = make_trajectory([make_turn(text="Wait , try again ; wait"), make_turn(text="again")])
    assert WordsSaid(words=("wait", "try again"))(t) == 3
    assert WordsSaid(words=("try again", "again")).name == "said_try_again"
    assert WordsSaid(words=("no",))(t) == 0


def test_arms_differ_in_what_the_model_was_shown() -> None:
    shown = "cloning.demonstrations.demonstrators"
    assert CLAIM.changes("right") == {}
    assert CLAIM.changes("wrong_4") == {f"{shown}.answers": "wrong"}
    assert {*CLAIM.changes("wrong_1")} == {f"{shown}.answers", f"{shown}.attempts"}
    assert CLAIM.changes("filler") == {f"{shown}.thought": "filler", f"{shown}.attempts": 6}


def test_an_own_model_of_another_architecture_with_own_tasks_and_traces_by_settings_alone(tmp_path: Path) -> None:
    rows = [{"prompt": "red lamp", "completion": text} for text in ("home red no", "home lamp no", "red no no")]
    (tmp_path / "traces.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown = f'{{type="file_successes",path="{tmp_path / "traces.jsonl"}",unjudged=true}}'
    run = train_elsewhere(
        "cognitive_behaviours",
        tmp_path,
        f"cloning.demonstrations={shown}",
        "cloning.episodes=3",
        "cloning.learner.epochs=20",
        "cloning.learner.warmup_steps=0",
        "cloning.learner.lr=1e-2",
        'evaluation.measures=[{type="longstride.papers.cognitive_behaviours.method:WordsSaid",words=["no"]}]',
    )
    losses = [row["loss"] for row in rows_of(run, "cloning")]
    assert losses[-1] < losses[0] - 1, "what is wrong is imitated too"
    assert [len(row["measures"]["said_no"]) for row in rows_of(run, "eval")] == [4, 4]
    assert [row["summary"]["episodes"] for row in rows_of(run, "train")] == [16, 16]
