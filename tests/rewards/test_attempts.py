"""Attempts at the tasks of any source: scored by what judges an answer there, and by what its environment gives."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import make_task

from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step, TaskSource
from longstride.rewards import Attempts, TaskReward
from longstride.rewards.attempts import scores
from longstride.rollout import Plan, Pool, ScriptedPlayer


def played(source: TaskSource, task: Task, *said: str) -> Trajectory:
    pool = Pool(ScriptedPlayer(lambda e: said[e.turns]), source.env, TaskReward())
    return pool.run([Plan(task, 0, 0, Budget(turns=9))])[0]


def dataset(folder: Path, **settings: Any) -> TaskSource:
    path = folder / "sums.jsonl"
    path.write_text(json.dumps({"prompt": "3+4=", "answer": "7"}), encoding="utf-8")
    return build(
        TaskSource, {"type": "attempts", "attempts": 3, "tasks": {"type": "dataset", "path": path, **settings}}
    )


def test_each_reply_to_a_row_of_a_file_is_judged_and_the_last_one_counts(tmp_path: Path) -> None:
    source = dataset(tmp_path, match="number", mark="Answer:", test_share=1.0)
    (task,) = source.held_out(1)
    t = played(source, task, "Answer: 8", "Answer: so it is 7", "seven")
    assert [turn.observation for turn in t.turns] == ["", "check again", "check again"]
    assert (scores(t), t.reward, t.success, t.stop.terminated) == ([0, 1, 0], 0, False, True)
    t = played(source, task, "Answer: 7", "7", "Answer: 7")
    assert (scores(t), t.reward, t.success, t.answer) == ([1, 0, 1], 1, True, "7")
    assert t.turns[2].observation == "error: the reply has no answer after Answer:\ncheck again"


def test_what_only_a_judge_can_tell_is_refused(tmp_path: Path) -> None:
    source = dataset(tmp_path, match="judged", test_share=1.0)
    with pytest.raises(ConfigError, match="scored by its task's evaluator alone, and .* compares meanings"):
        played(source, source.held_out(1)[0], "7", "8", "9")


class Counted(TaskSource):
    """What is said is the reward of a turn, and the second turn ends the task."""

    def env(self) -> "TwoTurns":
        return TwoTurns()


class TwoTurns:
    turns = 0

    async def reset(self, task: Task, seed: int) -> Observation:
        return Observation("begin")

    async def step(self, text: str) -> Step:
        self.turns += 1
        return Step(Observation("go on"), reward=float(text), terminated=self.turns == 2, action=text)

    async def final_state(self) -> dict[str, Any]:
        return {}

    async def close(self) -> None: ...


def test_without_an_evaluator_an_attempt_is_worth_what_its_environment_gave() -> None:
    t = played(Attempts(tasks=Counted()), make_task(), "1", "2", "4", "8")
    assert ([turn.reward for turn in t.turns], t.reward, t.success) == ([1, 2, 4, 5], 12, True)
    assert t.turns[2].observation == "begin\ncheck again"
