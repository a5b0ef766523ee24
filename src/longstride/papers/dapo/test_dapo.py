"""DAPO: the length punishment, the filter of cut answers, and groups until the batch is full of mixed ones."""

from types import SimpleNamespace
from typing import Any

import pytest

from longstride.core.budget import Budget, StopReason
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.papers.dapo.method import OverlongFiltered, SoftOverlong
from longstride.papers.dapo.recipe import RECIPE
from longstride.rollout import DynamicSampling
from longstride.rollout.episode import Plan, set_verdict

TASK = Task(id="t", source="s", goal="g", start="start", evaluator={"type": "answer", "reference": "4"})


def answer(
    tokens: int, right: bool, group: int = 0, ordinal: int = 0, stop: StopReason = StopReason.ANSWERED
) -> Trajectory:
    """A single-turn episode of so many tokens, as it is before it is scored."""
    turn = Turn([1], [2] * tokens, [-0.5] * tokens, [0] * tokens, observation="", text="", action="answer 4")
    said = None if stop.truncated else "4" if right else "5"
    return Trajectory(TASK, ordinal, 0, Budget(turn_tokens=100), [turn], stop, said, success=right, group=group)


@pytest.mark.parametrize(
    ("tokens", "punishment"), [(10, 0.0), (80, 0.0), (85, -0.25), (90, -0.5), (100, -1.0), (120, -1.0)]
)
def test_the_punishment_rises_in_a_line_over_the_last_tokens_of_the_limit(tokens: int, punishment: float) -> None:
    for right in (True, False):
        verdict = SoftOverlong(cache=20)(answer(tokens, right), {}, seed=0)
        assert verdict.terms == {"outcome": 1.0 if right else -1.0, "overlong": pytest.approx(punishment)}
        assert verdict.reward == pytest.approx(sum(verdict.terms.values()))
        assert verdict.success is right


def test_a_cut_answer_is_wrong_and_beyond_the_limit_however_short_it_is() -> None:
    verdict = SoftOverlong(cache=20)(answer(5, False, stop=StopReason.TOKENS), {}, seed=0)
    assert verdict.reward == -2.0
    assert not verdict.success


def test_a_budget_for_the_whole_episode_is_the_limit_where_it_is_smaller() -> None:
    short = answer(45, True)
    short.budget = Budget(turn_tokens=100, tokens=50)
    assert SoftOverlong(cache=10)(short, {}, seed=0).terms["overlong"] == pytest.approx(-0.5)


@pytest.mark.parametrize(
    ("turns", "tokens", "punishment"), [((10,) * 24, 0, 0.0), ((10, 85, 10), 0, -0.25), ((10, 85, 10), 110, -0.75)]
)
def test_each_turn_has_the_limit_of_a_turn_and_their_sum_that_of_an_episode(
    turns: tuple[int, ...], tokens: int, punishment: float
) -> None:
    long = answer(0, True)
    long.budget = Budget(turns=24, turn_tokens=100, tokens=tokens or None)
    long.turns = [turn for n in turns for turn in answer(n, True).turns]
    assert SoftOverlong(cache=20)(long, {}, seed=0).terms["overlong"] == pytest.approx(punishment)


def test_an_answer_that_the_environment_paid_earns_1() -> None:
    t = answer(10, True)
    t.task, t.turns[0].reward = TASK.model_copy(update={"evaluator": {}}), 1.0
    set_verdict(t, SoftOverlong(cache=20)(t, {}, seed=0))
    assert t.reward == 1.0 and t.success


def test_cut_answers_are_not_trained_and_count_in_the_mean_of_their_group() -> None:
    group = [answer(5, True, 0, 0), answer(6, False, 0, 1), answer(100, False, 0, 2, StopReason.TOKENS)]
    for t, reward in zip(group, (1.0, -1.0, -2.0), strict=True):
        t.reward = reward
    samples = OverlongFiltered(normalize="none")(group)
    assert [s.episode for s in samples] == [0, 1]
    assert samples[0].advantages == pytest.approx([1 + 2 / 3] * 5)
    assert samples[1].advantages == pytest.approx([-1 + 2 / 3] * 6)


def test_a_group_of_right_answers_teaches_nothing_though_their_lengths_are_paid_differently() -> None:
    group = [answer(5, True, 0, 0), answer(95, True, 0, 1)]
    group[0].reward, group[1].reward = 1.0, 0.25
    assert not RECIPE.replay.teaches([t.record() for t in group])
    assert RECIPE.replay.teaches([t.record() for t in [*group, answer(5, False)]])


class Groups:
    """Stands for a planner: tasks are numbers, and a group is two plans."""

    groups = 3

    def teaches(self, group: list[Trajectory]) -> bool:
        return RECIPE.replay.teaches([t.record() for t in group])

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.made = 0

    def tasks(self, n: int) -> list[Any]:
        self.asked.append(n)
        return list(range(n))

    def group(self, task: Any) -> list[Plan]:
        self.made += 1
        return [SimpleNamespace(task=task, group=self.made - 1)] * 2  # pyright: ignore[reportReturnType]


def test_as_many_groups_are_drawn_again_as_were_not_mixed_until_the_batch_is_full() -> None:
    planner: Any = Groups()
    stages = DynamicSampling(rounds=5).plan(planner)
    assert len(next(stages)) == 6
    one_mixed = [answer(1, True, 0), answer(1, False, 0), *(answer(1, True, g) for g in (1, 1, 2, 2))]
    assert len(stages.send(one_mixed)) == 4
    two_mixed = [answer(1, right, g) for g in (3, 4) for right in (True, False)]
    with pytest.raises(StopIteration) as end:
        stages.send(two_mixed)
    assert planner.asked == [3, 2]
    assert end.value.value == one_mixed + two_mixed


def test_it_gives_up_after_its_rounds() -> None:
    stages = DynamicSampling(rounds=2).plan(Groups())  # pyright: ignore[reportArgumentType]
    next(stages)
    alike = [answer(1, False, g) for g in (0, 0, 1, 1, 2, 2)]
    stages.send(alike)
    with pytest.raises(StopIteration) as end:
        stages.send(alike)
    assert len(end.value.value) == 12


def test_the_punished_tokens_are_the_last_fifth_of_the_limit_as_in_the_paper() -> None:
    assert isinstance(RECIPE.reward, SoftOverlong)
    assert RECIPE.reward.cache == 32
    assert RECIPE.budget.at(1, "easy").turn_tokens == 5 * 32  # 20,480 and 4,096
