"""J1 on a language model: RL on verdicts of a user's own pairs, waits before a verdict, and verdicts in both orders."""

import json
from pathlib import Path

import pytest
from bigrams import bigram_policy
from helpers import make_task, rows_of

from longstride.core.config import resolve
from longstride.core.errors import TaskError
from longstride.envs.judgements import swapped
from longstride.envs.questions import VERDICT
from longstride.models.load import save_policy
from longstride.papers.j1.method import BothOrders
from longstride.papers.j1.recipe import CLAIM, RECIPE
from longstride.run.evaluation import evaluate_policy
from longstride.run.recipe import Recipe
from longstride.strategies.think_on import ThinkOn

WORDS = (
    "Which of the two answers is better ? task : Give your reasons , then say Verdict and one of first second sum wait"
)
SAYS = {
    "<agent>": {"sum": 1.0}, "sum": {"Verdict": 1.0}, "wait": {"sum": 1.0}, "Verdict": {":": 1.0},
    ":": {"first": 0.5, "second": 0.5},
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a GPT-NeoX that prefers one place by chance, and two solutions of each task."""
    save_policy(bigram_policy(WORDS, SAYS), tmp_path / "model")
    rows = [{"task": f"sum {k}", "solution": f"is {r}", "right": r} for k in range(30) for r in (True, False)]
    (tmp_path / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def own(home: Path) -> Recipe:
    few = ["iterations=1", "episodes_per_iteration=32", "evaluation.tasks=4", "tasks.test_share=0.4"]
    return resolve(Recipe, RECIPE, [f"model={home / 'model'}", f"tasks.path={home / 'solutions.jsonl'}", *few])


def test_a_model_of_another_architecture_learns_from_own_pairs_by_settings_alone(home: Path) -> None:
    own(home).train(home / "run")
    (row,) = rows_of(home / "run", "train")
    assert 0 < row["summary"]["success"] < 1 and row["trained_turns"] == 32 * RECIPE.learner.epochs
    measures = [r["measures"] for r in rows_of(home / "run", "eval") if r["strategy"] == "both_orders"]
    assert len(measures) == 2 and all(len(m["consistent"]) == 4 for m in measures)


def test_a_judge_that_likes_a_place_is_right_in_one_order_and_never_in_both(home: Path) -> None:
    biased = bigram_policy(WORDS, SAYS | {":": {"first": 1.0}})
    found = evaluate_policy(biased, own(home), strategy=BothOrders()).measures
    assert found["consistent"] == [0.0] * 4 and found["first"] == [1.0] * 4
    assert [a - b for a, b in zip(found["spent_tokens"], found["sampled_tokens"], strict=True)] == [5.0] * 4  # pyright: ignore[reportOperatorIssue]


def test_a_pair_in_the_other_order_has_the_other_label(home: Path) -> None:
    for task in own(home).tasks.held_out(4):
        other = swapped(task)
        assert other.meta["solutions"] == task.meta["solutions"][::-1] and swapped(other).goal == task.goal
        assert {task.evaluator["reference"], other.evaluator["reference"]} == {"first", "second"}
    with pytest.raises(TaskError, match="is about no pair; set tasks.asks=better"):
        swapped(make_task())


def test_a_wait_takes_the_place_of_what_begins_the_verdict(home: Path) -> None:
    waits = ThinkOn(times=2, word="wait", end=VERDICT)
    assert waits.name == "think_on_2_wait_before_Verdict:"
    found = evaluate_policy(bigram_policy(WORDS, SAYS), own(home), strategy=waits)
    assert {t.turns[0].text.rpartition(" ")[0] for t in found.trajectories} == {"sum wait sum wait sum Verdict :"}


@pytest.mark.parametrize("name", ["rl", "short_rl"])
def test_an_arm_of_the_claim_has_as_many_held_out_pairs_as_it_asks_for(name: str) -> None:
    arm = CLAIM.arms[name]
    assert isinstance(arm, Recipe) and len(arm.tasks.held_out(arm.evaluation.tasks)) == arm.evaluation.tasks
