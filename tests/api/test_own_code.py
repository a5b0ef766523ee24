"""Environments and rewards of a user's own that do not keep to their interface: one message that names the class."""

import json
import math
import random
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from guides import own_modules

import longstride as ls
from longstride.cli.main import main
from longstride.core.content import Media
from longstride.curriculum import BudgetSchedule, Schedule, Uniform
from longstride.papers.naming import find_experiment
from longstride.rollout import Plan, Pool, ScriptedPlayer
from longstride.run.loop import compare

TASK = ls.Task(id="t", source="own", goal="g", start="")


class World:
    """Ends the task at once, with one point."""

    async def reset(self, task: ls.Task, seed: int) -> Any:
        return ls.Observation("start")

    async def step(self, text: str) -> Any:
        return ls.Step(ls.Observation("end"), reward=1.0, terminated=True, action=text)

    async def final_state(self) -> Any:
        return {}

    async def close(self) -> None:
        pass


def play(env: Any, reward: ls.Reward | None = None) -> ls.Trajectory:
    with Pool(ScriptedPlayer(lambda episode: "go"), lambda: env, reward or ls.TaskReward()) as pool:
        pool.submit([Plan(TASK, 0, 0, ls.Budget())])
        return pool.collect([0])[0]


def world(**methods: Any) -> World:
    return type("Mine", (World,), methods)()


def returns(value: Any) -> Any:
    async def method(*args: Any) -> Any:
        return value

    return method


class Fixed(ls.Reward):
    verdict: Any

    def __call__(self, trajectory: ls.Trajectory, state: dict[str, Any], seed: int) -> Any:
        return self.verdict


def test_a_world_that_keeps_to_the_interface_is_played() -> None:
    assert play(World()).success


def plain_step(self: World, text: str) -> ls.Step:
    return ls.Step(ls.Observation("end"))


plain_step.__name__ = "step"


@pytest.mark.parametrize(
    ("env", "says"),
    [
        (world(reset=returns("start")), r"Mine.method returned 'start' \(str\); expected an Observation"),
        (world(reset=returns(ls.Observation(3))), r"the observation is of 3 \(int\); expected a str"),  # pyright: ignore[reportArgumentType]
        (world(step=returns(None)), r"Mine.method returned None \(NoneType\); expected a Step"),
        (world(step=returns(("end", 0.0, True, False, {}))), r"\(tuple\); expected a Step"),
        (world(step=plain_step), "Mine.step is no coroutine: write `async def step`"),
        (
            world(step=returns(ls.Step(ls.Observation("x"), reward=math.nan))),
            r"the reward is nan \(float\); expected a",
        ),
        (world(step=returns(ls.Step("x"))), "the step's observation is 'x'"),  # pyright: ignore[reportArgumentType]
        (
            world(step=returns(ls.Step(ls.Observation("x"), reward=10**400))),
            r"the reward is 10000.* \(int\); expected a finite",
        ),
        (world(step=returns(ls.Step(ls.Observation("x"), reward=1e300))), "expected a finite number, of at most 1e"),
        (world(step=returns(ls.Step(ls.Observation("x"), terminated=np.array([True, False])))), "terminated is array"),  # pyright: ignore[reportArgumentType]
        (
            world(step=returns(ls.Step(ls.Observation("x"), truncated="no"))),  # pyright: ignore[reportArgumentType]
            r"truncated is 'no' \(str\); expected True",
        ),  # pyright: ignore[reportArgumentType]
        (world(step=returns(ls.Step(ls.Observation("x"), terminated=None))), "terminated is None"),  # pyright: ignore[reportArgumentType]
        (world(step=returns(ls.Step(ls.Observation("x"), action=3))), r"action is 3 \(int\); expected a str or None"),  # pyright: ignore[reportArgumentType]
        (world(step=returns(ls.Step(ls.Observation("x"), answer=5))), r"answer is 5 \(int\); expected a str or None"),  # pyright: ignore[reportArgumentType]
        (world(step=returns(ls.Step(ls.Observation("x"), error=ValueError("no")))), "error is ValueError"),  # pyright: ignore[reportArgumentType]
        (world(step=returns(ls.Step(ls.Observation("x"), info=None))), "info is None .*; expected a dict"),  # pyright: ignore[reportArgumentType]
        (world(reset=returns(ls.Observation("x", goal=5))), r"goal is 5 \(int\); expected a str"),  # pyright: ignore[reportArgumentType]
        (world(reset=returns(ls.Observation("x", manual="act"))), "manual is 'act' .*; expected a Manual or None"),  # pyright: ignore[reportArgumentType]
        (world(final_state=returns(None)), "expected a dict"),
        (world(final_state=None), "Mine has no final_state: write `async def final_state"),
        (world(close=None), "Mine has no close: write `async def close"),
    ],
)
def test_what_an_environment_returns_is_checked(env: World, says: str) -> None:
    with pytest.raises(ls.OwnCodeError, match=says):
        play(env, Fixed(verdict=ls.Verdict(1.0, True)))


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (None, r"Fixed returned None \(NoneType\); expected a Verdict"),
        (0.5, r"Fixed returned 0.5 \(float\); expected a Verdict"),
        (ls.Verdict(math.inf, True), r"Fixed: the reward is inf \(float\); expected a finite number"),
        (ls.Verdict("1", True), r"the reward is '1' \(str\)"),  # pyright: ignore[reportArgumentType]
        (ls.Verdict(1.0, np.array([True, False])), "Fixed: success is array"),  # pyright: ignore[reportArgumentType]
        (ls.Verdict(1.0, True, {"style": math.nan}), "Fixed: the term 'style' is nan"),
        (ls.Verdict(1.0, True, None), "Fixed: terms are None; expected numbers by name"),  # pyright: ignore[reportArgumentType]
        (ls.Verdict(1.0, True, evidence={"of": np.float32(1)}), "Fixed: the evidence is .*; expected data of JSON"),
    ],
)
def test_what_a_reward_returns_is_checked(verdict: Any, says: str) -> None:
    with pytest.raises(ls.OwnCodeError, match=says):
        play(World(), Fixed(verdict=verdict))


