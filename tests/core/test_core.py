"""Tasks, trajectories, budgets, stop reasons, seeds."""

import json
import math
import random
from collections.abc import Generator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longstride.core.budget import Budget, StopReason
from longstride.core.content import Media, by_placeholder, described, joined, placed, text_in, with_lines
from longstride.core.errors import RunError, TaskError
from longstride.core.generators import driven
from longstride.core.seeds import derive, stream
from longstride.core.task import Task, difficulty_of, read_tasks, save_tasks
from longstride.core.trajectory import Trajectory, Turn

words = st.text('ab "\\\n\u2028\u00e9\U0001f600', max_size=4)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | words
values: st.SearchStrategy[Any] = scalars | st.lists(scalars, max_size=2) | st.dictionaries(words, scalars, max_size=2)
tasks = st.builds(
    Task,
    id=words,
    source=words,
    split=st.sampled_from(["train", "test"]),
    goal=words,
    start=words,
    difficulty=st.sampled_from(["easy", "medium", "hard"]),
    facts=st.integers(1, 20),
    template_id=words,
    evaluator=st.dictionaries(words, values, max_size=2),
    horizon=st.none() | st.integers(1, 99),
    optimal=st.none() | st.integers(1, 99),
    meta=st.dictionaries(words, values, max_size=2),
)
ids = st.lists(st.integers(0, 9), max_size=6)


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    sampled = draw(ids)
    n = len(sampled)
    return Turn(
        prompt_ids=draw(ids),
        sampled_ids=sampled,
        behaviour_logprobs=[-x / 64 for x in draw(st.lists(st.integers(0, 640), min_size=n, max_size=n))],
        versions=draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)),
        observation=draw(words),
        text=draw(words),
        action=draw(st.none() | words),
        error=draw(st.none() | words),
        url=draw(words),
        changed=draw(st.booleans()),
        reward=draw(st.integers(0, 4)) / 4,
        seconds=draw(st.integers(0, 64)) / 64,
        finish=draw(st.sampled_from(["stop", "length", "mark"])),
        given=draw(st.integers(0, 3)),
        speaker=draw(words),
    )


trajectories = st.builds(
    Trajectory,
    task=tasks,
    ordinal=st.integers(0, 10**6),
    seed=st.integers(0, 2**63 - 1),
    budget=st.builds(Budget, turns=st.integers(1, 50), tokens=st.none() | st.integers(1, 99)),
    turns=st.lists(turns(), max_size=4),
    stop=st.sampled_from(StopReason),
    answer=st.none() | words,
    reward=st.integers(0, 4).map(lambda n: n / 4),
    success=st.booleans(),
    terms=st.dictionaries(words, st.integers(-4, 4).map(lambda n: n / 4), max_size=2),
    role=words,
    history=st.integers(0, 2),
    evidence=st.dictionaries(words, values, max_size=2),
    group=st.integers(0, 9),
    iteration=st.integers(0, 9),
    seconds=st.integers(0, 64).map(lambda n: n / 64),
)


# tasks


@given(st.lists(tasks, max_size=4, unique_by=lambda t: t.id))
def test_tasks_are_read_back_as_they_were_saved(tmp_path_factory: pytest.TempPathFactory, some: list[Task]) -> None:
    path = tmp_path_factory.getbasetemp() / "tasks.jsonl"
    assert save_tasks(some, path) == len(some)
    assert list(read_tasks(path)) == some


GOOD = '{"id": "a", "source": "web/shop", "goal": "g", "start": "/"}'


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("{", ["not a JSON object"]),
        ("[]", ["the line"]),
        ('{"id": "b"}', ["source", "required"]),
        (GOOD.replace('"a"', "3"), ["id", "got '3'"]),
        (GOOD[:-1] + ', "facts": 0}', ["facts", "greater than or equal to 1"]),
        (GOOD[:-1] + ', "goall": "x"}', ["goall", "not permitted"]),
        (GOOD[:-1] + ', "difficulty": "extreme"}', ["difficulty", "'easy', 'medium' or 'hard'"]),
        (GOOD, ["the id 'a' was used in line 1"]),
        ("[" * 100_000, ["nested too deeply"]),
        ("9" * 5000, ["4300 digits"]),
    ],
)
def test_a_malformed_task_line_is_named_with_its_number(tmp_path: Path, line: str, parts: list[str]) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text(f"{GOOD}\n\n{line}\n")
    with pytest.raises(TaskError) as caught:
        list(read_tasks(path))
    for part in [f"{path}, line 3: ", *parts]:
        assert part in str(caught.value)


