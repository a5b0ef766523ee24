"""Programs that call a chat API as environments."""

import importlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from gateway_programs import SUM, Refused, chat, episodes, function, post

import longstride
from longstride.adapters.gateway.agents import Command, Function, Job, Stranger
from longstride.adapters.gateway.server import server
from longstride.adapters.gateway.source import ChatGateway
from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.processes import Limits, why_not_confined
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.methods import GroupRelative, Reinforce
from longstride.models.load import load_policy
from longstride.rewards import Reward, TaskReward, Verdict
from longstride.rollout import AsRequested, BudgetInView, FullHistory, LatestObservation, TrajectoryStore
from longstride.run.evaluation import evaluate_policy
from longstride.run.loop import train
from longstride.run.recipe import Recipe
from longstride.setups import sites

READ = ("find", "search", "compare", "survey", "hop")
"""Errands whose answer is all that is judged."""


def native(**changes: Any) -> Recipe:
    """Two iterations of four short episodes on the embedded sites."""
    fields: dict[str, Any] = {
        "iterations": 2,
        "episodes_per_iteration": 4,
        "group_size": 4,
        "tasks": EmbeddedWeb(errands=READ),
        "budget": {"turns": 3},
        "test_budget": {"turns": 3},
        "evaluation": {"tasks": 1, "baselines": False, "every": 2},
        "reward": Anything(),
        "seed": 900,
    }
    return sites.recipe("native", GroupRelative(), Reinforce()).replace(**fields | changes)


def through_gateway(recipe: Recipe, function: str = "gateway_programs:browse", **fields: Any) -> Recipe:
    """The same, played by a program."""
    source = ChatGateway(agent=Function(function=function), tasks=recipe.tasks, result="answer", calls="text", **fields)
    return recipe.replace(tasks=source, context=AsRequested())


class Anything(Reward):
    """So that every group has something to compare."""

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(sum(sum(turn.sampled_ids) for turn in trajectory.turns) % 7 / 7, False, {}, {})


def trained(recipe: Recipe, folder: Path, **how: Any) -> tuple[list[Trajectory], bytes]:
    """What was played, and the weights that came of it."""
    train(recipe, folder, **how)
    last = max((folder / "checkpoints").iterdir(), key=lambda path: path.name)
    return list(TrajectoryStore(folder / "trajectories.jsonl")), (last / "model.safetensors").read_bytes()


def test_a_program_that_plays_as_the_native_loop_does_gets_equal_ids_and_equal_weights(tmp_path) -> None:
    recipe = native()
    (ours, weights), (theirs, learned) = (
        trained(recipe, tmp_path / "a"),
        trained(through_gateway(recipe), tmp_path / "b"),
    )
    assert len(ours) == len(theirs) == 8 and any(len(t.turns) > 1 for t in ours)
    for a, b in zip(ours, theirs, strict=True):
        assert [t.prompt_ids for t in a.turns] == [t.prompt_ids for t in b.turns]
        assert [t.sampled_ids for t in a.turns] == [t.sampled_ids for t in b.turns]
        assert [t.behaviour_logprobs for t in a.turns] == [t.behaviour_logprobs for t in b.turns]
        assert (a.stop, a.reward) == (b.stop, b.reward)
        assert not any(t.fork for t in b.turns)
    assert weights == learned


