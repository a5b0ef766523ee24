"""SPCT on a language model: questions of scores, sums of several judgements, their filter, and a user's own judge."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bigrams import bigram_policy
from helpers import rows_of

from longstride.claims.tuning import axes
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.envs.judgements import Judgements, LabelledSolution
from longstride.envs.questions import SCORES, Question, verdicts_in
from longstride.models.load import save_policy
from longstride.papers.spct.method import SummedScores, Voted, judgements, kept
from longstride.papers.spct.recipe import CLAIM, RECIPE
from longstride.rewards.scorers import NoVerdict, Reply, Score, Scorer, Scoring, score
from longstride.run.evaluation import evaluate_policy
from longstride.run.recipe import Recipe

WORDS = (
    "Which of the answers is better ? task : Give your reasons , then say Verdict and one of first second sum yes no "
    + " ".join(SCORES)
)
SAYS = {
    "<agent>": {"sum": 1.0}, "sum": {"Verdict": 1.0}, "Verdict": {":": 1.0},
    ":": {"10": 0.5, "8": 0.5}, "10": {"3": 1.0}, "8": {"9": 1.0},
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a GPT-NeoX that scores by chance, and a right and a wrong answer to each task."""
    save_policy(bigram_policy(WORDS, SAYS), tmp_path / "model")
    rows = [{"task": f"sum {k}", "solution": f"sum {r}", "right": r} for k in range(40) for r in (True, False)]
    (tmp_path / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def own(home: Path, *settings: str) -> Recipe:
    few = ["iterations=1", "episodes_per_iteration=32", "evaluation.tasks=4", "tasks.test_share=0.4", "cloning="]
    paths = [f"model={home / 'model'}", f"tasks.path={home / 'solutions.jsonl'}"]
    return resolve(Recipe, RECIPE, [*paths, *few, f"evaluation.strategies.2.filtered_by={home / 'model'}", *settings])


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("so Verdict: 8 3", ("8", "3")),
        ("Verdict: 1 Verdict : 10, 2.", ("10", "2")),
        ("Verdict: 8", None),
        ("Verdict: 8 3 1", None),
        ("Verdict: 8 11", None),
        ("8 3", None),
    ],
)
def test_scores_are_as_many_as_there_are_answers(said: str, found: tuple[str, ...] | None) -> None:
    assert verdicts_in(said, SCORES, 2) == found


def test_a_question_of_scores_is_right_where_the_best_has_the_highest_one(home: Path) -> None:
    (task, *_) = own(home).tasks.held_out(1)
    assert task.goal.endswith("one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 of first, then of second")
    assert task.evaluator["reference"] == ("first", "second")[task.meta["right"].index(True)]
    found = evaluate_policy(bigram_policy(WORDS, SAYS | {":": {"10": 1.0}}), own(home))
    assert {t.answer for t in found.trajectories} == {"first"} and {t.turns[0].action for t in found.trajectories} == {
        "answer 10 3"
    }
    even = evaluate_policy(bigram_policy(WORDS, SAYS | {":": {"8": 1.0}, "8": {"8": 1.0}}), own(home))
    assert not any(t.success for t in even.trajectories)


def test_known_reasons_are_of_what_was_read_and_so_are_the_scores() -> None:
    pair = [
        LabelledSolution(task="sum", solution=s, right=r, reasons=f"{s} why") for s, r in (("a", True), ("b", False))
    ]
    source = Judgements(asks="scores")
    said = {source.demonstrate(source.question(pair, random.Random(k), "train"))[0] for k in range(60)}
    assert {
        "first a why ; second b why Verdict: 10 1", "first a why Verdict: 10 5", "second b why Verdict: 5 1",
        "first b why ; second a why Verdict: 1 10", "first b why Verdict: 1 5", "second a why Verdict: 5 10",
    } == said  # fmt: skip


def said(scores: dict[str, int], bias: int = 0) -> "callable":  # pyright: ignore
    """Replies that score an answer by its text, and the one that is shown first so much higher."""

    def ask(questions: Sequence[Question]) -> list[Reply | NoVerdict]:
        return [
            NoVerdict("none", 1, 2)
            if q.vote == 9
            else Reply(
                (), 3, 5, (str(scores[q.about["first"]] + bias), str(scores[q.about["second"]])), f"vote {q.vote}"
            )
            for q in questions
        ]

    return ask


