"""Terminals: commands that run in folders of their own, and chains of notes whose distance is one number."""

import random
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small

from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure
from longstride.core.task import Task
from longstride.envs.acting import ToolCalls
from longstride.envs.base import Step, TaskSource
from longstride.envs.sites.lexicon import names
from longstride.envs.terminal import References, Terminal
from longstride.rewards import judge
from longstride.starts.terminal_walks import TerminalWalks


def terminal(**fields: Any) -> Terminal:
    """One that runs anywhere."""
    found = build(TaskSource, {"type": "terminal", "isolation": "none", **fields})
    assert isinstance(found, Terminal)
    return found


def said(source: Terminal, *says: str, task: Task | None = None) -> tuple[Sequence[Step], Task, Any]:
    task = task or source.sample(random.Random(0), 1)[0]
    _, steps, state = play(source.env(), task, says)
    return steps, task, state


def success(steps: Sequence[Step], task: Task, state: Any) -> bool:
    return judge(task, steps[-1].answer, state).success


@pytest.mark.parametrize("end", ["answer", "file"])
@pytest.mark.parametrize("distance", [2, 3, 7])
def test_a_solution_takes_as_many_actions_as_the_goal_is_far(end: str, distance: int) -> None:
    source = terminal(end=end, distances=[distance, distance])
    task = source.sample(random.Random(distance), 1)[0]
    steps, *rest = said(source, *source.demonstrate(task), task=task)
    assert len(steps) == task.optimal == distance
    assert steps[-1].terminated and not any(step.error for step in steps) and success(steps, *rest)


def test_the_farthest_goal_is_64_actions_away_and_the_nearest_is_an_answer() -> None:
    far, near = terminal(kinds=["note"], distances=[64, 64]), terminal(distances=[1, 1])
    for source, distance in ((far, 64), (near, 1)):
        task = source.held_out(1)[0]
        steps, *rest = said(source, *source.demonstrate(task), task=task)
        assert len(steps) == distance and success(steps, *rest)
    with pytest.raises(ConfigError, match="less than or equal to 64"):
        terminal(distances=[2, 65])
    with pytest.raises(ConfigError, match="with end=file a goal is 2 actions away"):
        terminal(distances=[1, 3], end="file")
    with pytest.raises(ConfigError, match="unknown kind of note 'rows'; did you mean 'row'"):
        terminal(kinds=["rows"])


def test_a_code_of_another_note_is_wrong_and_there_are_many() -> None:
    source = terminal(distances=[6, 6], others=40)
    task = source.sample(random.Random(1), 1)[0]
    code = References.of(task).code
    steps, *_ = said(source, "Action: sh grep -rho 'code [0-9]*' notes events.log", task=task)
    assert len(steps[0].observation.text.splitlines()) > 4
    assert not success(*said(source, f"Action: answer {int(code) % 90 + 10}", task=task))


def test_a_written_code_is_read_from_its_file_and_from_no_link(monkeypatch) -> None:
    source = terminal(end="file")
    task = source.sample(random.Random(2), 1)[0]
    code = References.of(task).code
    assert success(*said(source, f"Action: sh echo {code} > answer", "Action: done", task=task))
    assert not success(*said(source, "Action: done", task=task))
    link = f"Action: sh echo {code} > other && ln -s other answer"
    assert not success(*said(source, link, "Action: done", task=task))
    assert not success(*said(source, "Action: sh mkdir answer", "Action: done", task=task))
    monkeypatch.setattr("longstride.envs.terminal.tasks.left_behind", denied)  # chmod 0, not as root
    assert not success(*said(source, f"Action: sh echo {code} > answer", "Action: done", task=task))


def denied(path: Path, most: int) -> bytes:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("end", ["answer", "file"])
def test_what_demonstrations_show_is_what_commands_print(end: str) -> None:
    source = terminal(end=end)
    for shown in islice(TerminalWalks(tasks=source).demonstrations(7), 3):
        first, steps, _ = play(source.env(), shown.task, shown.texts)
        assert [first.text, *[step.observation.text for step in steps[:-1]]] == shown.observations
        assert steps[-1].terminated and not any(step.error for step in steps)


