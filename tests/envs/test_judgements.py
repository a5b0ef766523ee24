"""A judge's world: labels are right line by line, splits do not leak, files are checked."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from longstride.core.errors import ConfigError, LongstrideWarning, TaskError
from longstride.core.task import Task
from longstride.envs.judgements import FILLER, Judgements
from longstride.envs.puzzles import Countdown, Sudoku
from longstride.envs.puzzles.countdown import Numbers
from longstride.envs.puzzles.modular import Chain
from longstride.envs.puzzles.sudoku import Grid
from longstride.envs.questions import VERDICT, YES_NO, Question, verdict_in
from longstride.papers.backtrack.method import SearchTraces
from longstride.rewards.evaluators import judge
from longstride.rewards.scorers import Generative, Pairwise, Scorer
from longstride.starts.demonstrators import run_now

CHAIN = Chain(first=3, operations=(("+", 4), ("*", 2), ("-", 5)), modulus=7)
GOAL = CHAIN.goal


def file_of(folder: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path = folder / "solutions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def row(task: int, right: bool, **more: Any) -> dict[str, Any]:
    return {"task": f"task {task}", "solution": f"{'good' if right else 'bad'} {task}", "right": right} | more


@pytest.mark.parametrize(
    ("said", "review"),
    [
        (
            "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; 0 - 5 ≡ 2 Action: answer 2",
            "1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is 0 yes ; 3 0 - 5 ≡ 2 is 2 yes ; 4 answer 2 is 2 yes",
        ),
        ("Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 3 Action: answer 3", "1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is 3 no"),
        ("Thought: 3 + 4 ≡ 0 ; 0 + 2 ≡ 2 Action: answer 2", "1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is other no"),
        ("Thought: 3 + 4 ≡ 0 Action: answer 0", "1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is answer no"),
        ("Action: answer 2", "1 3 + 4 ≡ 0 is answer no"),
        ("nonsense", "1 3 + 4 ≡ 0 is answer no"),
        (
            "Thought: 3 + 4 ≡ 0 ; 0 * 2 ≡ 0 ; 0 - 5 ≡ 2 Action: answer a lot",
            "1 3 + 4 ≡ 0 is 0 yes ; 2 0 * 2 ≡ 0 is 0 yes ; 3 0 - 5 ≡ 2 is 2 yes ; 4 answer 2 is other no",
        ),
    ],
)
def test_a_review_goes_line_by_line_to_the_first_that_is_wrong(said: str, review: str) -> None:
    assert " ; ".join(CHAIN.review(said)) == review


@pytest.mark.parametrize(
    ("said", "review"),
    [
        (
            "Thought: 8 - 5 = 3 , 6 2 ; 6 * 3 = 18 , 2 ; 18 2 want 20 ; 18 + 2 = 20 want 20 yes "
            "Action: answer 6 * ( 8 - 5 ) + 2",
            "1 8 - 5 = 3 is 3 yes ; 2 6 * 3 = 18 is 18 yes ; 3 18 2 want 20 is 20 yes ; 4 18 + 2 = 20 is 20 yes ; "
            "5 answer 20 is 20 yes",
        ),
        ("Thought: 8 - 5 = 2 Action: answer 8 - 5", "1 8 - 5 = 3 is 2 no"),
        ("Thought: 8 - 4 = 4 Action: answer 8", "1 8 - 4 = 4 is other no"),  # there is no 4
        ("Thought: 8 - 5 = 3 , 6 Action: answer 8", "1 8 - 5 = 3 is other no"),  # a 2 is left too
        ("Thought: 8 - 5 = 3 ; again ; 8 - 5 = 3 want 20 yes Action: answer 8",
         "1 8 - 5 = 3 is 3 yes ; 2 again yes ; 3 8 - 5 = 3 is other no"),
        ("Thought: 8 - 5 = 3 ; again 8 6 Action: answer 8", "1 8 - 5 = 3 is 3 yes ; 2 again 8 6 no"),
        ("Thought: 8 6 want 20 Action: answer 8", "1 8 6 want 20 is 20 no"),  # four are left
        ("Thought: 8 / 2 = 4 want 20 no ; 5 / 2 = 2 Action: answer 8",
         "1 8 / 2 = 4 is 4 yes ; 2 5 / 2 = 5/2 is 2 no"),
        ("Action: answer ( 8 + 2 ) * 2", "1 answer 20 is other no"),  # 2 twice
        ("Action: 8 + 6 + 5 + 2", "1 answer 20 is other no"),
        ("nonsense", "1 answer 20 is other no"),
    ],
)  # fmt: skip
def test_steps_of_a_countdown_are_judged_by_what_is_left_and_by_arithmetic(said: str, review: str) -> None:
    assert " ; ".join(Numbers(numbers=(8, 6, 5, 2), target=20).review(said) or []) == review


GRID = Grid(cells=(0, 1, 3, 0, 0, 2, 0, 0, 0, 4, 0, 3, 0, 0, 2, 0))
FILLED = "answer 4 1 3 2 ; 3 2 4 1 ; 2 4 1 3 ; 1 3 2 4"


@pytest.mark.parametrize(
    ("said", "review"),
    [
        (f"Thought: 1 1 4 ; 1 4 2 Action: {FILLED}", "1 1 1 4 yes ; 2 1 4 2 yes ; 3 answer yes"),
        ("Thought: 3 3 no Action: answer 4", "1 3 3 no no"),  # 1 is left
        ("Thought: 2 3 1 ; 3 3 no Action: answer 4", "1 2 3 1 yes ; 2 3 3 no yes ; 3 answer no"),
        ("Thought: 1 1 1 Action: answer 4", "1 1 1 1 no"),
        ("Thought: 1 2 4 Action: answer 4", "1 1 2 4 no"),  # a cell that is given
        ("Thought: 1 1 4 ; 1 1 2 Action: answer 4", "1 1 1 4 yes ; 2 1 1 2 no"),
        ("Thought: 1 4 2 ; 1 1 4 ; again ; 1 4 4 Action: answer 4",
         "1 1 4 2 yes ; 2 1 1 4 yes ; 3 again yes ; 4 1 4 4 yes ; 5 answer no"),
    ],
)  # fmt: skip
def test_digits_of_a_sudoku_are_judged_by_its_rules(said: str, review: str) -> None:
    assert " ; ".join(GRID.review(said) or []) == review


@pytest.mark.parametrize("tasks", [Countdown(numbers=(2, 3, 4), largest=10, most=30), Sudoku(blanks=(4, 8, 10))])
def test_every_line_of_a_search_that_goes_back_is_right_and_other_words_have_no_label(
    tasks: Countdown | Sudoku,
) -> None:
    traces = SearchTraces(tasks=tasks, most=2000).demonstrations(0)
    for _ in range(30):
        trace = next(traces)
        lines = tasks.review(trace.task, trace.texts[0])
        assert lines and all(line.endswith(" yes") for line in lines)
    assert tasks.review(trace.task, "Thought: let me see Action: answer 4") is None


def test_a_judge_is_asked_for_the_wrong_line_of_a_countdown() -> None:
    source = Judgements(puzzles=Countdown(largest=10, most=30), solved=6, attempts=4, asks="line")
    tasks = source.held_out(24)
    assert len({t.evaluator["reference"] for t in tasks}) > 3
    for task in tasks:
        reasons, line = task.meta["reasons"].split(" ; "), task.evaluator["reference"]
        assert line == ("none" if reasons[-1].endswith("yes") else str(len(reasons)))


def test_solutions_of_a_shipped_policy_have_labels_that_agree_with_their_reviews() -> None:
    source = Judgements(solved=6, attempts=4)
    for split, solutions in source.solutions.items():
        assert len(solutions) == 24
        for s in solutions:
            assert s.reasons is not None and s.wrong_line is not None
            lines = s.reasons.split(" ; ")
            assert s.wrong_line == (0 if lines[-1].endswith("yes") else len(lines))
            assert not (s.right and s.wrong_line)
        assert {s.task for s in solutions}.isdisjoint(
            {s.task for other, of in source.solutions.items() if other != split for s in of}
        )
    assert 0 < sum(s.right for of in source.solutions.values() for s in of) < 48
    assert source.solutions == Judgements(solved=6, attempts=4).solutions


@pytest.mark.parametrize(("asks", "scorer"), [("right", Generative()), ("better", Pairwise())])
def test_a_judge_is_trained_on_the_words_in_which_a_scorer_asks(tmp_path: Path, asks: Any, scorer: Scorer) -> None:
    source = Judgements(path=file_of(tmp_path, [row(1, True), row(1, False)]), asks=asks, test_share=0.0)
    task = source.question(source.solutions["train"], random.Random(1), "train") if asks == "better" else None
    task = task or source.question(source.solutions["train"][:1], random.Random(0), "train")
    (questions,) = (next(scorer.run("task 1", task.meta["solutions"])),)
    assert task.goal in [q.words for q in questions]


def test_of_pairs_the_right_one_is_first_as_often_as_second_and_the_label_says_where(tmp_path: Path) -> None:
    source = Judgements(path=file_of(tmp_path, [row(1, True), row(1, False)]), asks="better", test_share=0.0)
    with pytest.raises(TaskError, match="no tasks with a right and a wrong solution among those of the split test"):
        source.sample(random.Random(0), 1)
    tasks = [source.question(source.solutions["train"], random.Random(k), "train") for k in range(200)]
    firsts = [t.evaluator["reference"] == "first" for t in tasks]
    assert firsts == [t.meta["solutions"][0] == "good 1" for t in tasks]
    assert 80 < sum(firsts) < 120


def test_a_line_is_asked_for_by_its_number(tmp_path: Path) -> None:
    rows = [row(k, k % 2 == 0, wrong_line=3 * (k % 2), solution=f"{k}\nb\nc") for k in range(12)]
    source = Judgements(path=file_of(tmp_path, rows), asks="line", test_share=0.4)
    tasks = source.held_out(99)
    assert {t.evaluator["reference"] for t in tasks} <= {"none", "3"}
    assert all(t.meta["options"] == ["none", "1", "2", "3", "4"] for t in tasks)


def test_right_and_wrong_ones_come_equally_often_unless_that_is_not_wanted(tmp_path: Path) -> None:
    path = file_of(tmp_path, [row(k, k % 10 == 0) for k in range(200)])

    def rights(balanced: bool) -> int:
        tasks = Judgements(path=path, balanced=balanced).sample(random.Random(0), 400)
        return sum(t.evaluator["reference"] == "yes" for t in tasks)

    assert 160 < rights(True) < 240 and rights(False) < 80


@pytest.mark.parametrize(("share", "expected"), [(1.0, 1.0), (0.5, 0.75), (0.0, None)])
def test_an_artefact_goes_with_the_label_by_its_share_in_training_alone(
    tmp_path: Path, share: float, expected: float | None
) -> None:
    source = Judgements(
        path=file_of(tmp_path, [row(k, k % 2 == 0) for k in range(900)]), artefact=share, test_share=0.5
    )
    train, test = source.sample(random.Random(0), 600), source.held_out(400)

    def agreement(tasks: Sequence[Task]) -> float:
        sides = [(FILLER in t.goal) == (t.evaluator["reference"] == "yes") for t in tasks]
        return sum(sides) / len(sides)

    if expected is None:
        assert not any(FILLER in t.goal for t in [*train, *test])
    else:
        assert agreement(train) == pytest.approx(expected, abs=0.06)
        assert agreement(test) == pytest.approx(0.5, abs=0.1)


def test_a_file_is_split_by_task_and_its_reasons_are_what_is_imitated(tmp_path: Path) -> None:
    rows = [row(k, right, reasons="I looked .") for k in range(60) for right in (True, False)]
    source = Judgements(path=file_of(tmp_path, rows), test_share=0.3)
    held_out = {t.meta["task"] for t in source.held_out(999)}
    assert held_out and held_out.isdisjoint(t.meta["task"] for t in source.sample(random.Random(0), 300))
    task = source.sample(random.Random(0), 1)[0]
    assert source.demonstrate(task) == [f"I looked . {VERDICT} {task.evaluator['reference']}"]
    task = source.replace(reasons=False).sample(random.Random(0), 1)[0]
    assert source.demonstrate(task) == [f"{VERDICT} {task.evaluator['reference']}"] and "Say Verdict:" in task.goal


def test_reasons_that_nobody_knows_cannot_be_imitated(tmp_path: Path) -> None:
    source = Judgements(path=file_of(tmp_path, [row(k, k % 2 == 0) for k in range(60)]))
    with pytest.raises(TaskError, match="no reasons to imitate: give the column `reasons`"):
        source.demonstrate(source.sample(random.Random(0), 1)[0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ; b Verdict: yes", "yes"),
        ("Verdict : no", "no"),
        ("**Verdict:** Yes.", "yes"),
        ("Verdict: yes Verdict: no", "no"),
        ("Verdict: maybe", None),
        ("yes", None),
        ("Verdict: yes and no", None),
    ],
)
def test_a_verdict_is_the_option_behind_the_last_mark(text: str, expected: str | None) -> None:
    assert verdict_in(text, YES_NO) == expected


def test_an_episode_takes_the_verdict_and_explains_where_there_is_none(tmp_path: Path) -> None:
    source = Judgements(path=file_of(tmp_path, [row(k, True) for k in range(60)]))
    task = source.sample(random.Random(0), 1)[0]
    env = source.env()
    assert run_now(env.reset(task, 0)).text == ""
    step = run_now(env.step("so it is Verdict: yes"))
    assert step.terminated and step.answer == "yes" and judge(task, step.answer, {}).reward == 1
    step = run_now(env.step("so it is"))
    assert step.terminated and step.answer is None
    assert step.error == "the reply has no verdict; end with Verdict: and one of yes, no"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not a JSON object"),
        ('{"task": "a", "solution": "b"}', "line 2: right: Field required"),
        ('{"task": "a", "solution": "b", "right": "yes"}', "line 2: right: Input should be a valid boolean"),
        ('{"task": "", "solution": "b", "right": true}', "line 2: task: String should have at least 1"),
        ('{"task": "a", "solution": "b", "right": true, "label": 1}', "line 2: label: Extra inputs"),
        ("[1]", "line 2: the line: Input should be"),
        (
            '{"task": "a", "solution": "b ; c", "right": false, "wrong_line": 4}',
            r"line 2: wrong_line: Value error, the solution has 3 lines, its answer among them \(got 4\)",
        ),
    ],
)
def test_a_line_that_is_no_solution_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = file_of(tmp_path, [row(1, True)])
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(TaskError, match=message):
        Judgements(path=path).held_out(1)


def test_a_file_without_a_line_is_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"is empty; expected JSON lines"):
        Judgements(path=file_of(tmp_path, [])).held_out(1)


def test_a_judge_that_would_learn_one_verdict_is_warned_of(tmp_path: Path) -> None:
    path = file_of(tmp_path, [row(k, True) for k in range(40)])
    with pytest.warns(LongstrideWarning, match="all training solutions are right"):
        Judgements(path=path).sample(random.Random(0), 1)


def test_a_file_that_is_missing_is_said_when_the_settings_are_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        Judgements(solved=1).replace(path=tmp_path / "none.jsonl")


def test_the_words_of_a_question_name_its_material_and_its_options() -> None:
    question = Question("Is it so?", {"task": "t", "answer": "a"}, YES_NO, reasons=9)
    assert question.words == "Is it so?\ntask: t\nanswer: a\nGive your reasons, then say Verdict: and one of yes, no"
