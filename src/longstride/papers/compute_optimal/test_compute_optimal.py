"""Compute-optimal strategies: what is chosen on one fold is tested on the other, and counted as it was played."""

import json
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import rows_of

from longstride.claims.pilot import check_pilot
from longstride.exact.steps import ChosenByLevel, StepTasks
from longstride.papers.compute_optimal.exact import RECIPE, STRATEGIES, ChosenByPrediction, predicted
from longstride.papers.compute_optimal.recipe import CLAIM
from longstride.strategies.chosen import crossed
from longstride.strategies.search import Beam, Independent


def test_a_fold_is_tested_with_what_was_best_on_the_other_by_level_or_over_all() -> None:
    # two folds, two strategies, three levels
    won = np.array([[[9, 1, 5], [1, 2, 5]], [[0, 0, 4], [3, 3, 3]]])
    assert crossed(won, by_level=True).tolist() == [[1, 1, 0], [0, 1, 0]]
    assert crossed(won, by_level=False).tolist() == [[1, 1, 1], [0, 0, 0]]


def test_success_and_tokens_are_those_of_the_chosen_strategies_on_the_folds_they_are_tested_on() -> None:
    method = ChosenByLevel(strategies=(Independent(n=2), Beam(n=4, width=2)))
    won = np.array([[[3, 1], [1, 2]], [[2, 4], [4, 1]]], float)
    spent = np.zeros((2, 2, 2, 3))
    spent[..., 0] = np.arange(8).reshape(2, 2, 2)
    found = method.solution(StepTasks(), {"won": won, "played": np.full((2, 2, 2), 5.0), "spent": spent})
    # fold 0: strategies 1 and 0; fold 1: strategies 0 and 1
    assert found["won"].tolist() == [1 + 2, 1 + 1] and found["played"].tolist() == [10, 10]
    assert found["spent"][0] == (2 + 4) + (1 + 7)


def test_a_vote_serves_easy_tasks_and_a_beam_hard_ones() -> None:
    assert isinstance(RECIPE.problem, StepTasks) and isinstance(RECIPE.method, ChosenByLevel)
    problem, method = RECIPE.problem.replace(levels=(0.05, 0.7)), RECIPE.method.replace(tasks=20)
    state = method.step(problem, method.start(problem, np.random.default_rng(0)), np.random.default_rng(1))
    vote, _, _, beam = state["won"].sum(0) / 40
    assert vote[0] < 0.05 and beam[0] > 0.1 and vote[1] > beam[1]
    assert problem.measures(method.solution(problem, state))["success"] > max(vote.mean(), beam.mean())


def test_the_prediction_is_the_mean_score_of_solutions_and_costs_their_steps() -> None:
    problem = StepTasks(levels=(0.1, 0.6))  # the scorer sees the label, so the score is the share of right solutions
    for level, chance in enumerate(problem.levels):
        score, ledger = predicted(problem, level, 4000, np.random.default_rng(0))
        assert score == pytest.approx(chance, abs=0.03)
        assert (ledger.sampled, ledger.calls) == (4000 * 6 * 10, 4000 * 6)


def test_a_bin_is_tested_with_what_did_best_in_it_on_the_other_fold_as_a_share_of_its_tasks() -> None:
    method = ChosenByPrediction(strategies=(Independent(n=2), Beam(n=4, width=2)))
    won, played = np.zeros((2, 2, 2, 1)), np.ones((2, 2, 2, 1))
    played[1, 0, 0], won[1, 0, 0], won[1, 1, 0] = 10, 3, 1  # by the share 1 is the best, by the count 0
    won[1, 0, 1], won[0, 1, 0], won[0, 0, 1] = 1, 1, 1
    spent = np.zeros((*won.shape, 3))
    spent[..., 0] = np.arange(8).reshape(won.shape)
    found = method.solution(StepTasks(), {"won": won, "played": played, "spent": spent})
    # fold 0: strategies 1 and 0; fold 1: strategies 1 and 0
    assert found["won"] == [1 + 1 + 1 + 1] and found["spent"][0] == (2 + 1) + (6 + 5)


def test_a_prediction_that_knows_chooses_as_the_level_does_and_is_counted() -> None:
    problem = StepTasks(levels=(0.1, 0.6))
    strategies = tuple(STRATEGIES.values())
    known, told = (
        ChosenByLevel(strategies=strategies, tasks=5),
        ChosenByPrediction(strategies=strategies, tasks=5, probes=200),
    )
    state = told.start(problem, np.random.default_rng(0))
    after = told.step(problem, state, np.random.default_rng(1))
    assert after["played"][:, :, [0, 1], [1, 0]].sum() == 0 and not state["played"].any()
    spent = problem.measures(told.solution(problem, after))["tokens"]
    state = known.step(problem, known.start(problem, np.random.default_rng(0)), np.random.default_rng(1))
    assert spent == problem.measures(known.solution(problem, state))["tokens"] + 200 * 60


def test_a_model_and_tasks_of_ones_own_have_a_strategy_chosen_by_settings_alone(tmp_path: Path) -> None:
    beam = '{type="searched", mark="red", search={type="beam", n=2, width=2}}'
    tried = f'[{{type="direct"}}, {{type="best_of", attempts=2}}, {beam}]'
    guide = '{type="confidence"}'
    run = train_elsewhere(
        "compute_optimal",
        tmp_path,
        f'evaluation.strategies=[{{type="chosen", strategies={tried}}}, '
        f'{{type="chosen", strategies={tried}, predicted_by={guide}, probes=2}}]',
    )
    known, predicted = (row["measures"] for row in rows_of(run, "eval") if row["iteration"] == 2)
    assert set(known["chosen"]) <= {0, 1, 2} and np.mean(known["tried_tokens"]) > np.mean(known["total_tokens"])
    # two answers of up to three tokens more
    assert 2 <= np.mean(predicted["tried_tokens"]) - np.mean(known["tried_tokens"]) <= 6


def test_a_strategy_is_chosen_under_scorers_that_were_trained_by_settings_alone(tmp_path: Path) -> None:
    """A head that is fitted to a file, and a model that judges, each leads a beam."""
    rows = [
        {"task": f"red {k}", "solution": word, "right": word == "lamp"} for k in range(9) for word in ("lamp", "no")
    ]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    learned = f'{{type="judgements", path="{tmp_path / "own.jsonl"}"}}'
    head = f'{{type="asked", scorer={{type="taught_probe", model="{tmp_path / "model"}", solutions={learned}}}}}'
    judge = f'{{type="asked", scorer={{type="generative", reasons=2}}, judge="{tmp_path / "model"}"}}'
    beams = [
        f'{{type="searched", mark="red", search={{type="beam", n=2, width=2}}, guide={of}}}' for of in (head, judge)
    ]
    run = train_elsewhere(
        "compute_optimal",
        tmp_path,
        f'evaluation.strategies=[{{type="chosen", strategies=[{{type="direct"}}, {", ".join(beams)}]}}]',
    )
    (row,) = [row["measures"] for row in rows_of(run, "eval") if row["iteration"] == 2]
    assert set(row["chosen"]) <= {0, 1, 2} and np.mean(row["tried_tokens"]) > 20 * np.mean(row["spent_tokens"])


def test_the_claim_can_be_frozen() -> None:
    check_pilot(CLAIM)
