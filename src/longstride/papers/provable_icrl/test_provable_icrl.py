"""Provable ICRL: labels are the expert's on whatever trajectory, and a model and world of one's own."""

import random
from pathlib import Path
from typing import Any

import pytest
from helpers import rows_of
from hidden_lamp import CHAT, TOKENIZER, save_model, small

from longstride.claims.tuning import tuning_run
from longstride.papers.provable_icrl.recipe import CLAIM, RECIPE
from longstride.run.recipe import Recipe


def labels(recipe: Recipe) -> list[tuple[str, str]]:
    """What was said and what is imitated."""
    assert recipe.cloning is not None
    found = recipe.cloning.demonstrations.samples(recipe, CHAT, 90, random.Random(0))
    words = {i: word for word, i in TOKENIZER.get_vocab().items()}
    return [
        (words[a], words[b])
        for s in found
        for a, b, w in zip(s.sampled_ids, s.targets or s.sampled_ids, s.advantages, strict=True)
        if w and words[b] != "<end>"
    ]


def agreement(arm: str) -> float:
    """Share of turns in which what was done is what the expert says."""
    own = CLAIM.arms[arm]
    assert isinstance(own, Recipe)
    pairs = labels(own.replace(**small("none")))
    return sum(a == b for a, b in pairs) / len(pairs)


def test_the_further_apart_the_two_are_the_less_is_done_what_is_imitated() -> None:
    found = [agreement(arm) for arm in ("matched", "half", "nine_tenths", "apart")]
    assert found == sorted(found, reverse=True) and found[0] > 0.6 > 0.45 > found[-1]


def test_an_own_model_of_another_architecture_and_an_own_world_by_settings_alone(tmp_path: Path) -> None:
    RECIPE.replace(**small(save_model(tmp_path / "model"))).train(tmp_path / "run")
    losses = [row["loss"] for row in rows_of(tmp_path / "run", "cloning")]
    assert losses[-1] < losses[0]
    rows = rows_of(tmp_path / "run", "eval")
    assert {r["strategy"] for r in rows} == {"direct", "lin_ucb", "thompson", "any_choice"}


@pytest.mark.parametrize("whole", [True, False])
def test_the_rate_falls_to_the_end_of_short_runs_of_tuning_too(whole: bool) -> None:
    run: Any = tuning_run(CLAIM, "apart", {"cloning.learner.lr": 2e-3}, 900, whole)
    own, trials = run.cloning.learner, run.cloning.episodes // run.trial.episodes
    assert own.epochs == (4 if whole else 2) and own.lr == 2e-3
    assert own.decay_steps == own.epochs * trials // own.batch_samples