def test_scores_of_shuffled_judgements_are_summed() -> None:
    (found,) = score(SummedScores(votes=8), [("task", ["a", "b", "c"])], said({"a": 3, "b": 9, "c": 5}, bias=1))
    values = [s.value or 0.0 for s in found]
    assert sorted(range(3), key=values.__getitem__) == [0, 2, 1] and all(0 < v <= 1 for v in values)
    # two questions a vote, each of which is counted for the answer that stands first
    assert sum(s.tokens for s in found) == 8 * 2 * 3 and sum(s.read for s in found) == 8 * 2 * 5
    orders = {j.pair for vote in judgements("q", "task", ["a", "b"], 8, 0) for j in vote}
    assert orders == {(0, 1), (1, 0)}


def test_a_reply_without_scores_is_no_vote() -> None:
    (found,) = score(SummedScores(votes=10), [("task", ["a", "b"])], said({"a": 2, "b": 4}))
    assert [s.value for s in found] == pytest.approx([0.2, 0.4])


def test_a_model_that_says_one_score_says_none(home: Path) -> None:
    mute = bigram_policy(WORDS, SAYS | {":": {"8": 1.0}, "8": {"sum": 1.0}})
    found = evaluate_policy(mute, own(home), strategy=Voted(votes=2)).measures
    spent, sampled = (np.array(found[name], float) for name in ("spent_tokens", "sampled_tokens"))
    assert found["voted"] == [0.0] * 4 and spent.min() > sampled.max()


class Likes(Scorer):
    """A filter that is surer of later votes."""

    @property
    def name(self) -> str:
        return "likes"

    def run(self, task: str, answers: Sequence[str]) -> Scoring:
        yield from ()
        return [Score(int(a.split()[-1]) / 10, 1, 1) for a in answers]


def test_a_filter_leaves_the_judgements_that_it_is_surest_of() -> None:
    def ask(questions: Sequence[Question]) -> list[Reply]:
        return [Reply((), 0, 0, ("1" if q.vote < 4 else "9",) * 2, f"vote {q.vote}") for q in questions]

    plain, filtered = SummedScores(votes=8), SummedScores(votes=8, meta=Likes())
    means = [score(s, [("task", ["a", "b"])], ask)[0][0].value for s in (plain, filtered, filtered.replace(keep=6))]
    assert means == pytest.approx([0.5, 0.9, (4 * 9 + 2) / 60])
    assert filtered.name == "summed_8_4_by_likes" != plain.name
    assert kept(np.array([[0.1, 0.9, 0.5, 0.2]]), 2).tolist() == [[False, True, True, False]]


def test_votes_cancel_a_liking_for_a_place(home: Path) -> None:
    """It scores whatever stands first higher: right in half of the cases alone, and by votes even or by chance."""
    biased = bigram_policy(WORDS, SAYS | {":": {"10": 1.0}})
    found = evaluate_policy(biased, own(home), strategy=Voted(votes=32)).measures
    assert set(found["voted"]) <= {0.0, 1.0} and len(found["voted"]) == 4
    assert [a - b for a, b in zip(found["spent_tokens"], found["sampled_tokens"], strict=True)] == [32 * 5.0] * 4  # pyright: ignore
    with pytest.raises(ConfigError, match=r"set tasks\.asks=scores"):
        evaluate_policy(biased, own(home, "tasks.asks=right"), strategy=Voted())


def test_a_model_of_another_architecture_learns_from_own_pairs_by_settings_alone(home: Path) -> None:
    own(home, "learner.lr=1e-2").train(home / "run")
    (row,) = rows_of(home / "run", "train")
    assert 0 < row["summary"]["success"] < 1 and 0 < row["trained_turns"] < RECIPE.learner.epochs * 32
    rows = [r for r in rows_of(home / "run", "eval") if "voted" in r["measures"]]
    assert {r["strategy"].split("_")[1] for r in rows} == {"8"} and all(len(r["measures"]["voted"]) == 4 for r in rows)
    plain, filtered = rows[-2:]
    assert np.mean(filtered["measures"]["total_tokens"]) > np.mean(plain["measures"]["total_tokens"])


def test_a_judge_that_learns_nothing_by_reinforcement_is_not_tuned() -> None:
    assert not axes(CLAIM, "cloned") and axes(CLAIM, "tuned")
