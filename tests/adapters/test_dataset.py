"""Data sets as task sources: rows, splits, conversations, how answers are compared, and bad lines."""

import datetime
import json
import random
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small

from longstride.adapters import dataset
from longstride.adapters.dataset import Dataset
from longstride.adapters.matching import last_number
from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.errors import ConfigError, LongstrideWarning, TaskError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Solver, TaskSource
from longstride.rewards import judge
from longstride.run.imitation import Cloning

ROWS = [{"prompt": f"say word {k}", "answer": "red" if k % 2 else "blue"} for k in range(40)]


def write(folder: Path, rows: list[Any], name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def source(path: Path, **fields: Any) -> Dataset:
    found = build(TaskSource, {"type": "dataset", "path": str(path), **fields})
    assert isinstance(found, Dataset)
    return found


def one(folder: Path, row: dict[str, Any], **fields: Any) -> Task:
    return source(write(folder, [row]), test_share=0, **fields).sample(random.Random(0), 1)[0]


def test_rows_become_tasks_with_a_split_by_the_hash_of_the_prompt(tmp_path) -> None:
    data = source(write(tmp_path, ROWS), test_share=0.3)
    held = {t.goal: t for t in data.held_out(8)}
    seen = {t.goal for t in data.sample(random.Random(0), 500)}
    assert not seen & held.keys() and len(seen) > 20 and {t.split for t in held.values()} == {"test"}
    more = source(write(tmp_path, [*ROWS, *ROWS[:9], {"prompt": "new", "answer": "red"}], "more.jsonl"), test_share=0.3)
    assert {t.goal for t in more.held_out(8)} & seen == set()


def test_a_file_of_its_own_holds_the_evaluation_tasks(tmp_path) -> None:
    test = write(tmp_path, ROWS[:3], "test.jsonl")
    data = source(write(tmp_path, ROWS[3:]), test_path=str(test))
    assert {t.id for t in data.held_out(3)} == {"test/1", "test/2", "test/3"}
    with pytest.warns(LongstrideWarning, match=r"test\.jsonl has 3 held-out rows, and 4 tasks were asked for"):
        assert len(data.held_out(4)) == 3


def test_prompts_that_are_in_both_files_are_said(tmp_path) -> None:
    train, test = write(tmp_path, ROWS), write(tmp_path, [*ROWS[:2], {"prompt": "new", "answer": "red"}], "test.jsonl")
    with pytest.warns(LongstrideWarning, match=r"2 of the 3 rows of .*test\.jsonl are asked in .*rows\.jsonl too"):
        source(train, test_path=str(test)).held_out(3)
    with warnings.catch_warnings(action="error"):
        source(train, test_path=str(train)).held_out(3)  # which says it itself
        source(train, test_share=0.3).held_out(3)


def test_parquet_holds_the_same_tasks(tmp_path) -> None:
    pytest.importorskip("pyarrow", reason="needs pip install 'longstride[parquet]'")
    import pyarrow
    import pyarrow.parquet

    rows = [
        {"messages": [{"role": "user", "content": f"q {k}"}, {"role": "assistant", "content": "red"}]} for k in range(9)
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    tables = source(tmp_path / "rows.parquet", prompt="messages").sample(random.Random(0), 5)
    lines = source(write(tmp_path, rows), prompt="messages").sample(random.Random(0), 5)
    assert tables == lines
    times = pyarrow.array([2**60], pyarrow.timestamp("ms"))  # a year that Python does not know
    pyarrow.parquet.write_table(
        pyarrow.table({"prompt": ["q"], "answer": ["a"], "at": times}), tmp_path / "far.parquet"
    )
    with pytest.raises(TaskError, match=r"far\.parquet: not a Parquet table that can be read"):
        source(tmp_path / "far.parquet").sample(random.Random(0), 1)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no table")
    with pytest.raises(TaskError, match=r"bad\.parquet: not a Parquet table that can be read"):
        source(tmp_path / "bad.parquet").sample(random.Random(0), 1)


@pytest.mark.parametrize(
    "value",
    [datetime.datetime(2026, 1, 1), datetime.date(2026, 1, 1), datetime.timedelta(1), b"\x00", Decimal("1.50"),
     [datetime.date(2026, 1, 1)], {"when": [b"\x00"]}],
)  # fmt: skip
@pytest.mark.parametrize("column", ["k", "answer"])
def test_a_column_that_cannot_be_stored_is_named_when_the_file_is_read(value, column, tmp_path) -> None:
    pytest.importorskip("pyarrow", reason="needs pip install 'longstride[parquet]'")
    import pyarrow
    import pyarrow.parquet

    rows = [{"prompt": f"q {k}", "answer": "red", "k": 1} | {column: value} for k in range(3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    with pytest.raises(TaskError, match=rf"rows\.parquet, line 1, {column}: expected a text, a number.*write it as"):
        source(tmp_path / "rows.parquet", keep=["k"], match="none").sample(random.Random(0), 1)


def test_what_is_kept_is_stored_as_it_is_but_for_what_is_no_number_or_no_text(tmp_path) -> None:
    row = '{"prompt": "q", "answer": "r\\ud800", "k": {"a": [1, NaN, true, null, "\\u001b[2Jx"]}}'
    task = one(tmp_path, row, keep=["k"])  # pyright: ignore[reportArgumentType]
    assert task.meta == {"answer": "r?", "k": {"a": [1, None, True, None, "x"]}}
    episode = Trajectory(task, 0, 0, Budget(turns=1, turn_tokens=1))
    assert Trajectory.from_json(episode.to_json()).task == task
    with pytest.raises(TaskError, match=r"line 1, k: expected a text"):
        one(tmp_path, {"prompt": "q", "answer": "r", "k": json.loads("[" * 80 + "]" * 80)}, keep=["k"])


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.parquet"])
def test_a_file_of_too_many_rows_is_refused_and_of_many_said_before_they_are_read(name, tmp_path, monkeypatch) -> None:
    path, rows = tmp_path / name, [{"prompt": "q", "answer": "red"}] * 30
    if name == "rows.parquet":
        pytest.importorskip("pyarrow", reason="needs pip install 'longstride[parquet]'")
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        write(tmp_path, rows)
    with pytest.raises(TaskError, match=r"has more than 29 rows; take a part of it, or set tasks\.most_rows"):
        source(path, most_rows=29).sample(random.Random(0), 1)
    monkeypatch.setattr(dataset, "MANY", 20)
    with pytest.warns(LongstrideWarning, match="more than 20 rows; reading goes on"):
        source(path, test_share=0, most_rows=30).sample(random.Random(0), 1)
    monkeypatch.setattr(dataset, "MOST_TEXT", 10)
    with pytest.raises(TaskError, match="line 11: the prompts up to here have more than 10 characters"):
        source(path).sample(random.Random(0), 1)


@pytest.mark.parametrize("pattern", ["(" * 3000 + ")" * 3000, "(?<=" * 2000 + "a" + ")" * 2000, "a" * 20_000])
def test_a_pattern_that_no_machine_reads_is_refused(pattern, tmp_path) -> None:
    with pytest.raises(TaskError, match=r"'answer' is no pattern \((it is nested too deeply|it has more than 10,000)"):
        one(tmp_path, {"prompt": "q", "answer": pattern}, match="regex")


def test_a_conversation_is_shown_up_to_the_reply_that_is_its_reference(tmp_path) -> None:
    said = [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"}, {"role": "user", "content": "a colour?"},
        {"role": "assistant", "content": "red"},
    ]  # fmt: skip
    task = one(tmp_path, {"chat": said}, prompt="chat")
    assert task.goal == "Be brief.\nuser: hi\nassistant: hello\nuser: a colour?" and task.meta == {"answer": "red"}
    assert one(tmp_path, {"chat": said[:2], "answer": 3}, prompt="chat").goal == "Be brief.\nhi"


@pytest.mark.parametrize(
    ("match", "reference", "right", "wrong"),
    [
        ("exact", "Red", "red.", "a red one"),
        ("number", "so 40 + 2 #### 42", "that is 42.0", "42 or 43"),
        ("number", 0.5, "it is 1/2", "half"),
        ("number", "1,200", "1200 euros", "1,20"),
        ("regex", "(dark )?red|crimson", " Dark red ", "red wine"),
    ],
)
def test_answers_are_compared_as_the_recipe_says(tmp_path, match: str, reference: Any, right: str, wrong: str) -> None:
    task = one(tmp_path, {"prompt": "p", "answer": reference}, match=match)
    assert judge(task, right, {}).success and not judge(task, wrong, {}).success
    assert not judge(task, None, {}).success


def test_a_pattern_that_never_ends_does_not_match(tmp_path) -> None:
    task = one(tmp_path, {"prompt": "p", "answer": "(a|aa)+"}, match="regex")
    verdict = judge(task, "a" * 60 + "b", {})
    assert not verdict.success and "the pattern took more than" in verdict.evidence["note"]


def test_a_judge_is_asked_about_the_reference(tmp_path) -> None:
    from longstride.web.judging.rubric import decide, questions

    task = one(tmp_path, {"prompt": "the capital of Peru?", "answer": "Lima"}, match="judged")
    (question,) = questions(task, "it is Lima", {})
    assert "Lima" in question.text and "capital of Peru" in question.text
    assert decide(task, "it is Lima", {}, {question.key: "correct"}).success


def test_a_row_keeps_its_split_under_another_mark(tmp_path) -> None:
    path = write(tmp_path, ROWS)
    plain, marked = (source(path, mark=mark, test_share=0.3) for mark in ("", "Answer:"))
    assert [t.id for t in plain.held_out(8)] == [t.id for t in marked.held_out(8)]


def test_a_column_that_would_take_the_place_of_the_reference_is_refused(tmp_path) -> None:
    path = write(tmp_path, [{"prompt": "p", "solution": "red", "answer": "blue"}])
    with pytest.raises(ConfigError, match="keep has the column 'answer'"):
        source(path, answer="solution", keep=["answer"])
    assert (
        source(path, keep=["answer", "solution"], test_share=0).sample(random.Random(0), 1)[0].meta["answer"] == "blue"
    )


def test_what_follows_the_mark_is_the_answer(tmp_path) -> None:
    data = source(write(tmp_path, ROWS), mark="Answer:")
    task = data.sample(random.Random(0), 1)[0]
    assert task.goal.endswith("\nEnd with Answer: and the answer.")
    _, (step,), _ = play(data.env(), task, ["first Answer: blue and then Answer: red "])
    assert (step.answer, step.action, step.terminated) == ("red", "answer red", True)
    _, (step,), _ = play(data.env(), task, ["I wonder"])
    assert step.answer is None and step.action is None and step.terminated and "after Answer:" in (step.error or "")


@pytest.mark.parametrize(
    ("row", "message", "fields"),
    [
        ('{"prompt": "p", ', r"line 2: not a JSON object \(.* at column \d+\)", {}),
        ("\xff\xfe", r"line 2: (not a JSON object|cannot be read)", {}),
        ("[" * 100_000, r"line 2: cannot be read", {}),
        ("[1, 2]", r"line 2: expected a JSON object, got \[1, 2\]", {}),
        ({"answer": "a"}, r"line 2: there is no 'prompt'; the columns are answer", {}),
        ({"prompt": " ", "answer": "a"}, r"line 2, prompt: expected a text or a list of messages, got ' '", {}),
        ({"prompt": "p"}, r"line 2: there is no 'answer'; the columns are prompt", {}),
        ({"prompt": "p", "answer": None}, r"line 2: expected a text or a number as 'answer', got None", {}),
        ({"prompt": "p"}, r"line 1: there is no 'reply'; the columns are", {"match": "none", "answer": "reply"}),
        ({"prompt": "p", "answer": True}, r"line 2: expected a text or a number as 'answer', got True", {}),
        ({"prompt": "p", "answer": "red"}, r"line 2: expected a number in 'answer', got 'red'", {"match": "number"}),
        ({"prompt": "p", "answer": "(1"}, r"line 2: 'answer' is no pattern \(missing \)", {"match": "regex"}),
        ({"prompt": "p", "answer": "1"}, r"line 2: there is no 'level'", {"keep": ["level"]}),
        ({"prompt": [{"role": "bot", "content": "x"}]}, r"line 2, prompt, message 1: expected .*'bot'", {}),
        ({"prompt": [{"role": "assistant", "content": "x"}]}, r"line 2, prompt: expected a conversation with", {}),
    ],
)
def test_a_bad_line_is_named(tmp_path, row: Any, message: str, fields: dict[str, Any]) -> None:
    path = write(tmp_path, [{"prompt": "fine", "answer": "7", "level": 1}, row])
    with pytest.raises(TaskError, match=rf"rows\.jsonl, {message}"):
        source(path, **fields).sample(random.Random(0), 1)


def test_a_file_without_a_row_is_said_to_have_none(tmp_path) -> None:
    for rows in ([], ["", " "]):
        with pytest.raises(TaskError, match=r"rows.jsonl has no rows"):
            source(write(tmp_path, rows)).held_out(1)


def test_a_file_that_is_not_there_is_refused_with_the_recipe(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*nowhere\.jsonl"):
        source(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 or 4", "4"),
        ("-1,000.5", "-1000.5"),
        ("x = 3/4", "3/4"),
        ("none", None),
        ("9" * 60, "9" * 60),
        ("9" * 5000, None),
        ("x = \u22125", "-5"),
        ("from 5-10", "10"),
        ("f(2)-3", "3"),
        ("on 2020-05-17", "17"),
        ("(-3)", "-3"),
        ("_-3_", "-3"),
        ("1e-07", "1e-7"),
        ("1.5E3 m", "1500"),
        ("5e", "5"),
        ("6.02 × 10^23", "6.02e23"),
        (r"2 \times 10^{-3}", "2e-3"),
        (r"\boxed{-\frac{31}{4}}", "-31/4"),
        (r"\dfrac34", "3/4"),
        ("1{,}200", "1200"),
        (r"10,\!000", "10000"),
        ("3 .5", "0.5"),
        ("1,2345", "2345"),
    ],
)
def test_the_last_number_of_a_text(text: str, value: str | None) -> None:
    assert last_number(text) == (None if value is None else Fraction(value))


def test_a_reference_that_json_writes_with_an_exponent_is_the_number_that_it_is(tmp_path) -> None:
    task = one(tmp_path, {"prompt": "p", "answer": 1e-7}, match="number")
    assert judge(task, "0.0000001", {}).success and not judge(task, "-7", {}).success


def test_one_iteration_trains_after_cloning_the_references(tmp_path) -> None:
    model = few_words(tmp_path / "model", "red blue say word")
    data = source(write(tmp_path, ROWS), test_share=0.3)
    assert isinstance(data, Solver)
    row = run(small(data, model, cloning=Cloning(episodes=64)), tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0 and 0 < row["summary"]["success"] < 1


def test_the_example_runs_with_its_own_reward(tmp_path) -> None:
    from examples.dataset_shopping import RECIPE

    model = few_words(tmp_path / "model", "Answer: 1 2 12")
    short = {"turns": 1, "turn_tokens": 4}
    row = run(
        RECIPE.replace(
            model=model, iterations=1, episodes_per_iteration=16, budget=short, test_budget=short, learner={"lr": 1e-3}
        ),
        tmp_path,
    )
    assert row["summary"]["failed"] == 0 and row["summary"]["terms"].keys() == {"right", "cost"}
    assert row["trained_tokens"] > 0