lines = st.one_of(
    st.binary(max_size=20),
    values.map(lambda v: json.dumps(v).encode()),
    tasks.map(lambda t: t.model_dump_json().encode()),
    st.dictionaries(st.sampled_from([*Task.model_fields, "other"]), values).map(lambda d: json.dumps(d).encode()),
)


@given(st.lists(lines, max_size=4).map(b"\n".join))
def test_any_task_file_loads_or_raises_an_error_that_names_the_line(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_bytes(content)
    try:
        assert all(isinstance(t, Task) for t in read_tasks(path))
    except TaskError as e:
        assert f"{path}, line " in str(e) or "not UTF-8" in str(e)


def test_a_missing_task_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot read the task file"):
        list(read_tasks(tmp_path / "none.jsonl"))


@pytest.mark.parametrize(
    ("facts", "expected"), [(1, "easy"), (3, "easy"), (4, "medium"), (6, "medium"), (7, "hard"), (30, "hard")]
)
def test_difficulty_follows_the_number_of_facts(facts: int, expected: str) -> None:
    assert difficulty_of(facts) == expected


# trajectories


@given(trajectories)
def test_a_trajectory_is_read_back_from_its_line(trajectory: Trajectory) -> None:
    line = trajectory.to_json()
    assert "\n" not in line
    assert Trajectory.from_json(line) == trajectory


def test_a_growing_prompt_is_kept_once() -> None:
    def turn(prompt: list[int]) -> Turn:
        return Turn(prompt, [1], [-0.5], [0], "", "")

    prompts = [list(range(1000))]
    for _ in range(9):
        prompts.append([*prompts[-1], 1, 7])
    task = Task(id="a", source="s", goal="g", start="/")
    line = Trajectory(task, 0, 0, Budget(), [turn(p) for p in prompts]).to_json()
    assert len(line) < 2 * len(json.dumps(prompts[0])) + 3000


@given(st.text(max_size=30) | values.map(json.dumps))
def test_any_other_line_is_refused_as_no_trajectory(line: str) -> None:
    with pytest.raises(RunError, match="not a trajectory line"):
        Trajectory.from_json(line)


def test_a_line_nested_without_end_is_refused_as_no_trajectory() -> None:
    with pytest.raises(RunError, match="not a trajectory line"):
        Trajectory.from_json("[" * 100_000)


@given(trajectories, st.data())
def test_a_trajectory_line_with_a_part_missing_is_refused(trajectory: Trajectory, data: st.DataObject) -> None:
    parts = json.loads(trajectory.to_json())
    del parts[data.draw(st.sampled_from(["task", "ordinal", "seed", "budget", "stop", "turns"]))]
    with pytest.raises(RunError, match="not a trajectory line"):
        Trajectory.from_json(json.dumps(parts))


# content

RED, BLUE = Media(b"abc"), Media(b"", "application/json")


def test_media_are_named_by_their_bytes_and_stand_in_prompts_as_ids_below_zero() -> None:
    # SHA-256 of "abc" (FIPS 180-2, appendix B.1), and of no bytes
    assert RED.name == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert RED.placeholder == -1 - 0xBA7816BF8F01CFE and BLUE.placeholder == -1 - 0xE3B0C44298FC1C1
    assert RED == Media(b"abc", "image/jpeg") != BLUE and -(2**63) <= RED.placeholder < 0


def test_text_is_one_str_however_it_was_cut_and_media_keep_their_places() -> None:
    assert joined(["a", "", "b"]) == "ab" and joined([]) == "" and joined(["a", "b", RED, "c"]) == ("ab", RED, "c")
    assert with_lines(("a", RED), "", "b") == ("a", RED, "\nb") and with_lines("", "b", "c") == "b\nc"
    assert text_in(("a", RED, "c")) == "ac" and described(("a", RED)) == "a[image/png, 3 bytes, ba7816bf]"
    with pytest.raises(TypeError, match=r"content is of texts and Media, got 3 \(int\)"):
        joined(["a", cast(Any, 3)])


@pytest.mark.parametrize("kind", ["png", "image/", "../png", "image/PNG", "a/b c"])
def test_what_is_no_media_type_is_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="expected a media type"):
        Media(b"", kind)


