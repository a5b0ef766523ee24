"""Scorer-aware choice with language models: each scorer has the search that did best for it on other tasks."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from elsewhere import train_elsewhere
from helpers import make_task, make_trajectory, make_turn, rows_of

from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.papers.scorer_aware.method import ChosenByScorer, WholeSolutions
from longstride.rewards.scorers import Generative, RunJudge, Score
from longstride.rollout import Plan, ScriptedPlayer
from longstride.strategies import EvalEpisode
from longstride.strategies.search import Independent
from longstride.strategies.searched import Asked, Guide

PLAYER = ScriptedPlayer(lambda _: "")


class Likes(Guide):
    """Scores an answer that ends in its number higher."""

    number: int

    @property
    def name(self) -> str:
        return f"likes_{self.number}"

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [Score(0.9 if t.ordinal % 2 == self.number else 0.1, 0, 3) for t in solutions]


def played(strategy: ChosenByScorer, n: int = 8) -> list[EvalEpisode]:
    """Tasks that are done by every second attempt: the first of two is wrong, the second right."""
    plans = [Plan(make_task(f"t{k}"), k, 10 + k, Budget(turns=1), group=k) for k in range(n)]
    stages = strategy.run(plans, PLAYER)
    try:
        stage = next(stages)
        while True:
            stage = stages.send(
                [
                    make_trajectory(
                        [make_turn(range(4))],
                        float(p.ordinal % 2),
                        task=p.task,
                        ordinal=p.ordinal,
                        answer=str(p.ordinal % 2),
                    )
                    for p in stage
                ]
            )
    except StopIteration as end:
        return end.value


BOTH = ChosenByScorer(guides=(Likes(number=0), Likes(number=1)), searches=(Independent(n=1), Independent(n=2)), mark="")


def test_each_scorer_has_the_search_that_serves_it() -> None:
    """One answer is wrong. Of two answers the scorer that likes the second takes the right one, the other the wrong."""
    (first, *_) = found = played(BOTH)
    assert {name: first.measures[name] for name in ("search_likes_0", "search_likes_1")} == {
        "search_likes_0": 0,  # of equals the first
        "search_likes_1": 1,
    }
    assert [e.measures["solved_likes_1"] for e in found] == [1.0] * 8 and [e.measures["solved"] for e in found] == [
        0.5
    ] * 8
    # an answer of 4 tokens for one scorer and two for the other, each read with 3
    assert {(e.spent_tokens, e.total_tokens) for e in found} == {(6, 6 + round((3 + 6) / 2))}


def test_one_search_for_all_is_the_best_over_all_scorers() -> None:
    found = played(BOTH.replace(aware=False))
    assert {(e.measures["search_likes_0"], e.measures["search_likes_1"]) for e in found} == {(1, 1)}
    three = BOTH.replace(guides=(Likes(number=0), Likes(number=1), Likes(number=3)), aware=False)
    assert len({BOTH.name, BOTH.replace(aware=False).name, three.name, BOTH.replace(mark=";").name}) == 4


def test_what_may_go_on_is_not_shown_to_a_scorer_of_whole_solutions() -> None:
    asked: list[int] = []

    class Watch(Likes):
        def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
            asked.extend(t.ordinal for t in solutions)
            return super().__call__(solutions, player)

    stops = StopReason.MARK, StopReason.ANSWERED, StopReason.TURNS, StopReason.TOKENS
    came = [make_trajectory([make_turn([1])], stop=stop, ordinal=k) for k, stop in enumerate(stops)]
    assert [s.value for s in WholeSolutions(guide=Watch(number=1))(came, PLAYER)] == [0.5, 0.9, 0.5, 0.9]
    assert asked == [1, 3] and WholeSolutions(guide=Likes(number=1)).name == "whole_likes_1"


def test_another_model_on_other_tasks_by_settings_alone(tmp_path: Path) -> None:
    run = train_elsewhere(
        "scorer_aware", tmp_path, "learner.epochs=0", "iterations=1", "evaluation.every=1",
        f"evaluation.strategies.0.guides.1.guide.judge.run={tmp_path / 'model'}",
        f"evaluation.strategies.1.guides.1.guide.judge.run={tmp_path / 'model'}",
    )  # fmt: skip
    rows = rows_of(run, "eval")[-2:]
    assert [row["strategy"].split("_of_")[1] for row in rows] == ["4_by_scorer", "4_for_all"]
    assert all(len(row["measures"]["solved"]) == 4 for row in rows)
    assert np.mean(rows[0]["measures"]["total_tokens"]) > np.mean(rows[0]["measures"]["spent_tokens"])


def test_a_choice_by_scorer_needs_two_scorers() -> None:
    with pytest.raises(ConfigError, match="guides: Tuple should have at least 2 items"):
        BOTH.replace(guides=BOTH.guides[:1])


def test_scorers_of_one_name_whose_measures_would_be_one_are_refused() -> None:
    judges = tuple(Asked(scorer=Generative(), judge=RunJudge(run=f"{of}/judge")) for of in ("first", "second"))
    with pytest.raises(ConfigError, match="guides: two of them are called 'generative_1_run_judge'"):
        BOTH.replace(guides=judges)
