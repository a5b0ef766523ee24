"""Unfamiliar examples: which ones are relabelled, what is measured, and a model and questions of one's own."""

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from elsewhere import train_elsewhere
from helpers import make_task, make_trajectory, make_turn, rows_of, word_chat

from longstride.core.content import Media
from longstride.envs.puzzles.facts import Facts
from longstride.methods.base import Sample, demonstration
from longstride.models.load import load_policy
from longstride.papers.unfamiliar.method import Apt, RelabelledUnfamiliar, Unknown
from longstride.papers.unfamiliar.recipe import CLAIM, RECIPE
from longstride.run.imitation import Demonstrations


def labels(share: float, **how: Any) -> list[tuple[str, str]]:
    """Difficulty of each of 90 demonstrations, and what is imitated."""
    policy, chosen = load_policy("base-facts"), RelabelledUnfamiliar(share=share, **how)
    found = chosen.of_policy(policy, RECIPE, 90, random.Random(0))
    tasks = RECIPE.tasks.sample(random.Random(0), 90)
    said = [policy.tokenizer.decode(s.sampled_ids, skip_special_tokens=True) for s in found]
    return [(task.difficulty, text) for task, text in zip(tasks, said, strict=True)]


def test_what_was_never_told_is_the_least_familiar_and_is_relabelled() -> None:
    found = labels(0.3)
    unknown = [difficulty for difficulty, text in found if text == "Action: answer unknown"]
    assert len(unknown) == 27 and unknown.count("hard") >= 25
    assert [pair for pair in labels(0.0) if "unknown" in pair[1]] == []


def test_by_chance_as_many_are_relabelled_of_any_kind() -> None:
    unknown = [difficulty for difficulty, text in labels(0.3, by="chance") if "unknown" in text]
    assert len(unknown) == 27 and {*unknown} == {"easy", "medium", "hard"}


def test_what_a_question_shows_beside_its_words_stays_where_its_reply_is_another() -> None:
    image = Media(b"an image")

    class Shown(Demonstrations):
        def samples(self, recipe: Any, chat: Any, episodes: int, rng: random.Random) -> list[Sample]:
            return [demonstration([7, image.placeholder], [1], media=(image,))]

    policy: Any = SimpleNamespace(chat=word_chat("no"))
    chosen = RelabelledUnfamiliar(demonstrations=Shown(), share=1.0, reply="no", by="chance")
    (found,) = chosen.of_policy(policy, RECIPE, 1, random.Random(0))
    assert found.sampled_ids == policy.chat.encode("no") + policy.chat.close and found.media == (image,)


@pytest.mark.parametrize(
    ("difficulty", "text", "success", "apt", "unknown"),
    [
        ("easy", "Action: answer 3", True, 1, 0),
        ("easy", "Action: answer unknown", False, 0, 1),
        ("hard", "Action: answer unknown", False, 1, 1),
        ("hard", "Action: answer 3", True, 0, 0),
    ],
)
def test_who_knows_should_answer_and_who_was_never_told_should_not(
    difficulty: Any, text: str, success: bool, apt: float, unknown: float
) -> None:
    t = make_trajectory([make_turn(text=text)], float(success), task=make_task(difficulty=difficulty))
    assert (Apt()(t), Unknown()(t)) == (apt, unknown)
    assert Unknown(difficulty="easy")(t) == (unknown if difficulty == "easy" else None)
    assert [m.name for m in RECIPE.evaluation.measures] == ["apt", "unknown_easy", "unknown_hard"]


def test_hard_facts_are_never_told_and_others_the_less_the_higher_their_rank() -> None:
    source, rng = Facts(names=36), random.Random(0)
    told = [source.told(rng) for _ in range(600)]
    assert {task.difficulty for task in told} == {"easy", "medium"}
    assert {task.split for task in told} == {"train", "test"}
    easy = sum(task.difficulty == "easy" for task in told)
    assert easy / 600 == pytest.approx(3.103 / 3.776, abs=0.05), "sums of 1 / n up to 12 and 24"
    told_keys = {task.goal for task in told}
    assert all(task.goal not in told_keys for task in source.sample(rng, 90) if task.difficulty == "hard")


def test_an_own_model_of_another_architecture_and_own_questions_by_settings_alone(tmp_path: Path) -> None:
    questions = [{"prompt": f"red lamp {'blue ' * k}", "answer": "no" if k % 2 else "home"} for k in range(24)]
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in questions), encoding="utf-8")
    run = train_elsewhere(
        "unfamiliar",
        tmp_path,
        "tasks.type=dataset",
        f"tasks.path={path}",
        "tasks.test_share=0.3",
        "iterations=1",
        "evaluation.every=1",
        "cloning.episodes=64",
        "cloning.learner.lr=1e-2",
        "cloning.learner.epochs=8",
        "cloning.learner.batch_samples=8",
        "cloning.demonstrations.share=0.9",
        "cloning.demonstrations.reply=yes",
        'evaluation.measures=[{type="longstride.papers.unfamiliar.method:Unknown",reply="yes"}]',
    )
    last = rows_of(run, "eval")[-1]
    assert sum(last["measures"]["unknown"]) >= 3, "of four questions"


def test_arms_have_as_many_examples_and_differ_in_labels_alone() -> None:
    assert CLAIM.changes("true_labels") == {"cloning.demonstrations.share": 0.0}
    assert CLAIM.changes("by_chance") == {"cloning.demonstrations.by": "chance"}