def test_what_goes_wrong_in_a_reward_has_a_note_of_the_episode() -> None:
    class Broken(ls.Reward):
        def __call__(self, trajectory: ls.Trajectory, state: dict[str, Any], seed: int) -> ls.Verdict:
            raise ZeroDivisionError

    for reward, error in ((Fixed(verdict=None), ls.OwnCodeError), (Broken(), ZeroDivisionError)):
        with pytest.raises(error) as raised:
            play(World(), reward)
        assert raised.value.__notes__ == ["the reward was asked about task 't', with the answer None"]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"success": "no"}, r"its 'success' is 'no' \(str\); expected True or False"),
        ({"reward": "high"}, r"its 'reward' is 'high' \(str\); expected a finite number"),
    ],
)
def test_what_a_final_state_says_of_the_reward_is_checked(state: dict[str, Any], says: str) -> None:
    with pytest.raises(ls.OwnCodeError, match=says):
        play(world(final_state=returns(state)), ls.EnvironmentReward())


def test_numbers_and_flags_of_numpy_can_be_stored() -> None:
    end = ls.Step(ls.Observation("end"), reward=np.float32(0.5), terminated=np.bool_(True), action="go")  # pyright: ignore[reportArgumentType]
    state = {"success": np.bool_(True), "reward": np.float32(2), "terms": {"style": np.int64(1)}}
    played = play(world(step=returns(end), final_state=returns(state)), ls.EnvironmentReward())
    assert json.loads(played.to_json())["terms"] == {"style": 1.0}
    assert (played.reward, played.success, played.terms, played.turns[0].reward) == (2.5, True, {"style": 1.0}, 0.5)


def test_an_environment_that_two_episodes_would_share_is_refused() -> None:
    env = World()
    with Pool(ScriptedPlayer(lambda episode: "go"), lambda: env, ls.TaskReward(), batch=1) as pool:
        pool.submit([Plan(TASK, k, 0, ls.Budget()) for k in range(2)])
        assert all(t.success for t in pool.collect([0, 1]))  # one after the other
    with Pool(ScriptedPlayer(lambda episode: "go"), lambda: env, ls.TaskReward(), batch=2) as pool:
        pool.submit([Plan(TASK, k, 0, ls.Budget()) for k in range(2)])
        with pytest.raises(ls.OwnCodeError, match=r"env\(\) of the tasks gave a World in which another episode plays"):
            pool.collect([0, 1])


class Drawing(ls.TaskSource):
    """Gives what it is told to give."""

    tasks: Any

    def sample(self, rng: random.Random, n: int) -> Any:
        return self.tasks

    def env(self) -> Any:
        return World()


@pytest.mark.parametrize("tasks", [[], [TASK], [TASK, TASK, TASK], ["t", "t"]])
def test_a_source_that_does_not_draw_as_many_tasks_as_it_is_asked_for_is_refused(tasks: Any) -> None:
    found = Drawing(tasks=tasks)
    with pytest.raises(ls.OwnCodeError, match=r"Drawing.sample returned .*; expected 2 tasks"):
        Uniform().draw(found, 2, random.Random(0), None)  # pyright: ignore[reportArgumentType]


class Examined(Drawing):
    def held_out(self, n: int) -> Any:
        return self.tasks


@pytest.mark.parametrize("tasks", [None, 3, ["t"], "tasks"])
def test_a_source_that_gives_something_else_than_held_out_tasks_is_refused(tasks: Any) -> None:
    recipe = find_experiment("tti").replace(tasks=Examined(tasks=tasks))
    assert isinstance(recipe, ls.Recipe)
    with pytest.raises(ls.OwnCodeError, match=r"Examined.held_out returned .*; expected a list of tasks"):
        recipe.held_out()


class Told(Schedule):
    limit: Any

    def at(self, iteration: int, difficulty: Any = "easy", experience: Any = None) -> Any:
        return self.limit