def test_held_out_tasks_have_names_that_training_never_has() -> None:
    source = terminal(distances=[3, 9], test_distances=[4, 30])
    held, trained = source.held_out(6), source.sample(random.Random(0), 20)
    assert [task.optimal for task in held] == [4, 30] * 3
    assert {task.optimal for task in trained} <= set(range(3, 10))
    for tasks, known in ((held, names(True)), (trained, names(False))):
        assert all(name in known for task in tasks for _, name in References.of(task).notes)
    assert not {task.template_id for task in held} & {task.template_id for task in trained}
    assert {task.difficulty for task in trained} == {"easy", "medium", "hard"} and held[1].difficulty == "hard"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no action was given"),
        ("Action: sh", "sh takes words"),
        ("Action: answer", "answer takes words"),
        ("Action: done", "unknown action 'done'"),
        ("Action: see note", "unknown action 'see'; Known: answer, sh"),
        ("Action: sh note no such thing", "it ended with status 1"),
        ("Action: sh kill -9 $$", "it was ended by SIGKILL"),
        ("Action: sh sleep 500", "it was stopped: its time was over"),
        ("Action: sh yes", "it was ended by SIGXFSZ"),
        ("Action: sh exit 0 \x00", ""),
    ],
)
def test_what_goes_wrong_costs_a_turn_and_is_said(text: str, problem: str) -> None:
    source = terminal(limits={"seconds": 1 if "sleep" in text else 60, "file_size": 1})
    steps, *_ = said(source, text, "Action: look")
    assert (steps[0].error or "").startswith(problem) and not steps[0].terminated
    assert steps[0].observation.text.endswith(f"error: {steps[0].error}") or not problem
    assert steps[1].error == "unknown action 'look'; Known: answer, sh"


def test_files_that_grow_too_large_end_the_episode_without_a_reward() -> None:
    source = terminal(limits={"file_size": 1, "folder_size": 1})
    fill = "Action: sh for i in 1 2 3 4; do head -c 900000 /dev/zero > f$i; done"
    steps, *rest = said(source, fill)
    assert steps[0].terminated and steps[0].error == "the files have more than 1 MiB" and not success(steps, *rest)


def test_a_command_has_several_lines_and_files_outlast_it() -> None:
    source = terminal()
    steps, *_ = said(source, "Action: sh cat > a.sh <<'E'\necho hi\nE\ncd bin", "Action: sh\nsh a.sh; ls a.sh")
    assert [step.observation.text for step in steps] == ["nothing was printed", "hi\na.sh"]


def test_it_is_acted_in_by_calls_of_tools() -> None:
    source = terminal(distances=[2, 2])
    task = source.sample(random.Random(0), 1)[0]
    chain = References.of(task)
    calls = [f'{{"name": "sh", "arguments": {{"command": "{" ".join(chain.way[0])}"}}}}']
    calls += [f'{{"name": "answer", "arguments": {{"text": "{chain.code}"}}}}', '{"name": "sh", "arguments": {}}']
    first, steps, _ = play(ToolCalls(source.env()), task, [f"<tool_call>{call}</tool_call>" for call in calls])
    assert [tool.name for tool in first.tools] == ["sh", "answer"] and "events.log" in str(first.manual)
    assert f"code {chain.code}" in steps[0].observation.text and steps[1].answer == chain.code
    assert "'command' is a required property" in (steps[2].error or "")


def test_a_task_of_another_source_is_refused() -> None:
    task = terminal().sample(random.Random(0), 1)[0]
    with pytest.raises(EnvFailure, match=r"meta.distance: .*less than or equal to 64"):
        said(terminal(), task=task.model_copy(update={"meta": task.meta | {"distance": 99}}))


def test_one_iteration_trains(tmp_path) -> None:
    source = terminal(distances=[1, 1], kinds=["note"], others=0)
    model = few_words(tmp_path / "model", " ".join(["sh ls answer find the code", *map(str, range(10, 100))]))
    row = run(small(source, model), tmp_path)
    assert row["summary"]["failed"] == 0
