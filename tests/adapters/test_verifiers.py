"""Environments of the verifiers library: the conversation with its loop, and, where it is installed, both its
interfaces. The library wants a Python environment of its own (it asks for one version of mcp and an older openai)."""

import asyncio
import importlib.util
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from adapter_runs import few_words, play, run, small
from helpers import SLOW

from longstride.adapters import verifiers, verifiers_worlds
from longstride.adapters.seeded import EnvironmentReward
from longstride.adapters.verifiers import Verifiers, VerifiersEnv
from longstride.adapters.verifiers_worlds import Ask, RubricWorld, Scores, VerifiersWorld
from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError, EnvFailure, MissingExtra
from longstride.core.foreign import MAX_TEXT
from longstride.core.plain import plain
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.base import TaskSource

SCORES: dict[str, Any] = {
    "nan": Scores(float("nan"), {}),
    "digits": Scores(10**400, {}),
    "nothing": None,
    "two": Scores(np.array([1.0, 2.0]), {}),  # pyright: ignore[reportArgumentType]
    "term": Scores(1.0, {"style": float("inf")}),
    "terms": Scores(1.0, {str(k): 0.0 for k in range(101)}),
    "no terms": Scores(1.0, None),  # pyright: ignore[reportArgumentType]
    "names": Scores(1.0, {5: 0.5, "\x1b[31mname\ud800" * 20: 0.0}),  # pyright: ignore[reportArgumentType]
}


class Letters(VerifiersWorld):
    """Asks for words until one has the wanted letter; each letter of the last word earns a tenth."""

    prompts = [f"a word with {letter}" for letter in "abcdefghij"]

    async def play(self, row: int, ask: Ask) -> Scores:
        said, letter, words = self.prompts[row], "abcdefghij"[row], 0
        while (word := await ask(said)) is not None:
            if word == "raise":
                raise KeyError("lost")
            if word in SCORES:
                return SCORES[word]
            if word == "exit":
                sys.exit(3)
            if word == "number":
                said: Any = 5
                continue
            words += 1
            if letter in word:
                return Scores(1.0, {"length": len(word) / 10, "words": words})
            said = f"no {letter} in {word}"
        return Scores(0.25, {"length": 0.0, "words": words})


class Marking:
    """An environment with a rubric that writes into the row that it is given."""

    def build_eval_dataset(self) -> None:
        return None

    async def rollout(self, row: dict[str, Any], *_: Any) -> dict[str, Any]:
        row["info"]["asked"] += 1
        return {"reward": float(row["info"]["asked"]), "metrics": {}}

    @property
    def rubric(self) -> "Marking":
        return self

    async def score_rollout(self, state: Any) -> None: ...

    async def cleanup(self, state: Any) -> None: ...


def test_what_an_episode_writes_into_its_row_is_not_there_in_the_next(monkeypatch) -> None:
    monkeypatch.setattr(verifiers_worlds, "_policy", lambda ask: None)
    world = RubricWorld(Marking(), [{"prompt": "p", "info": {"asked": 0}}])

    async def ask(said: str) -> str | None: ...

    assert [asyncio.run(world.play(0, ask)).reward for _ in range(2)] == [1.0, 1.0]


class Mute(VerifiersWorld):
    """Ends without a word."""

    prompts = ["nothing"]

    async def play(self, row: int, ask: Ask) -> Scores:
        return Scores(0.0, {})