def test_placeholders_stand_for_what_is_known_and_for_nothing_else() -> None:
    known = by_placeholder([RED, BLUE, Media(b"abc")])
    assert placed([4, BLUE.placeholder, RED.placeholder, 5, BLUE.placeholder], known) == (BLUE, RED)
    with pytest.raises(ValueError, match="stands for nothing that was seen"):
        placed([RED.placeholder], by_placeholder([BLUE]))


def test_a_trajectory_names_its_media_and_is_read_back_where_they_are_found() -> None:
    prompt = [1, RED.placeholder, BLUE.placeholder]
    turn = Turn(prompt, [2], [-0.5], [0], ("see ", RED), "go", media=(RED, BLUE))
    task = Task(id="a", source="s", goal="g", start="/")
    t = Trajectory(task, 5, 0, Budget(), [turn], after=(3, 4), final=(BLUE,))
    line, kept = t.to_json(), {m.name: m for m in t.media}
    assert Trajectory.from_json(line, lambda name, kind: kept[name]) == t and (t.trial, t.place) == (3, 2)
    assert json.loads(line)["media"] == [[RED.name, "image/png"], [BLUE.name, "application/json"]]
    assert json.loads(line)["turns"][0]["obs"] == ["see ", 0]
    with pytest.raises(RunError, match="has images or data .the first is ba7816bf.: read it from its run's folder"):
        Trajectory.from_json(line)
    with pytest.raises(RunError, match="not a trajectory line"):
        Trajectory.from_json(line.replace(f"{RED.placeholder}", "-7"), lambda name, kind: kept[name])


def test_the_line_of_an_episode_of_text_alone_has_no_word_of_media_or_trials() -> None:
    line = Trajectory(Task(id="a", source="s", goal="g", start="/"), 0, 0, Budget()).to_json()
    assert not {"media", "after", "final"} & set(json.loads(line))


# budgets and stop reasons


@pytest.mark.parametrize("reason", StopReason)
def test_a_stop_reason_is_one_of_terminated_truncated_failed(reason: StopReason) -> None:
    assert [reason.terminated, reason.truncated, reason.failed].count(True) == 1


def test_every_limit_of_a_budget_truncates_and_an_episode_that_none_came_of_does_not() -> None:
    limits = {"turns", "tokens", "tool_calls", "seconds", "context", "env_truncated", "mark"}
    assert {r.value for r in StopReason if r.truncated} == limits
    assert [r for r in StopReason if r.failed] == [StopReason.INFRA_FAILURE, StopReason.UNPLAYED]


@given(st.integers(0, 12), st.integers(0, 60), st.integers(0, 12), st.floats(0, 9))
def test_what_ran_out_is_the_stop_reason(turns: int, tokens: int, calls: int, seconds: float) -> None:
    budget = Budget(turns=10, tokens=50, tool_calls=8, seconds=5.0)
    out = {
        StopReason.TURNS: turns >= 10,
        StopReason.TOKENS: tokens >= 50,
        StopReason.TOOL_CALLS: calls >= 8,
        StopReason.SECONDS: seconds >= 5.0,
    }
    assert budget.exhausted(turns, tokens, calls, seconds) == next((r for r, over in out.items() if over), None)


def test_a_limit_that_is_not_set_never_runs_out() -> None:
    assert Budget(turns=10).exhausted(9, 10**9, 10**9, math.inf) is None


# seeds


def test_a_derived_seed_never_changes() -> None:
    assert derive(0, "episode", 7) == 5697270444328649779
    assert stream(1, "tasks").random() == random.Random(derive(1, "tasks")).random()


@given(st.lists(st.tuples(st.integers(0, 99), words, st.integers(0, 99)), min_size=2, max_size=5, unique=True))
def test_streams_of_different_names_have_different_seeds(paths: list[tuple[int, str, int]]) -> None:
    named = [p for p in paths if ":" not in p[1]]
    assert len({derive(*p) for p in named}) == len(named)
    assert all(0 <= derive(*p) < 2**63 for p in named)


def test_a_generator_is_driven_to_what_it_returns_and_what_its_answer_raises_is_not_its_end() -> None:
    def asks(n: int) -> Generator[int, int, list[int]]:
        found = []
        for k in range(n):
            found.append((yield k))
        return found

    assert driven(asks(3), lambda k: 10 * k) == [0, 10, 20] and driven(asks(0), lambda k: k) == []
    with pytest.raises(StopIteration):
        driven(asks(1), lambda _: next(iter(())))
