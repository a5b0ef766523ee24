"""Programs to write, to test and to mend, in a folder of their own."""

import json
import random
from itertools import islice
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small

from longstride.core.component import build
from longstride.core.errors import EnvFailure
from longstride.core.task import Task
from longstride.envs.base import TaskSource
from longstride.envs.terminal import Coding, Functions
from longstride.rewards import judge
from longstride.starts.coding_walks import CodingWalks


def coding(**fields: Any) -> Coding:
    """One that runs anywhere."""
    found = build(TaskSource, {"type": "coding", "isolation": "none", **fields})
    assert isinstance(found, Coding)
    return found


def success(source: Coding, task: Task, *says: str) -> tuple[list[str], bool]:
    """What was seen, and whether the program is right in the end."""
    _, steps, state = play(source.env(), task, says)
    return [step.observation.text for step in steps], judge(task, None, state).success


@pytest.mark.parametrize("distance", [2, 5, 33])
def test_a_solution_takes_as_many_commands_as_the_goal_is_far(distance: int) -> None:
    source = coding(distances=[distance, distance])
    for task in (source.sample(random.Random(1), 1)[0], source.held_out(1)[0]):
        says = source.demonstrate(task)
        assert len(says) == task.optimal == distance and success(source, task, *says)[1]
        assert not success(source, task, *says[1:])[1]


def test_the_first_function_that_is_wrong_is_named_and_mended() -> None:
    source = coding(distances=[4, 4])
    task = source.sample(random.Random(2), 1)[0]
    program = Functions.of(task)
    _, (name, operation, number), _ = program.wanted
    *writes, done = source.demonstrate(task)
    wrong = f"Action: sh write {name} {operation} {number + 1}"
    seen, _ = success(source, task, *writes, wrong, "Action: sh check it")
    assert seen[-1].startswith(f"{name} of ") and seen[-1].endswith("error: it ended with status 1")
    seen, right = success(source, task, *writes, wrong, "Action: sh check", writes[1], "Action: sh check", done)
    assert seen[-2] == "all pass" and right and not success(source, task, *writes, wrong, done)[1]


def test_a_program_that_only_knows_the_cases_of_its_folder_is_wrong() -> None:
    source = coding(distances=[2, 2])
    task = source.sample(random.Random(3), 1)[0]
    program = Functions.of(task)
    known = {x: wanted for _, x, wanted in program.cases("shown")}
    assert known.keys().isdisjoint(x for _, x, _ in program.cases("judging"))
    lookup = f"Action: sh echo 'f1 = {known}.get' > program.py"
    seen, right = success(source, task, lookup, "Action: sh check", "Action: done")
    assert seen[1] == "all pass" and not right


@pytest.mark.parametrize(
    "prints",
    ["all pass", "[]", "[1, 2, 3]", '{"f1": 9}', '"all pass"', "[NaN, NaN]", "", "[" * 9_999, "9" * 9_999],
)
def test_what_a_program_prints_in_the_judges_place_is_no_verdict(prints: str) -> None:
    source = coding(distances=[2, 2])
    task = source.sample(random.Random(3), 1)[0]
    forge = f"import os\nos.write(1, {prints.encode()!r})\nos._exit(0)"
    seen, right = success(source, task, f"Action: sh cat > program.py <<'E'\n{forge}\nE", "Action: done")
    assert seen[0] == "nothing was printed" and not right


def test_a_program_that_is_judged_is_not_told_what_its_functions_have_to_give() -> None:
    source = coding(distances=[2, 2])
    task = source.sample(random.Random(3), 1)[0]
    judging = Functions.of(task).cases("judging")
    spy = "import json, os, sys\nos.write(1, json.dumps([sys.orig_argv[4:]] * 2).encode())\nos._exit(0)"
    _, steps, state = play(source.env(), task, [f"Action: sh cat > program.py <<'E'\n{spy}\nE", "Action: done"])
    told = json.dumps([(name, x) for name, x, _ in judging])
    assert state["tests"] == f"f1 of {judging[0][1]} is {[told]} and not {judging[0][2]}"


@pytest.mark.parametrize("program", ["def f1(", "raise ValueError", "import os; os._exit(3)", "while True: pass", ""])
def test_a_program_that_does_not_run_is_wrong_and_costs_nothing_else(program: str) -> None:
    source = coding(distances=[2, 2], limits={"seconds": 1 if "while" in program else 60})
    task = source.sample(random.Random(4), 1)[0]
    seen, right = success(source, task, f"Action: sh echo '{program}' > program.py", "Action: sh check", "Action: done")
    assert "error: it" in seen[1] and not right


def test_what_demonstrations_show_is_what_commands_print() -> None:
    source = coding(distances=[3, 4])
    for shown in islice(CodingWalks(tasks=source, patience=0.9, slips=0.4).demonstrations(7), 4):
        first, steps, _ = play(source.env(), shown.task, shown.texts)
        assert [first.text, *[step.observation.text for step in steps[:-1]]] == shown.observations
        assert steps[-1].terminated


def test_held_out_programs_are_none_of_trainings() -> None:
    source = coding(distances=[2, 3], test_distances=[3, 6])
    held, trained = source.held_out(20), source.sample(random.Random(0), 200)
    assert [task.optimal for task in held[:4]] == [3, 6, 3, 6]
    assert not {task.goal for task in held} & {task.goal for task in trained}


def test_a_task_of_another_source_is_refused() -> None:
    task = coding().sample(random.Random(0), 1)[0]
    with pytest.raises(EnvFailure, match=r"meta.functions: .*less than or equal to 32"):
        success(coding(), task.model_copy(update={"meta": task.meta | {"functions": 99}}))


def test_one_iteration_trains(tmp_path) -> None:
    model = few_words(
        tmp_path / "model",
        "sh write check f1 add take times done program.py has 1 functions : not found 2 3 4 5 6 7 8 9",
    )
    row = run(small(coding(distances=[2, 2]), model), tmp_path)
    assert row["summary"]["failed"] == 0