def source(world: type[VerifiersWorld], monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Verifiers:
    monkeypatch.setattr(verifiers, "require", lambda *_: None)
    monkeypatch.setattr(verifiers, "open_world", lambda *_: world())
    found = build(TaskSource, {"type": "verifiers", "id": "letters", "test_share": 0.3, **fields})
    assert isinstance(found, Verifiers)
    return found


def test_prompts_are_goals_with_a_split_by_their_hash(monkeypatch) -> None:
    letters = source(Letters, monkeypatch)
    held = {t.goal for t in letters.held_out(10)}
    seen = {t.goal for t in letters.sample(random.Random(0), 200)}
    assert held and seen and not held & seen and held | seen == set(Letters.prompts)
    own = source(Letters, monkeypatch, test_args={"split": "test"})
    assert len(own.held_out(10)) == 10 and {t.split for t in own.held_out(10)} == {"test"}


def task_of(letters: Verifiers, letter: str = "") -> Task:
    return next(t for t in letters.sample(random.Random(0), 99) if t.goal.endswith(letter))


def test_the_library_asks_and_the_policy_replies(monkeypatch) -> None:
    letters = source(Letters, monkeypatch)
    task = task_of(letters)
    letter = task.goal[-1]
    first, (wrong, right), state = play(letters.env(), task, ["zzz", f"x{letter}"])
    assert first.goal == task.goal and wrong.observation.text == f"no {letter} in zzz" and not wrong.terminated
    assert right.terminated and right.action == f"say x{letter}"
    assert state == {"reward": 1.0, "terms": {"length": 0.2, "words": 2}}


def test_an_episode_that_a_limit_cut_is_scored_as_it_stands(monkeypatch) -> None:
    letters = source(Letters, monkeypatch)
    task = task_of(letters)
    _, _, state = play(letters.env(), task, ["zzz"])
    assert state == {"reward": 0.25, "terms": {"length": 0.0, "words": 1}}
    turns = [Turn([0], [1], [-1.0], [0], observation="a", text="zzz")]
    episode = Trajectory(task, 0, 0, Budget(), turns, StopReason.TURNS)
    verdict = EnvironmentReward(success_above=0.5)(episode, state, 0)
    assert (verdict.reward, verdict.success, verdict.terms) == (0.25, False, {"length": 0.0, "words": 1})


def test_names_of_terms_are_short_plain_texts(monkeypatch) -> None:
    letters = source(Letters, monkeypatch)
    _, _, state = play(letters.env(), task_of(letters), ["names"])
    assert state["terms"]["5"] == 0.5 and all(len(n) < 150 and n == plain(n) for n in state["terms"])


class Stubborn(VerifiersWorld):
    """Goes on when it is asked to end for the first time, and begins with a long prompt."""

    prompts = ["\x1b[1mlong " * 100_000]

    async def play(self, row: int, ask: Ask) -> Scores:
        with suppress(asyncio.CancelledError):
            await ask("first")
        await ask("again")
        return Scores(0.0, {})


def test_a_loop_that_does_not_end_is_left_and_a_long_prompt_is_cut(monkeypatch) -> None:
    monkeypatch.setattr(verifiers, "CLOSING", 0.05)
    stubborn = source(Stubborn, monkeypatch, test_share=0)
    (task,) = stubborn.sample(random.Random(0), 1)
    assert len(task.goal) < MAX_TEXT + 100 and task.goal == plain(task.goal)

    async def left() -> bool:
        env = stubborn.env()
        await env.reset(task, 0)
        loop = env._play
        await asyncio.wait_for(env.close(), SLOW)
        return loop is not None and not loop.done()

    assert asyncio.run(left())


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (["raise"], r"the environment 'letters' raised KeyError: 'lost' \(test_verifiers\.py, line \d+\)"),
        (["nan"], r"the reward of the environment 'letters': expected a finite number, got nan"),
        (["digits"], r"the reward of the environment 'letters': expected a finite number, got 10000"),
        (["two"], r"the reward of the environment 'letters': expected a finite number, got array"),
        (["nothing"], r"the environment 'letters' raised AttributeError"),
        (["term"], r"'style' of the environment 'letters': expected a finite number, got inf"),
        (["terms"], r"the environment 'letters' has 101 terms of its reward; expected at most 100"),
        (["no terms"], r"the environment 'letters' raised TypeError"),
        (["exit"], r"the environment 'letters' raised SystemExit: 3 \(test_verifiers\.py, line \d+\)"),
        (["number"], r"the environment 'letters' raised (TypeError|AttributeError)"),
    ],
)
def test_what_the_library_raises_fails_the_episode(monkeypatch, says: list[str], message: str) -> None:
    letters = source(Letters, monkeypatch)
    with pytest.raises(EnvFailure, match=message):
        play(letters.env(), task_of(letters), says)
    mute = source(Mute, monkeypatch, test_share=0)
    with pytest.raises(EnvFailure, match="ended before it asked anything"):
        play(mute.env(), mute.sample(random.Random(0), 1)[0], [])


def test_an_episode_that_is_given_up_leaves_no_loop_behind(monkeypatch) -> None:
    letters = source(Letters, monkeypatch)

    async def give_up() -> set[str]:
        env = VerifiersEnv(letters)
        await env.reset(task_of(letters), 0)
        await env.close()
        await env.close()
        return {task.get_name() for task in asyncio.all_tasks()} - {"mine"}

    async def main() -> set[str]:
        return await asyncio.create_task(give_up(), name="mine")

    assert len(asyncio.run(main())) == 1  # what runs this


def test_one_iteration_trains(tmp_path, monkeypatch) -> None:
    model = few_words(tmp_path / "model", "abc defg hij")
    row = run(small(source(Letters, monkeypatch), model, EnvironmentReward(), evaluation={"tasks": 2}), tmp_path)
    assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0
    assert row["summary"]["terms"].keys() == {"length", "words"}


@pytest.mark.skipif(importlib.util.find_spec("verifiers") is not None, reason="verifiers is installed")
def test_without_the_library_the_message_names_the_command() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'longstride\[verifiers\]'"):
        Verifiers(id="gsm8k").sample(random.Random(0), 1)


installed = importlib.util.find_spec("verifiers") is not None
tasksets = pytest.mark.skipif(
    not installed or importlib.util.find_spec("verifiers.v1") is None,
    reason="needs pip install 'longstride[verifiers]' in a Python environment of its own",
)
rubrics = pytest.mark.skipif(
    not installed or importlib.util.find_spec("verifiers.legacy") is None,
    reason="needs pip install 'verifiers<0.4' in a Python environment of its own",
)