@pytest.mark.parametrize("limit", ["8", 1.5, 0, -1, None, math.nan])
def test_a_schedule_that_gives_no_limit_is_refused(limit: Any) -> None:
    for ask in (lambda of: of.most(2), lambda of: BudgetSchedule(turns=of).at(1, "easy")):
        with pytest.raises(ls.OwnCodeError, match=r"Told.at gives .* for iteration 1; expected a whole number"):
            ask(Told(limit=limit))
    assert BudgetSchedule(turns=Told(limit=np.int64(3))).at(1, "easy").turns == 3


def test_images_whose_names_were_made_to_be_the_same_fail_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longstride.core.content._DIGITS", 1)
    images = tuple(Media(bytes([k])) for k in range(40))
    played = play(world(reset=returns(ls.Observation(images))))
    assert played.stop.failed and "have the same placeholder" in played.evidence["failure"]


async def leave(*args: Any) -> Any:
    sys.exit(3)


class Leaving(ls.Reward):
    """Ends the program, alone or among siblings."""

    late: bool = False

    def __call__(self, trajectory: ls.Trajectory, state: dict[str, Any], seed: int) -> Any:
        return ls.Verdict(1.0, True) if self.late else sys.exit(3)

    def compare(self, group: Any) -> Any:
        sys.exit(3)


@pytest.mark.parametrize(
    ("env", "reward", "who"),
    [
        (world(reset=leave), None, r"Mine\.leave"),
        (world(step=leave), None, r"Mine\.leave"),
        (world(final_state=leave), Fixed(verdict=ls.Verdict(1.0, True)), r"Mine\.leave"),
        (World(), Leaving(), "Leaving"),
    ],
)
def test_whoever_ends_the_program_ends_his_own_episode_alone(env: World, reward: ls.Reward | None, who: str) -> None:
    played = play(env, reward)
    assert played.stop.failed and not played.success
    assert re.search(rf"{who} asked for the end of the program: SystemExit: 3 \(test", played.evidence["failure"])


def test_a_program_that_is_ended_in_close_or_by_comparing_siblings_costs_no_others() -> None:
    assert play(world(close=leave)).success
    group = [play(World(), Leaving(late=True)) for _ in range(2)]
    assert all(t.success for t in group)
    compare(Leaving(late=True), group)
    assert all(t.stop.failed and "Leaving asked for the end" in t.evidence["failure"] for t in group)


class OneForAll(Leaving):
    """Gives a group one verdict."""

    def compare(self, group: Any) -> Any:
        return [ls.Verdict(1.0, True)]


def test_a_comparison_that_leaves_out_a_sibling_is_refused() -> None:
    group = [play(World(), OneForAll(late=True)) for _ in range(2)]
    with pytest.raises(ls.OwnCodeError, match="OneForAll: compare gives 1 verdicts for 2 episodes"):
        compare(OneForAll(late=True), group)


def test_an_interruption_ends_the_run() -> None:
    async def interrupt(*args: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(world(step=interrupt))


FILE = """
import longstride as ls
from longstride.envs.tools import Manual, Tool, arguments


class Broken:
    def __init__(self):
        {constructor}

    async def reset(self, task, seed):
        return {first}

    def first(self):
        return {{}}['word']

    async def step(self, text):
        return ls.Step(ls.Observation("end"), terminated=True)

    async def close(self):
        {close}


class Source(ls.TaskSource):
    def sample(self, rng, n):
        return self.held_out(n)

    def held_out(self, n):
        return [ls.Task(id=str(k), source="own", goal="click", start="") for k in range(n)]

    def env(self):
        return Broken()


class Pleased(ls.Reward):
    def __call__(self, trajectory, state, seed):
        return ls.Verdict(1.0, True)


evaluation = {{"tasks": 2, "baselines": False, "reward": Pleased()}}
RECIPE = ls.load_recipe("tti").replace(
    tasks=Source(), iterations=1, episodes_per_iteration=2, evaluation=evaluation, actions="{actions}"
)
"""
FIRST = "ls.Observation(self.first())"
GOOD = "ls.Observation('start', manual=Manual((Tool('go', arguments(), form='go'),)))"


@pytest.mark.parametrize("actions", ["text", "explained"])
@pytest.mark.parametrize(
    ("first", "close", "says"),
    [
        (FIRST, "pass", "line 14, in first: KeyError: 'word'"),
        (FIRST, "self.db.close()", "line 14, in first: KeyError: 'word'"),
        ("'start'", "pass", "line 10: Broken.reset returned 'start' (str); expected an Observation"),
        (GOOD, "pass", "line 6: Broken has no final_state: write `async def final_state(...)`"),
    ],
)
def test_the_first_error_in_an_own_environment_is_one_message_with_its_line_and_leaves_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], actions: str, first: str, close: str, says: str
) -> None:
    path = tmp_path / f"broken_{tmp_path.name}.py"
    path.write_text(FILE.format(constructor="pass", first=first, close=close, actions=actions))
    with own_modules(tmp_path):
        assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert f"error: {path}, {says}" in said and "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_an_error_of_its_constructor_is_one_message_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken_made.py"
    path.write_text(FILE.format(constructor="self.x = 1 / 0", first=GOOD, close="pass", actions="text"))
    with own_modules(tmp_path):
        assert main(["train", str(path), "--out", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}, line 8, in __init__: ZeroDivisionError") and "Traceback" not in said
