"""The choice of a strategy on one fold of the tasks, tested on the other: what counts, and what is counted."""

from collections.abc import Mapping, Sequence

import pytest
from helpers import make_task, make_trajectory, make_turn

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.task import DIFFICULTIES
from longstride.core.trajectory import Trajectory
from longstride.rewards.scorers import Score
from longstride.rollout import Plan, ScriptedPlayer
from longstride.strategies import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.chosen import Chosen, folded
from longstride.strategies.delegate import Delegate
from longstride.strategies.searched import Guide

PLAYER = ScriptedPlayer(lambda _: "")


class Solves(Strategy):
    """Solves the tasks of some difficulties, in so many tokens."""

    difficulties: tuple[str, ...]
    tokens: int = 2

    @property
    def name(self) -> str:
        return f"solves_{'_'.join(self.difficulties)}_{self.tokens}"

    def run(self, plans: Sequence[Plan], player: object) -> EvalPlan:
        yield []
        found = []
        for plan in plans:
            t = make_trajectory([make_turn(range(self.tokens))], task=plan.task, ordinal=plan.ordinal)
            t.success = plan.task.difficulty in self.difficulties
            found.append(EvalEpisode(t, {"scored_tokens": 3}, 1, 3))
        return found


class LooksHard(Guide):
    """Scores by the length of a goal."""

    def __call__(self, solutions: Sequence[Trajectory], player: object) -> list[Score]:
        return [Score(1 / len(t.task.goal), 5, 7) for t in solutions]


def plans(each: int = 4) -> list[Plan]:
    tasks = [
        make_task(f"{d}{k}", difficulty=d, goal="g" * (1 + DIFFICULTIES.index(d)))
        for k in range(each)
        for d in DIFFICULTIES
    ]
    return [Plan(task, k, 10 + k, Budget(turns=1), group=k) for k, task in enumerate(tasks)]


def played(strategy: Strategy, of: Sequence[Plan]) -> list[EvalEpisode]:
    stages = strategy.run(of, PLAYER)
    try:
        stage = next(stages)
        while True:
            stage = stages.send([make_trajectory([make_turn([1])], task=p.task, ordinal=p.ordinal) for p in stage])
    except StopIteration as end:
        return end.value


def success(found: Sequence[EvalEpisode]) -> Mapping[str, float]:
    return {
        d: sum(e.trajectory.success for e in found if e.trajectory.task.difficulty == d)
        / sum(e.trajectory.task.difficulty == d for e in found)
        for d in DIFFICULTIES
    }


EASY, REST = Solves(difficulties=("easy",)), Solves(difficulties=("medium", "hard"))


def test_each_difficulty_is_tested_with_what_was_best_for_it_on_the_other_fold() -> None:
    found = played(Chosen(strategies=(EASY, REST)), plans())
    assert success(found) == dict.fromkeys(DIFFICULTIES, 1.0)
    assert [e.measures["chosen"] for e in found[:3]] == [0, 1, 1]
    one = played(Chosen(strategies=(EASY, REST), by_difficulty=False), plans())
    assert success(one) == {"easy": 0.0, "medium": 1.0, "hard": 1.0}


def test_a_task_that_failed_under_one_of_them_decides_for_none() -> None:
    class Breaks(Solves):
        def run(self, plans: Sequence[Plan], player: object) -> EvalPlan:
            found = yield from super().run(plans, player)
            for e in found[: 3 * len(found) // 4]:
                e.trajectory.stop, e.trajectory.success = StopReason.INFRA_FAILURE, False
            return found

    some = Solves(difficulties=("easy",))
    found = played(Chosen(strategies=(some, Breaks(difficulties=DIFFICULTIES)), by_difficulty=False), plans(16))
    assert {e.measures["chosen"] for e in found} == {1}


def test_what_counts_was_chosen_on_other_tasks() -> None:
    """One strategy solves the first fold alone: it is tested on the second."""

    class First(Solves):
        def run(self, plans: Sequence[Plan], player: object) -> EvalPlan:
            found = yield from super().run(plans, player)
            for k, e in enumerate(found):
                e.trajectory.success = k < 3
            return found

    other = Solves(difficulties=(), tokens=3)
    found = played(Chosen(strategies=(other, First(difficulties=()))), plans(2))
    assert not any(e.trajectory.success for e in found) and [e.measures["chosen"] for e in found] == [0] * 3 + [1] * 3


def test_a_budget_leaves_out_what_took_more_and_the_thriftiest_stays() -> None:
    dear = Solves(difficulties=DIFFICULTIES, tokens=90)
    within = lambda n: success(played(Chosen(strategies=(EASY, dear), budget_tokens=n), plans()))["hard"]  # noqa: E731
    assert within(94) == 1 and within(93) == 0 and within(1) == 0


def test_a_predicted_difficulty_comes_of_answers_whose_tokens_are_counted() -> None:
    predicted = Chosen(strategies=(EASY, REST), predicted_by=LooksHard(), probes=2)
    found = played(predicted, plans())
    assert success(found) == dict.fromkeys(DIFFICULTIES, 1.0)
    # of the strategy 2 + 1 and 3 that its guide read; two probes of a token, each scored with 5 sampled and 7 read
    assert {(e.spent_tokens, e.total_tokens, e.measures["scored_tokens"]) for e in found} == {(15, 32, 27)}
    assert {e.measures["tried_tokens"] for e in found} == {2 * 6 + 2 * 13}


def test_all_attempts_of_a_task_are_in_one_fold_and_kinds_are_shared_out_evenly() -> None:
    assert folded([0, 1, 2, 3, 0, 1, 2, 3], [0, 0, 1, 0] * 2) == [0, 1, 0, 0] * 2


def test_names_differ_and_what_has_players_of_its_own_is_refused() -> None:
    both = Chosen(strategies=(EASY, REST))
    changes = ({}, {"by_difficulty": False}, {"predicted_by": LooksHard()}, {"budget_tokens": 9})
    assert len({both.replace(**change).name for change in changes}) == 4
    data = {"type": "chosen", "strategies": [{"type": "direct", "turns": 3}, {"type": "best_of"}]}
    with pytest.raises(ConfigError, match="of its own; they cannot be mixed"):
        build(Strategy, data)
    with pytest.raises(ConfigError, match="of its own"):
        both.replace(strategies=(EASY, Delegate(model="m")))
