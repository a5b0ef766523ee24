"""The start of judges: its demonstrations are right but for impatience, and a start learns words that it lacks."""

import random
from itertools import islice
from pathlib import Path

import pytest
import torch

from longstride.cli.make_base import settings
from longstride.core.errors import ConfigError
from longstride.envs.judgements import Judgements
from longstride.envs.puzzles.modular import SIGNS
from longstride.envs.questions import verdict_in
from longstride.learner.config import LearnerConfig
from longstride.models.load import SHIPPED, Policy, load_policy, make_policy, save_policy
from longstride.models.tiny import TinyConfig, build_model, build_tokenizer, words_of
from longstride.papers.grpo.recipe import RECIPE
from longstride.run.evaluation import evaluate_policy
from longstride.starts.demonstrators import Demonstration
from longstride.starts.made import MADE
from longstride.starts.puzzle_judgements import PuzzleJudgements
from longstride.starts.warmstart import WarmStart, make_base

PATIENT = PuzzleJudgements(patient=1.0)
SHAPE = TinyConfig(width=16, layers=1, heads=2, kv_heads=1, ffn=16, context=512)


def verdict(shown: Demonstration) -> str | None:
    return verdict_in(shown.texts[0], shown.task.meta["options"])


def test_demonstrations_are_a_function_of_their_number_and_of_training_tasks():
    some = list(islice(PuzzleJudgements().demonstrations(3), 12))
    assert next(PuzzleJudgements().demonstrations(3, first=7)) == some[7]
    assert {shown.task.split for shown in some} == {"train"}


def test_who_is_patient_is_right_and_asks_are_of_every_kind():
    some = list(islice(PATIENT.demonstrations(0), 150))
    assert all(verdict(shown) == shown.task.evaluator["reference"] for shown in some)
    assert {shown.task.source for shown in some} == {f"judgements/{asks}" for asks in ("right", "line", "better")}
    assert any("Say Verdict:" in shown.task.goal for shown in some)
    assert all(len(words_of(s.texts[0])) == len(s.weights[0]) for s in some)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("asks", "believes"), [("right", "yes"), ("line", "none"), ("better", "first")])
def test_who_stops_early_has_seen_nothing_wrong_and_says_so(asks: str, believes: str):
    judge = PuzzleJudgements(patience=0.0, patient=0.0, at_once=0.0)
    for seed in range(30):
        rng = random.Random(seed)
        shown = judge.judge(judge.question(rng, asks), rng, 0.0)  # pyright: ignore[reportArgumentType]
        lines = shown.task.meta["reasons"].split(" ; ")
        assert ";" not in shown.texts[0]
        assert verdict(shown) == (believes if len(lines) > 1 else shown.task.evaluator["reference"])


def test_a_patient_one_does_not_teach_patience():
    rng = random.Random(0)
    shown = PATIENT.judge(PATIENT.question(rng, "line"), rng, 1.0)
    (weights,) = shown.weights
    assert isinstance(weights, list)
    marks = [w for word, w in zip(words_of(shown.texts[0]), weights, strict=True) if word == ";"]
    assert marks and not any(marks) and weights[-1] == 1


def test_a_start_learns_the_words_that_it_lacks_and_forgets_none(tmp_path: Path):
    tokenizer = build_tokenizer(["start 3 ; + 4 ; mod 7 zebra"])
    save_policy(make_policy("old", build_model(SHAPE, len(tokenizer), 0), tokenizer), tmp_path / "old")
    old = load_policy(str(tmp_path / "old"))
    still = LearnerConfig(lr=1e-12, dtype="float32")
    config = WarmStart(
        start=str(tmp_path / "old"), demonstrators=PuzzleJudgements(), tokens=300, step_tokens=300, learner=still
    )
    new = make_base(tmp_path / "new", config)
    assert {"Verdict", "zebra"} <= new.tokenizer.get_vocab().keys() and "Verdict" not in old.tokenizer.get_vocab()

    def logits(policy: Policy, words: list[str]) -> torch.Tensor:
        ids = torch.tensor([policy.tokenizer("zebra start 3 ; mod 7").input_ids])
        with torch.inference_mode():
            return policy.model(ids).logits[0, -1, [policy.tokenizer.get_vocab()[w] for w in words]]

    words = sorted(old.tokenizer.get_vocab())
    assert torch.allclose(logits(new, words), logits(old, words), atol=1e-4)


def test_a_shipped_model_is_made_by_its_name_and_further_settings_replace_its_own():
    name, judge = settings(["judge"])
    assert settings(["judge", "tokens=1000"]) == (name, judge.replace(tokens=1000)) and name == "base-judge"
    assert settings([]) == ("base", WarmStart()) and settings(["tokens=9000"])[1].tokens == 9000
    assert all(settings([name])[0] == f"base-{name}" for name in MADE)
    with pytest.raises(ConfigError, match="unknown shipped model 'juge'; did you mean 'judge'"):
        settings(["juge"])


def test_the_shipped_judge_reads_lines_and_stops_too_early():
    assert sum(p.stat().st_size for p in SHIPPED["base-judge"].iterdir()) < 1.5e6
    tasks = Judgements(solved=12, attempts=4)
    played = evaluate_policy(load_policy("base-judge"), RECIPE.replace(tasks=tasks), tasks.held_out(48)).trajectories
    assert sum(t.answer is not None for t in played) >= 46
    whole = sum(t.turns[0].text.count(";") + 1 == t.task.meta["reasons"].count(";") + 1 for t in played)
    assert 8 < whole < 44
    lines = [tuple(line.split()) for t in played for line in t.turns[0].text.partition("Verdict")[0].split(";")]
    facts = [(a, sign, b, c) for _, a, sign, b, _, c, *_ in (x for x in lines if len(x) == 9)]
    right = [SIGNS[sign](int(a), int(b)) % 7 == int(c) for a, sign, b, c in facts]  # pyright: ignore[reportArgumentType]
    assert len(right) > 40 and sum(right) > 0.9 * len(right)
