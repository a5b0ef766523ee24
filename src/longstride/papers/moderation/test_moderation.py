"""Moderation: what is a label's demonstration, what arms spend, and a model and labels of one's own."""

import json
import random
from pathlib import Path

from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.envs.puzzles import Moderation
from longstride.models.load import load_policy
from longstride.papers.moderation.method import AnswersAlone
from longstride.papers.moderation.recipe import CLAIM, LABELS, RECIPE


def test_labels_are_imitated_without_their_reasons() -> None:
    chat = load_policy("base-rules").chat
    found = AnswersAlone().samples(RECIPE, chat, 40, random.Random(0))
    said = {" ".join(chat.decode(s.sampled_ids).replace("<end>", "").split()) for s in found}
    assert len(found) == 40 and said == {"Action: answer keep", "Action: answer remove"}


def test_a_solver_without_thoughts_is_imitated_as_it_is() -> None:
    source = Moderation(named=True)
    (task,) = source.sample(random.Random(0), 1)
    assert AnswersAlone().texts(source, task) == source.demonstrate(task)


def test_arms_play_as_much_and_differ_in_what_is_learned_from() -> None:
    played = {arm.as_data()["iterations"] * arm.as_data()["episodes_per_iteration"] for arm in CLAIM.arms.values()}
    assert played == {8 * LABELS}
    assert CLAIM.arms["labels_10"].as_data()["cloning"]["episodes"] == 10 * LABELS


def test_an_own_model_of_another_architecture_is_trained_on_own_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere("moderation", tmp_path)
    assert [row["summary"]["episodes"] for row in rows_of(run, "train")] == [16, 16]
    assert any(row["steps"] for row in rows_of(run, "train"))


def test_own_labels_from_a_file_are_imitated_by_settings_alone(tmp_path: Path) -> None:
    rows = [{"prompt": f"red lamp {'blue ' * k}", "answer": "no" if k % 2 else "yes"} for k in range(24)]
    path = tmp_path / "labels.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own = ["tasks.type=dataset", f"tasks.path={path}", "tasks.test_share=0.3", "cloning.episodes=32"]
    rate = ["cloning.learner.lr=1e-2", "cloning.learner.warmup_steps=0", "cloning.learner.batch_samples=4"]
    run = train_elsewhere("moderation/labels", tmp_path, *own, *rate)
    losses = [row["loss"] for row in rows_of(run, "cloning")]
    assert losses[-1] < losses[0] - 1
