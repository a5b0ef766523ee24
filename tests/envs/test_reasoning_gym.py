"""reasoning-gym: any safe dataset as a task source, judged by its own scorer."""

import os
import random
import re
import sys
from typing import Any

import pytest

from longstride.core.budget import Budget
from longstride.core.errors import MissingExtra, TaskError
from longstride.core.task import DIFFICULTIES, Task
from longstride.core.trajectory import Trajectory
from longstride.envs.puzzles import (
    PuzzleSource,
    ReasoningGym,
)
from longstride.envs.puzzles.base import Action
from longstride.envs.puzzles.reasoning_gym import EXECUTED, Entry
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, ScriptedPlayer


def play(source: PuzzleSource, tasks: list[Task], say, turns: int = 20) -> list[Trajectory]:
    plans = [Plan(task, i, i, Budget(turns=turns)) for i, task in enumerate(tasks)]
    return Pool(ScriptedPlayer(say), source.env, TaskReward()).run(plans)


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    with pytest.raises(MissingExtra, match=r"pip install 'longstride\[reasoning-gym\]'"):
        ReasoningGym(dataset="chain_sum").held_out(1)


def needs_reasoning_gym() -> None:
    pytest.importorskip("reasoning_gym", reason="needs pip install 'longstride[reasoning-gym]'")


@pytest.mark.parametrize("dataset", ["chain_sum", "spell_backward", "gcd", "sudoku"])
def test_references_of_reasoning_gym_solve_and_other_answers_keep_their_score(dataset: str) -> None:
    needs_reasoning_gym()
    source = ReasoningGym(dataset=dataset)
    train, test = source.sample(random.Random(0), 8), source.held_out(4)
    assert not {t.goal for t in train} & {t.goal for t in test}
    right = play(source, train + test, lambda e: source.demonstrate(e.plan.task)[0])
    assert {(t.reward, t.length) for t in right} == {(1.0, 1)}
    (wrong,) = play(source, test[:1], lambda e: f"{source.demonstrate(e.plan.task)[0]} or so")
    score = re.fullmatch(r"score (0(\.\d+)?)", wrong.evidence["got"]["verdict"])
    assert wrong.reward == 0.0 and score is not None and float(score[1]) < 1


def test_settings_of_reasoning_gym_follow_the_difficulty_and_bad_ones_are_refused() -> None:
    needs_reasoning_gym()
    sizes: dict[str, Any] = {d: {"min_terms": n, "max_terms": n} for d, n in zip(DIFFICULTIES, (2, 4, 8), strict=True)}
    for task in ReasoningGym(dataset="chain_sum", **sizes).held_out(6):
        assert len(re.findall(r" [-+] ", task.goal)) + 1 == sizes[task.difficulty]["min_terms"]
    for source, said in (
        (ReasoningGym(dataset="chain_sun"), "did you mean 'chain_sum'"),
        (ReasoningGym(dataset="chain_sum", easy={"terms": 3}), "does not take the settings"),
        (ReasoningGym(dataset="countdown"), "executes"),
    ):
        with pytest.raises(TaskError, match=said):
            source.held_out(1)


def test_no_dataset_of_reasoning_gym_that_is_let_in_executes_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_reasoning_gym()
    from reasoning_gym.factory import DATASETS  # pyright: ignore[reportMissingImports]

    hit = "__import__('os').environ.__setitem__('EXECUTED', '1')"
    monkeypatch.setenv("EXECUTED", "0")
    for name in sorted(set(DATASETS) - EXECUTED):
        game = Entry(dataset=name, seed=1).start()
        for said in (hit, f"[{hit}]", f"[[{hit}]]"):
            game.act(Action("answer", text=said))
            assert os.environ["EXECUTED"] == "0", name
