"""LHF: the score by hand, what is drawn by it, and a model and world of one's own."""

import random
from pathlib import Path
from typing import Any

import pytest
from helpers import make_trajectory, rows_of
from hidden_lamp import save_model, small

from longstride.claims.tuning import tuning_run
from longstride.models.chat import ChatFormat
from longstride.models.tiny import build_tokenizer
from longstride.papers.lhf.method import ImprovingAndStable
from longstride.papers.lhf.recipe import CLAIM, RECIPE
from longstride.run.histories import History, LearningHistories
from longstride.setups import trials
from longstride.starts.hidden_walks import HiddenWalks
from longstride.strategies.learners import AnyChoice, OneOf, QLearning


def history(*returns: float) -> History:
    return History([make_trajectory(reward=r) for r in returns])


@pytest.mark.parametrize(
    ("returns", "stability", "score"),
    [
        ((0, 0, 1, 1), 1.0, 1.0),
        ((0, 1, 0, 1), 1.0, 0.0 - 1 / 3),
        ((1, 0, 0, 1), 0.5, 0.0 - 0.5 / 3),
        ((0, 0, 1), 1.0, 1.0),  # of an odd number the one in the middle is of neither half
        ((1, 0), 0.0, -1.0),
        ((1,), 1.0, 0.0),
    ],
)
def test_a_score_is_improvement_less_lambda_drops(returns: tuple[float, ...], stability: float, score: float) -> None:
    assert ImprovingAndStable(stability=stability).score(returns) == pytest.approx(score)


def test_histories_are_drawn_by_their_score_and_the_worst_never() -> None:
    good, fair, bad = history(0, 0, 1, 1), history(0, 0, 0, 1), history(0, 1, 0, 0)
    drawn = ImprovingAndStable()([good, fair, bad] * 400, random.Random(0))
    # scores 1, 1/2 and -1/2 - 1/3, so weights 11/6, 8/6 and 0
    assert len(drawn) == 1200 and bad not in drawn
    assert drawn.count(good) / 1200 == pytest.approx(11 / 19, abs=0.05)


def test_of_histories_that_are_alike_all_stay() -> None:
    same = [history(0, 1), history(0, 1)]
    assert ImprovingAndStable()(same, random.Random(0)) == same


def test_the_filter_leaves_out_those_who_learn_nothing() -> None:
    noisy = LearningHistories(learner=OneOf(learners=(AnyChoice(), QLearning())))
    own = trials.recipe("own", noisy, tasks=trials.CORRIDORS, episodes=10)

    chat = ChatFormat(build_tokenizer(["reach the : , ;", *HiddenWalks().words()]))
    played = noisy.played(own, chat, 200, random.Random(1))
    earned = [sum(h.returns[-3:]) / 3 for h in played]
    kept = [sum(h.returns[-3:]) / 3 for h in ImprovingAndStable()(played, random.Random(0))]
    assert sum(kept) / len(kept) > sum(earned) / len(earned) + 0.15


def test_an_own_model_of_another_architecture_and_an_own_world_by_settings_alone(tmp_path: Path) -> None:
    RECIPE.replace(**small(save_model(tmp_path / "model"))).train(tmp_path / "run")
    losses = [row["loss"] for row in rows_of(tmp_path / "run", "cloning")]
    assert losses[-1] < losses[0]


def test_arms_differ_in_the_filter_and_in_the_share_of_noise() -> None:
    assert list(CLAIM.changes("all")) == ["cloning.demonstrations.filter"]
    assert "cloning.demonstrations.learner.weights" in CLAIM.changes("filtered_0")


@pytest.mark.parametrize("whole", [True, False])
def test_the_rate_falls_to_the_end_of_short_runs_of_tuning_too(whole: bool) -> None:
    run: Any = tuning_run(CLAIM, "all", {"cloning.learner.lr": 2e-3}, 900, whole)
    own, histories = run.cloning.learner, run.cloning.episodes // run.trial.episodes
    assert own.epochs == (4 if whole else 2) and own.lr == 2e-3
    assert own.decay_steps == own.epochs * histories // own.batch_samples