@pytest.mark.parametrize("agent", ["function", "command"])
def test_the_example_plays_with_the_package_openai_what_the_native_loop_plays(agent: str, monkeypatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = importlib.import_module("gateway_sites")
    few = {"test_budget": {"turns": 3}, "evaluation": {"tasks": 1}, "seed": 900}
    native, recipe = example.NATIVE.replace(**few), example.RECIPE.replace(**few)
    if agent == "command":
        source = Path(longstride.__file__).parents[1]
        command = Command(
            command=(sys.executable, str(EXAMPLES / "gateway_sites_agent.py")),
            variables={"PYTHONPATH": str(source)},
            readable=(str(source),),
        )
        recipe = recipe.replace(tasks=recipe.tasks.model_copy(update={"agent": command}))
    policy = load_policy("base")
    ours, theirs = (evaluate_policy(policy, r).trajectories for r in (native, recipe))
    ids = [[(turn.prompt_ids, turn.sampled_ids) for t in played for turn in t.turns] for played in (ours, theirs)]
    assert ids[0] == ids[1] and [t.stop for t in ours] == [t.stop for t in theirs]


# programs by hand, with a player of texts

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = str(Path(__file__).parents[1] / "support" / "gateway_program.py")


def program(how: str, **fields: Any) -> ChatGateway:
    limits = Limits(seconds=300.0, memory=4096, **fields.pop("limits", {}))
    agent = Command(command=(sys.executable, PROGRAM, how), limits=limits)
    return ChatGateway(agent=agent, tasks=EmbeddedWeb(), **fields)


@pytest.mark.parametrize(
    ("how", "fields", "message"),
    [
        ("crash", {}, r"the program .*gateway_program.py crash: it ended with status 1; it last wrote: .*boom"),
        ("status", {}, "it ended with status 3"),
        ("hang", {"deadline": 1.0}, "asked nothing for 1 s"),
        ("deaf", {"deadline": 1.0}, "asked nothing for 1 s"),
        ("lies", {}, "ended and asked nothing of the model"),
        ("silent", {}, "ended and asked nothing of the model"),
        ("garbage", {}, "sent 100 requests that do not fit, the last: the request is not JSON"),
        ("floods", {"limits": {"file_size": 1}}, "it ended with status"),
        ("huge", {}, "gave no reward: expected a number|expected a finite number"),
        ("words", {}, "gave no reward: expected a number, or an object with a reward, as its result, got 'I think"),
        ("other", {}, "gave no reward"),
        ("file", {"result": "file"}, None),
        ("good", {"result": "file"}, "left no result.json"),
        ("forks", {"limits": {"processes": 20}}, "it ended with status 1; it last wrote: .*Resource temporarily"),
    ],
)
def test_a_program_that_does_not_end_as_it_should_fails_its_episode_in_one_line(how, fields, message) -> None:
    if how == "forks" and os.geteuid() == 0 and why_not_confined():
        pytest.skip("the system does not count root's processes")
    (t,) = episodes(program(how, **fields), lambda e: "three")
    if message is None:
        assert (t.stop, t.reward, t.success, t.answer) == (StopReason.ANSWERED, 0.5, True, "three")
        return
    assert t.stop is StopReason.INFRA_FAILURE and t.reward == 0 and re.search(message, t.evidence["failure"])
    assert "\n" not in t.evidence["failure"]
    until = time.monotonic() + 120  # the system takes a moment to bury what was killed
    while left := [line for line in command_lines() if {PROGRAM.encode(), how.encode()} <= set(line.split(b"\0"))]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


@pytest.mark.parametrize(("make", "why"), [("link", "it is a link"), ("pipe", "it is no regular file")])
def test_a_result_is_read_from_a_file_and_from_no_link_or_pipe(make: str, why: str) -> None:
    def leave(job: Job) -> None:
        chat(job, [{"role": "user", "content": "hi"}])
        (job.folder / "other").write_text("1")
        (job.folder / "result.json").symlink_to("other") if make == "link" else os.mkfifo(job.folder / "result.json")

    (t,) = episodes(function(leave, result="file"), lambda e: "three")
    assert t.stop is StopReason.INFRA_FAILURE and f"left no result.json that can be read: {why}" in str(t.evidence)


def command_lines() -> Iterator[bytes]:
    """Of all processes."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (folder / "cmdline").read_bytes()


def test_what_does_not_fit_is_refused_and_the_program_goes_on() -> None:
    (t,) = episodes(program("careless"), lambda e: "three")
    assert (t.stop, t.reward, t.success, t.length) == (StopReason.ENV_ENDED, 1.0, True, 1)


@pytest.mark.parametrize(("how", "reward"), [("asks on", 0.25), ("crashes when told", 0.0), ("deaf when told", 0.0)])
def test_when_a_budget_is_spent_the_program_is_told_and_what_it_reports_then_counts(how: str, reward: float) -> None:
    source = program(how, grace=30.0 if reward else 2.0)
    (t,) = episodes(source, lambda e: "three", turns=3)
    assert (t.stop, t.length, t.reward, t.success) == (StopReason.TURNS, 3, reward, bool(reward))
    assert [turn.fork for turn in t.turns] == ["", "again", "again"]


def test_the_tasks_own_reward_is_refused_where_the_program_says_what_an_episode_was_worth() -> None:
    with pytest.raises(ConfigError, match="set reward.type=environment_reward"):
        native(reward=TaskReward(), tasks=program("good"), context=AsRequested())


def test_an_answer_that_comes_when_the_budget_is_spent_is_judged() -> None:
    source = program("answers when told", grace=30.0, result="answer")
    (t,) = episodes(source, lambda e: "three", turns=2, reward=TaskReward())
    assert (t.stop, t.length, t.answer) == (StopReason.TURNS, 2, "late")


def test_a_program_sees_its_task_without_what_judges_it_and_no_variable_that_may_be_secret(monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "x")
    (t,) = episodes(program("task"), lambda e: "three")
    assert t.answer and "add 1 and 2" in t.answer and "reference" not in t.answer and "MY_SECRET" not in t.answer


def test_the_last_line_is_the_answer_that_the_recipes_reward_judges() -> None:
    found = episodes(program("good", result="answer"), lambda e: "three", reward=TaskReward())
    assert (found[0].stop, found[0].answer, found[0].success) == (StopReason.ANSWERED, "1", False)


def test_a_verifier_is_another_program_that_finds_the_folder_and_what_judges_the_task() -> None:
    judge = "import json, os; print(1.5 if json.load(open('task.json'))['evaluator'] and open('result.json') else 0)"
    verifier = Command(command=(sys.executable, "-c", judge))
    (t,) = episodes(program("file", result="verifier", verifier=verifier), lambda e: "three")
    assert t.reward == 1.5
    with pytest.raises(ConfigError, match="result=verifier goes with a verifier"):
        build(TaskSource, program("file").as_data() | {"result": "verifier"})


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_a_program_puts_in_the_place_of_the_task_is_not_written_to(tmp_path: Path, kind: str) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    agent = Command(command=(sys.executable, PROGRAM, "spoils", *([str(kept)] if kind == "link" else [])))
    judge = "import json; print(1.5 if json.load(open('task.json'))['evaluator'] else 0)"
    verifier = Command(command=(sys.executable, "-c", judge))
    source = ChatGateway(agent=agent, tasks=EmbeddedWeb(), result="verifier", verifier=verifier)
    (t,) = episodes(source, lambda e: "three")
    assert (t.reward, kept.read_text()) == (1.5, "mine")


def test_no_turn_of_64_episodes_at_once_is_lost_or_mixed_up() -> None:
    def echoed(job: Job) -> float:
        messages = [{"role": "user", "content": job.key}]
        for k in range(5):
            said = chat(job, messages)
            assert said["content"] == f"{k} {messages[-1]['content']}"
            messages += [said, {"role": "user", "content": f"{job.key} {k}"}]
        return 1.0

    found = episodes(function(echoed), lambda e: f"{e.turns} {e.page}", 64, turns=9)
    assert [(t.stop, t.length, t.reward) for t in found] == [(StopReason.ENV_ENDED, 5, 1.0)] * 64
    assert not any(turn.fork for t in found for turn in t.turns)


def test_a_function_that_raises_or_returns_nothing_fails_its_episode() -> None:
    def careless(job: Job) -> None:
        chat(job, [{"role": "user", "content": "go"}])

    def broken(job: Job) -> None:
        chat(job, [{"role": "user", "content": "go"}])
        raise KeyError("lost")

    (t,) = episodes(function(careless), lambda e: "x")
    assert "the function gateway_programs:careless gave no reward" in t.evidence["failure"]
    (t,) = episodes(function(broken), lambda e: "x")
    assert "the function gateway_programs:broken raised KeyError: 'lost'" in t.evidence["failure"]


def test_a_key_is_of_one_episode_and_refused_when_that_is_over() -> None:
    jobs: list[Job] = []

    def kept(job: Job) -> float:
        jobs.append(job)
        chat(job, [{"role": "user", "content": "go"}])
        with pytest.raises(Refused, match="this is no episode's key"):
            post(job, "/v1/chat/completions", {"messages": []}, key="ls-other")
        return 1.0

    assert episodes(function(kept), lambda e: "x")[0].reward == 1.0
    with pytest.raises(Refused) as refused:
        chat(jobs[0], [{"role": "user", "content": "again"}])
    assert (refused.value.status, refused.value.body["error"]["type"]) == (410, "episode_over")


def test_an_episode_of_a_program_that_nobody_here_starts_ends_when_it_is_quiet() -> None:
    source = ChatGateway(agent=Stranger(quiet=0.2), tasks=EmbeddedWeb())
    said: list[str] = []

    def ask() -> None:
        job = Job(SUM, 0, server(0).address, "a-new-key", Path())
        until = time.monotonic() + 300
        while not said and time.monotonic() < until:
            time.sleep(0.02)
            with suppress(Refused):  # the episode does not wait yet
                said.append(chat(job, [{"role": "user", "content": "go"}])["content"])

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    (t,) = episodes(source, lambda e: "yes")
    asking.join()
    assert said == ["yes"] and (t.stop, t.length, t.reward) == (StopReason.ENV_ENDED, 1, 0.0)


@pytest.mark.parametrize(
    ("function", "changes", "says"),
    [
        (
            "gateway_programs:brose",
            {},
            "agent.function is gateway_programs:brose, and gateway_programs has no function",
        ),
        ("no_such_module:browse", {}, "No module named 'no_such_module'"),
        ("gateway_programs:browse", {"context": FullHistory()}, "set context.type=as_requested"),
        (
            "gateway_programs:browse",
            {"context": BudgetInView(within=LatestObservation())},
            "context.within.type=as_req",
        ),
    ],
)
def test_what_no_episode_could_be_played_with_ends_the_run_at_once(
    tmp_path: Path, function: str, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        train(through_gateway(native(), function).replace(**changes), tmp_path / "run")
