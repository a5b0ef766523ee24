"""DPT: what its behaviour draws, what it labels, and a model and world of one's own."""

import random
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import rows_of
from hidden_lamp import CHAT, SWITCHES, TOKENIZER, Lamp, save_model, small

from longstride.envs.hidden import GaussianBandits
from longstride.models.chat import ChatFormat
from longstride.models.tiny import build_tokenizer
from longstride.papers.dpt.method import FixedDraw
from longstride.papers.dpt.recipe import CLAIM, RECIPE


def test_a_trial_keeps_its_distribution_and_trials_have_different_ones() -> None:
    halves = []
    for trial in range(600):
        learning, rng = FixedDraw().begin(Lamp()), random.Random(trial)
        said = [learning.choose("dark", Lamp(), rng) for _ in range(60)]
        halves.append([[part.count(switch) / 30 for switch in SWITCHES] for part in (said[:30], said[30:])])
    first, second = np.array(halves).transpose(1, 0, 2)
    assert np.corrcoef(first[:, 0], second[:, 0])[0, 1] > 0.85
    assert first.mean(0) == pytest.approx(np.full(4, 0.25), abs=0.04)
    alone = ((first + second).max(1) == 2).mean()
    assert 1 / 11 - 0.03 < alone < 0.2, "c is 1 in one trial of 11"


def test_the_best_action_is_imitated_whatever_was_done() -> None:
    own = RECIPE.replace(**small("none"))
    assert own.cloning is not None
    found = own.cloning.demonstrations.samples(own, CHAT, 90, random.Random(0))
    pairs = []
    for sample in found:
        assert sample.targets is not None
        said = zip(sample.sampled_ids, sample.targets, sample.advantages, strict=True)
        words = [(TOKENIZER.convert_ids_to_tokens(a), TOKENIZER.convert_ids_to_tokens(b)) for a, b, w in said if w]
        wanted = {b for _, b in words if b in SWITCHES}
        assert len(wanted) == 1, "one switch lights the lamp in all episodes of a trial"
        pairs += [a == b for a, b in words if b in SWITCHES]
    assert 0.1 < np.mean(pairs) < 0.6


def test_what_gaussian_arms_paid_is_read_in_hundredths() -> None:
    own = RECIPE.replace(tasks=GaussianBandits(arms=3, pulls=4), context={"turn": "{reward:g}"}, trial={"episodes": 2})
    chat = ChatFormat(build_tokenizer(["pull arms a b c next . - 01 02 03 04 05 06 07 08 09"]))
    assert own.cloning is not None
    found = own.cloning.demonstrations.samples(own, chat, 20, random.Random(0))
    texts = [chat.decode([*s.prompt_ids, *s.sampled_ids]) for s in found]
    assert len(texts) == 10 and all(re.search(r"\b[abc] (- )?[01] ?\. ?\d+", text) for text in texts)


def test_an_own_model_of_another_architecture_and_an_own_world_by_settings_alone(tmp_path: Path) -> None:
    RECIPE.replace(**small(save_model(tmp_path / "model"))).train(tmp_path / "run")
    losses = [row["loss"] for row in rows_of(tmp_path / "run", "cloning")]
    assert losses[-1] < losses[0]
    rows = rows_of(tmp_path / "run", "eval")
    assert {r["strategy"] for r in rows} == {"direct", "thompson", "ucb", "greedy_mean", "any_choice"}
    assert all(len(r["measures"]["reward@3"]) == 4 for r in rows)


def test_arms_differ_in_who_played_and_in_what_is_read() -> None:
    assert list(CLAIM.changes("expert")) == ["cloning.demonstrations.learner"]
    assert CLAIM.changes("blind_dpt") == {"context.turn": "0"}
    as_many = {arm.as_data()["cloning"]["episodes"] for arm in CLAIM.arms.values()}
    assert len(as_many) == 1, "arms have as many labels"
