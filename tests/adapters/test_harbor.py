"""Harbor's task folders: what is read of them, what is refused, and what their tests give."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from adapter_runs import few_words, play, run, small
from guides import DOCS

from longstride.adapters.harbor import Harbor
from longstride.adapters.seeded import EnvironmentReward
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure, TaskError
from longstride.core.processes import why_not_confined
from longstride.core.task import Task
from longstride.envs.base import Step, TaskSource

EXAMPLES = DOCS.parent / "examples" / "harbor"
needs_bwrap = pytest.mark.skipif(bool(why_not_confined()), reason=why_not_confined() or "bubblewrap is there")
PASS = "Action: done"


def harbor(path: Path, **fields: Any) -> Harbor:
    found = build(TaskSource, {"type": "harbor", "path": str(path), "test_share": 0, **fields})
    assert isinstance(found, Harbor)
    return found


def folder(home: Path, test: str = "exit 0", docker: str = "FROM python:3.12\n", settings: str = "") -> Path:
    """A task."""
    task = home / "one"
    for name, text in {
        "task.toml": f"[metadata]\n{settings}",
        "instruction.md": "Write x.",
        "environment/Dockerfile": docker,
        "environment/data/a.txt": "a\n",
        "tests/test.sh": test,
    }.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    return task


def only(source: Harbor) -> Task:
    return source.sample(random.Random(0), 1)[0]


def played(path: Path, *says: str, **fields: Any) -> tuple[Sequence[Step], dict[str, Any]]:
    source = harbor(path, **fields)
    _, steps, state = play(source.env(), only(source), says)
    return steps, state


def test_the_examples_are_read_with_their_instructions_and_difficulties() -> None:
    tasks = {task.template_id: task for task in harbor(EXAMPLES)._read(EXAMPLES)}
    assert {name: task.difficulty for name, task in tasks.items()} == {
        "harbor/word_count": "easy",
        "harbor/late_orders": "medium",
        "harbor/stock": "hard",
    }
    assert tasks["harbor/stock"].goal.startswith("Mend the data base store.db")


@needs_bwrap
@pytest.mark.parametrize("name", ["word_count", "late_orders", "stock"])
def test_an_example_is_solved_by_its_solution_and_not_by_doing_nothing(name: str) -> None:
    source = harbor(EXAMPLES / name)
    steps, state = played(EXAMPLES / name, *source.demonstrate(only(source)))
    assert steps[-1].terminated and (state["reward"], state["success"]) == (1.0, True), state["tests"]
    _, state = played(EXAMPLES / name, PASS)
    assert (state["reward"], state["success"]) == (0.0, False)


@needs_bwrap
def test_a_program_is_written_tested_and_mended() -> None:
    wrong = "def count_words(text): return {w: text.split().count(w) for w in text.split()}"
    right = "import re, collections\ncount_words = lambda t: dict(collections.Counter(re.findall(r'\\w+', t.lower())))"
    write, check = "Action: sh cat > words.py <<'E'\n{}\nE", "Action: sh python3 -m unittest"
    says = [check, write.format(wrong), check, write.format(right), check, PASS]
    steps, state = played(EXAMPLES / "word_count", *says)
    assert [step.error for step in steps] == ["it ended with status 1", *[None] * 5] and state["success"]
    assert "AssertionError" in steps[0].observation.text


@needs_bwrap
@pytest.mark.parametrize(
    ("test", "reward", "terms"),
    [
        ("exit 0", 1.0, {}),
        ("exit 1", 0.0, {}),
        ("echo 0.25 > /logs/verifier/reward.txt; exit 1", 0.25, {}),
        ("echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 0.5}' > /logs/verifier/reward.json", 0.5, {}),
        ('echo \'{"style": 1, "speed": 0}\' > /logs/verifier/reward.json', 0.5, {"style": 1.0, "speed": 0.0}),
        ('[ "$LEVEL" = 3 ] && [ $PWD = /srv/app ] && cat /data/a.txt data/a.txt', 1.0, {}),
        ("sleep 500", 0.0, {}),
    ],
)
def test_the_reward_is_what_the_tests_write_or_their_status(tmp_path, test: str, reward: float, terms: Any) -> None:
    docker = "FROM python:3.12-slim AS base\n# a comment\nWORKDIR /srv\nWORKDIR app\nENV LEVEL=3\n"
    docker += "COPY data \\\n  /data/\nCOPY . .\n"
    settings = f"[verifier]\ntimeout_sec = {1 if 'sleep' in test else 60}"
    _, state = played(folder(tmp_path, test, docker, settings), PASS)
    assert (state["reward"], state["terms"]) == (reward, terms), state["tests"]


@needs_bwrap
@pytest.mark.parametrize(
    ("wrote", "problem"),
    [
        ("echo good > /logs/verifier/reward.txt", "wrote 'good.*' to reward.txt; expected a number"),
        ("echo nan > /logs/verifier/reward.txt", "expected a finite number"),
        ('echo \'{"reward": "1"}\' > /logs/verifier/reward.json', "expected a finite number"),
        ("echo { > /logs/verifier/reward.json", "wrote a reward.json that is not JSON"),
    ],
)
def test_a_reward_that_is_no_number_fails_the_episode(tmp_path, wrote: str, problem: str) -> None:
    with pytest.raises(EnvFailure, match=problem):
        played(folder(tmp_path, wrote), PASS)


@needs_bwrap
def test_what_the_agent_puts_where_the_tests_stand_does_not_count(tmp_path) -> None:
    forge = "echo 1 > /logs/verifier/reward.txt; ln -s /app /tests/x; echo exit 0 > /tests/test.sh; ls /tests /solution"
    steps, state = played(folder(tmp_path, "ls /tests; exit 1"), f"Action: sh {forge}", PASS)
    assert "solution" in steps[0].observation.text and "No such file" in steps[0].observation.text
    assert state["reward"] == 0.0 and state["tests"].split("\n")[0] == "test.sh"


@needs_bwrap
@pytest.mark.parametrize("makes", ["touch", "ln -s /app", "mkdir -p -m 0"])
def test_whatever_the_agent_makes_of_the_tests_folders_they_run(tmp_path, makes: str) -> None:
    spoil = f"rm -rf /logs/verifier; {makes} /logs/verifier; mkdir -p -m 0 /tests/x/y; chmod 0 /logs"
    _, state = played(folder(tmp_path, "echo 0.5 > /logs/verifier/reward.txt"), f"Action: sh {spoil}", PASS)
    assert state["reward"] == 0.5, state["tests"]


@needs_bwrap
def test_variables_of_a_dockerfile_are_made_of_others_and_of_the_path_of_this_machine(tmp_path) -> None:
    docker = "FROM a\nENV TOOLS=/app/bin\nENV PATH=${TOOLS}:$PATH NAME=$TOOLS/x\n"
    (step, _), _ = played(folder(tmp_path, docker=docker), "Action: sh echo $NAME $PATH", PASS)
    assert step.observation.text.startswith("/app/bin/x /app/bin:/") and step.observation.text.endswith("/usr/bin:/bin")


@pytest.mark.parametrize(
    ("docker", "settings", "problem"),
    [
        ("FROM python\nRUN pip install x\n", "", r"Dockerfile: line 2, RUN pip install x, and images are not built"),
        ("FROM me/image\n", "", "the image may have files of its own"),
        ("FROM a\nCOPY --from=b /x /y\n", "", "line 2, COPY --from=b"),
        ("FROM a\nCOPY ../secret /app\n", "", "line 2, COPY ../secret"),
        ("FROM a\nCOPY data /usr/share\n", "", "'/usr/share' is no folder that a task may have here"),
        ("FROM a\nWORKDIR /\n", "", "'/' is no folder that a task may have here"),
        ("FROM a\nENV\n", "", "line 2, ENV"),
        ("FROM a\nCOPY [1, 2]\n", "", r"line 2, COPY \[1, 2\]"),
        ("FROM a\n", "[verifier]\ntimeout_sec = -1", "verifier.timeout_sec: expected a number of seconds above 0"),
        ("FROM a\n", "[verifier]\ntimeout_sec = 'an hour'", "verifier.timeout_sec: expected a number of seconds"),
        ("FROM a\n", "[[steps]]\nname = 'a'", "has several steps"),
        ("FROM a\n", "[environment]\ngpus = 1", "asks for accelerators"),
        ("FROM a\n", "[environment]\ndocker_image = 'x/y'", "the task is in the image 'x/y'"),
        ("FROM a\n", "steps = [", "task.toml: cannot be read"),
    ],
)
def test_what_cannot_be_had_without_a_container_is_refused_in_one_line(
    tmp_path, docker: str, settings: str, problem: str
) -> None:
    source = harbor(folder(tmp_path, docker=docker, settings=settings))
    with pytest.raises(TaskError, match=problem) as raised:
        only(source)
    assert "\n" not in str(raised.value)


def test_a_dockerfile_may_be_ignored_where_the_machine_has_what_it_installs(tmp_path) -> None:
    path = folder(tmp_path, docker="FROM me/image\nRUN pip install \\\n  x\nWORKDIR /app\n")
    assert only(harbor(path, ignore_dockerfile=True)).goal == "Write x."


def test_folders_without_tasks_are_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match="there is no folder .*nowhere; expected one with tasks of Harbor"):
        harbor(tmp_path / "nowhere")
    with pytest.raises(TaskError, match="has no folder with a task.toml"):
        only(harbor(tmp_path))
    (folder(tmp_path) / "tests" / "test.sh").unlink()
    with pytest.raises(TaskError, match="has no tests/test.sh"):
        only(harbor(tmp_path))
    with pytest.raises(TaskError, match="has 0 held-out tasks|has no tasks to evaluate on"):
        harbor(EXAMPLES).held_out(1)


def test_without_bubblewrap_it_is_refused(monkeypatch) -> None:
    monkeypatch.setattr("longstride.core.processes.why_not_confined", lambda: "bubblewrap (bwrap) is not installed")
    with pytest.raises(ConfigError, match="is not installed; install it"):
        harbor(EXAMPLES).env()


@needs_bwrap
def test_one_iteration_trains(tmp_path) -> None:
    source = harbor(folder(tmp_path, "test -e x"), test_path=str(EXAMPLES))
    model = few_words(tmp_path / "model", "Action: done")
    recipe = small(source, model, EnvironmentReward(), episodes_per_iteration=4, group_size=2, evaluation={"tasks": 2})
    assert run(recipe, tmp_path)["summary"]["failed"] == 0