@pytest.fixture
def modules(monkeypatch) -> Path:
    """Makes the environments that stand beside this file, and the examples, importable."""
    here = Path(__file__).parents[1]
    monkeypatch.syspath_prepend(str(here / "support" / "verifiers_modules"))
    monkeypatch.syspath_prepend(str(here.parent / "examples"))
    return here


@tasksets
class TestTasksets:
    def test_a_task_is_its_prompt_and_scores_itself(self, modules) -> None:
        words = Verifiers(id="sums-taskset", test_share=0, rows=20)
        task = next(t for t in words.sample(random.Random(0), 50) if t.goal.endswith("1 + 4"))
        assert task.goal == "Reply with a number.\n1 + 4"
        assert len(words.worlds[False].prompts) == 20
        first, (step,), state = play(words.env(), task, ["5"])
        assert first.goal == task.goal and step.terminated
        assert state == {"reward": 1.5, "terms": {"right": 1.0, "brief": 0.5}}
        assert play(words.env(), task, ["it may be 6"])[2]["reward"] == 0

    def test_an_environment_of_several_turns_leads_the_conversation(self, modules) -> None:
        words = Verifiers(id="bisect_taskset", args={"task": {"most": 4}}, test_share=0, rows=8)
        task = words.sample(random.Random(0), 1)[0]
        wanted = int(task.start)
        _, steps, state = play(words.env(), task, [str(wanted + 1), str(wanted)])
        assert [s.observation.text for s in steps] == ["lower", ""] and steps[-1].terminated
        assert state["terms"] == {"found": 1.0}
        _, steps, state = play(words.env(), task, ["99", "99", "99", "99"])  # a stop condition of the task
        assert steps[-1].terminated and state["terms"] == {"found": 0.0}
        assert play(words.env(), task, ["99"])[2]["terms"] == {"found": 0.0}  # cut by a limit

    @pytest.mark.parametrize(
        ("id", "message"),
        [
            ("nowhere", "there is no module 'nowhere'; install the environment 'nowhere'"),
            ("sums-taskset", r"making the environment 'sums-taskset' with \{'colour': 1\} raised ValidationError"),
            ("boxed_taskset", "'boxed_taskset' needs a container"),
            ("broken_taskset", r"making the environment 'broken_taskset' .*ZeroDivisionError.*broken_taskset\.py"),
        ],
    )
    def test_what_cannot_be_played_is_refused_before_the_first_episode(self, modules, id: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            Verifiers(id=id, args={"colour": 1} if id == "sums-taskset" else {}).sample(random.Random(0), 1)

    def test_the_example_runs(self, modules, tmp_path) -> None:
        from verifiers_words import RECIPE  # pyright: ignore[reportMissingImports]

        model = few_words(tmp_path / "model", "red ear tree a")
        budget = {"turns": 2, "turn_tokens": 2}
        changes = {"model": model, "iterations": 1, "episodes_per_iteration": 16, "budget": budget}
        row = run(RECIPE.replace(**changes, test_budget=budget, evaluation={"tasks": 2, "baselines": False}), tmp_path)
        assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0


@rubrics
class TestRubrics:
    def test_the_rubric_gives_the_reward(self, modules) -> None:
        capitals = Verifiers(id="capitals_rubric")
        assert {t.goal for t in capitals.held_out(9)} == {"Be brief.\nthe capital of Peru"}
        task = next(t for t in capitals.sample(random.Random(0), 50) if "Chile" in t.goal)
        _, (step,), state = play(capitals.env(), task, ["it is Santiago"])
        assert step.terminated and state["reward"] == 1.0 and state["terms"]["right"] == 1.0

    def test_an_environment_of_several_turns_leads_the_conversation(self, modules) -> None:
        doubles = Verifiers(id="doubles_rubric", test_share=0)
        task = doubles.sample(random.Random(0), 1)[0]
        _, steps, state = play(doubles.env(), task, ["2", "4", "8"])
        assert [s.observation.text for s in steps] == ["double 2", "double 4", ""] and state["reward"] == 1.0
        _, steps, state = play(doubles.env(), task, ["2"])  # cut by a limit
        assert state["reward"] == pytest.approx(1 / 3)

    def test_tools_are_called_by_name_with_arguments(self, modules) -> None:
        tools = Verifiers(id="tools_rubric", test_share=0)
        says = ['Action: add {"a": 2}', 'Action: add {"a": 2, "b": 3}', "it is 5"]
        first, steps, state = play(tools.env(), tools.sample(random.Random(0), 1)[0], says)
        assert 'add {"a": integer, "b": integer}' in first.goal
        assert [s.observation.text for s in steps] == ["error: add: 'b' is a required property", "5", ""]
        assert state["reward"] == 1.0

    def test_one_iteration_trains(self, modules, tmp_path) -> None:
        model = few_words(tmp_path / "model", "2 4 8")
        tasks = Verifiers(id="doubles_rubric", test_share=0.5)
        row = run(small(tasks, model, EnvironmentReward(), evaluation={"tasks": 1}), tmp_path)
        assert row["summary"]["failed"] == 0 and row["trained_tokens"] > 0
