"""What one of several processes does of the work that they share; the others are played by the test."""

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Usage
from longstride.learner import parallel
from longstride.methods.base import Sample, demonstration
from longstride.rewards import Reward, Verdict
from longstride.run import teachers
from longstride.run.imitation import Imitation, ModelSuccesses
from longstride.run.loop import compare
from longstride.run.session import Session

TASK = Task(id="a", source="test", goal="say yes", start="")


class Asked(Reward):
    """A judge of whole groups."""

    groups: list[int]

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        return Verdict(0.0, False)

    def compare(self, group: Sequence[Trajectory]) -> list[Verdict]:
        self.groups.append(group[0].group)
        return [Verdict(1.0, True) for _ in group]


@pytest.fixture
def first_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process has every second item, from the first on; the other one says `judge` of each of its own."""

    def unscatter(share: Sequence[Any]) -> list[Any]:
        return [item for mine in share for item in (mine, "judge")]

    monkeypatch.setattr(parallel, "scatter", lambda items: list(items[::2]))
    monkeypatch.setattr(parallel, "unscatter", unscatter)
    monkeypatch.setattr(parallel, "broadcast", lambda make: [make(), "of the first"][1])


def test_each_group_is_compared_by_one_process(first_of_two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    took, of_other = [Usage(1, read=9), None], ("judge", [Usage(1, read=9), None])
    monkeypatch.setattr(parallel, "unscatter", lambda share: [item for mine in share for item in (mine, of_other)])
    episodes = [
        Trajectory(TASK, n, 0, Budget(turns=1), stop=StopReason.ANSWERED, group=n // 2 * 2, answer="yes")
        for n in range(8)
    ]
    reward = Asked(groups=[])
    compare(reward, episodes)
    assert reward.groups == [0, 4]
    assert [t.success for t in episodes] == [True, True, False, False] * 2
    assert [t.evidence.get("failure") for t in episodes] == [None, None, "judge", "judge"] * 2
    assert [t.judge_usage for t in episodes[2:4]] == took, "what another process paid is known here"


def test_a_teacher_plays_a_share_in_each_process(first_of_two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    pool = SimpleNamespace(run=lambda plans: asked.extend(plans) or [SimpleNamespace(success=True, stop=None)] * 2)
    recipe: Any = SimpleNamespace(
        env=None, test_reward=None, tasks=SimpleNamespace(at_once=1), pool=None, model_copy=lambda update: None
    )
    monkeypatch.setattr(teachers, "_loaded", lambda model, recipe: None)
    monkeypatch.setattr(teachers, "language_player", lambda teacher, recipe: None)
    monkeypatch.setattr(teachers, "Pool", lambda *args: pool)
    monkeypatch.setattr(teachers, "training_plans", lambda recipe, episodes, rng: list(range(episodes)))
    monkeypatch.setattr(parallel, "unscatter", lambda share: [])
    assert teachers.taught(ModelSuccesses(model="m"), recipe, None, 4, random.Random(0)) == []  # pyright: ignore
    assert asked == [0, 2]


def test_all_processes_imitate_what_the_first_one_has(first_of_two: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*_: Any) -> list[Sample]:
        return [demonstration([1], [2])]

    monkeypatch.setattr(ModelSuccesses, "of_policy", said)
    session: Any = SimpleNamespace(recipe=None)
    what, policy = Imitation(demonstrations=ModelSuccesses(model="m")), SimpleNamespace(max_context=2)
    found: Any = Session._demonstrated(session, what, policy, random.Random(0))  # pyright: ignore
    assert found == "of the first"
