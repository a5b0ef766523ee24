"""RISE: whose attempts become histories, what is imitated of a group and how much, what is measured of attempts, and
that a run which was stopped goes on to the same bits."""

import itertools
import json
import random
from collections.abc import Callable, Sequence
from math import comb, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import rows_of

from longstride.claims.pilot import check_pilot
from longstride.core.budget import Budget, StopReason
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn, by_group
from longstride.curriculum import Uniform
from longstride.envs.base import TaskSource
from longstride.envs.puzzles import ModularChain, Puzzles
from longstride.envs.text import AGAIN
from longstride.exact.worlds.tabular import EnumerableMDP, bandit
from longstride.methods import OnPolicy
from longstride.papers.rise.method import After, BestOfGroup, Introspection, ParallelAttempts
from longstride.papers.rise.recipe import CLAIM, RECIPE
from longstride.rewards import Attempts, TaskReward
from longstride.rewards.attempts import scores
from longstride.rollout.context import Past, RecentTurns
from longstride.rollout.episode import Episode, Plan
from longstride.rollout.planning import Planner
from longstride.rollout.players import ScriptedPlayer
from longstride.rollout.pool import Pool
from longstride.run.loop import train
from longstride.run.policies import load_run
from longstride.run.recipe import Recipe

PUZZLES = Puzzles(sources=(ModularChain(),))
SOURCE = Attempts(attempts=5, tasks=PUZZLES)
WRONG = "Action: answer 99"


def attempt(
    reward: float, group: int = 0, ids: Sequence[int] = (7,), task: str = "t", ordinal: int = 0, before: int = 0
) -> Trajectory:
    """An episode whose last turn is an attempt with this score, after so many others that failed."""
    past = [Turn([1], [], [], [], "", "", given=1) for _ in range(before)]
    turn = Turn([1, 2], list(ids), [-1.0] * len(ids), [0] * len(ids), "", "", reward=reward)
    trajectory = Trajectory(Task(id=task, source="s", goal="g", start="s"), ordinal, 0, Budget(), [*past, turn])
    trajectory.group, trajectory.reward, trajectory.success = group, reward, reward > 0
    trajectory.history, trajectory.stop = before, StopReason.ANSWERED
    return trajectory


# what is imitated


def test_the_best_attempt_of_each_group_weighs_as_its_reward_says_over_its_tokens() -> None:
    groups = [
        attempt(0, 0, (1, 2), ordinal=0),
        attempt(1, 0, (3, 4), ordinal=1),
        attempt(1, 0, (5,), ordinal=2),
        attempt(0, 1, (6, 7, 8, 9), ordinal=3, before=1),
        attempt(0, 1, (1,), ordinal=4, before=1),
    ]
    samples = BestOfGroup(temperature=0.4)(groups)
    assert [(s.episode, s.sampled_ids, s.turn) for s in samples] == [(1, [3, 4], 0), (3, [6, 7, 8, 9], 1)]
    assert samples[0].advantages == pytest.approx([exp(2.5) / 2] * 2)
    assert samples[1].advantages == pytest.approx([1 / 4] * 4)


def test_centred_a_prompt_is_held_against_the_mean_of_all_attempts_at_it() -> None:
    groups = [
        *(attempt(r, 0, task="easy", ordinal=n) for n, r in enumerate((1, 1, 0, 1))),
        *(attempt(r, 1, task="hard", ordinal=4 + n) for n, r in enumerate((0, 0))),
        *(attempt(r, 2, task="hard", ordinal=6 + n, before=1) for n, r in enumerate((0, 1))),
    ]
    weights = [s.advantages[0] for s in BestOfGroup(temperature=0.5, centred=True)(groups)]
    assert weights == pytest.approx([exp(0.25 / 0.5), exp(-0.25 / 0.5), exp(0.75 / 0.5)])


def test_an_attempt_that_infrastructure_ended_or_without_tokens_is_not_imitated() -> None:
    lost, silent = attempt(1, 0, ordinal=0), attempt(1, 1, ids=(), ordinal=2)
    lost.stop = StopReason.INFRA_FAILURE
    samples = BestOfGroup(centred=True)([lost, attempt(0, 0, ordinal=1), silent])
    assert [s.episode for s in samples] == [1]
    assert samples[0].advantages == pytest.approx([exp(-0.5 / 0.4)])  # of the mean of 0 and 1: the lost one is in none


def expected_gradient(credit: BestOfGroup, problem: EnumerableMDP, logits: np.ndarray, n: int) -> np.ndarray:
    """Over all groups of n attempts at a bandit: the mean of weight times gradient of the log-probability."""
    paths, total = list(problem.trajectories(logits)), np.zeros_like(logits)
    for group in itertools.product(paths, repeat=n):
        p = np.prod([path.probability for path in group])
        episodes = [attempt(path.rewards[0], ids=path.actions, ordinal=k) for k, path in enumerate(group)]
        for s in credit(episodes):
            total += p * s.advantages[0] * problem.score(logits, group[s.episode])
    return total


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("centred", [False, True])
def test_the_expected_gradient_is_that_of_success_times_the_factor_that_is_documented(n: int, centred: bool) -> None:
    problem, logits, tau = bandit([1.0, 0.0, 1.0, 0.0]), np.array([[0.3, -0.2, -1.0, 0.8]]), 0.7
    p = problem.expected_return(logits)
    q = 1 - p
    found = expected_gradient(BestOfGroup(temperature=tau, centred=centred), problem, logits, n)
    if centred:  # k of n attempts are right, and their mean is taken off
        right = sum(comb(n, k) * p**k * q ** (n - k) * exp((1 - k / n) / tau) for k in range(1, n + 1))
    else:
        right = exp(1 / tau) * (1 - q**n)
    np.testing.assert_allclose(found, (right / p - q ** (n - 1)) * problem.gradient(logits), atol=1e-12)


# whose attempts become histories


def play(plans: Sequence[Plan], say: Callable[[Episode], str], source: TaskSource = SOURCE) -> list[Trajectory]:
    return Pool(ScriptedPlayer(say), source.env, TaskReward()).run(list(plans))


def right(episode: Episode) -> str:
    return PUZZLES.demonstrate(episode.plan.task)[0]


def planner(episodes: int, size: int) -> Planner:
    nothing: Any = None
    return Planner(
        SOURCE, Uniform(), nothing, OnPolicy(), lambda task: Budget(turns=5), nothing, 0, 1, 0, episodes, size
    )


def introspect(
    say: Callable[[Episode], str], attempts: int = 3, episodes: int = 12
) -> tuple[list[list[Plan]], list[Trajectory]]:
    stages = Introspection(attempts=attempts).plan(planner(episodes, 3))
    plans = [list(next(stages))]
    while True:
        try:
            plans.append(list(stages.send(play(plans[-1], say))))
        except StopIteration as e:
            return plans, e.value


def test_the_history_is_the_first_members_own_failed_attempts_and_a_success_ends_it() -> None:
    def say(episode: Episode) -> str:
        number, first = len(episode.plan.history), episode.plan.ordinal == episode.plan.group
        solved = episode.plan.task.id in easy and first or number == 1 and not first
        return right(episode) if solved else f"Thought: {episode.plan.ordinal} Action: answer 99"

    easy = {plan.task.id for plan in next(Introspection().plan(planner(12, 3)))[:6]}
    stages, played = introspect(say)
    assert [len(stage) for stage in stages] == [12, 6, 6]  # two of four tasks are solved by their first member
    assert [t.ordinal for t in played] == list(range(24))
    texts = {t.ordinal: t.turns[-1].text for t in played}
    for number, stage in enumerate(stages):
        assert {plan.role for plan in stage} == {f"attempt_{number + 1}"}
        assert {plan.task.horizon for plan in stage} == {number + 1}
        for plan in stage:
            leaders = [s.group for s in itertools.chain(*stages[:number]) if s.task.id == plan.task.id]
            assert [past.text for past in plan.history] == [texts[n] for n in dict.fromkeys(leaders)]
            assert plan.task.id not in easy or number == 0
            worlds = {p.task.id: p.seed for p in stages[0]}
            assert plan.env_seed == (worlds[plan.task.id] if number else None)
    for t in played:
        assert t.length == t.history + 1 and t.stop is StopReason.ANSWERED
        assert t.success == bool(t.reward) == (t.turns[-1].text == PUZZLES.demonstrate(t.task)[0])
    assert [len(group) for group in by_group(played)] == [3] * 8


def test_where_all_are_solved_no_further_attempts_are_made() -> None:
    stages, played = introspect(right)
    assert len(stages) == 1
    assert len(played) == 12


def test_a_task_with_a_horizon_is_attempted_that_many_times_and_its_last_attempt_is_judged() -> None:
    task = SOURCE.sample(random.Random(0), 1)[0]
    for horizon, lengths in ((None, 5), (1, 1), (3, 3), (9, 5)):
        limited = task.model_copy(update={"horizon": horizon})
        t = play([Plan(limited, 0, 0, Budget(turns=9))], lambda e: right(e) if e.turns in (0, 2, 4) else WRONG)[0]
        assert t.length == lengths
        assert (t.stop, t.success, t.reward) == (StopReason.ANSWERED, True, 1.0)
        assert scores(t) == [1.0, 0.0, 1.0, 0.0, 1.0][:lengths]
        assert all(AGAIN in turn.observation for turn in t.turns[1:])


@pytest.mark.parametrize("source", [SOURCE.tasks, SOURCE.replace(attempts=2)])
def test_tasks_that_a_history_ends_are_refused(source: TaskSource) -> None:
    stages = Introspection().plan(planner(6, 3))
    plans = next(stages)
    with pytest.raises(ConfigError, match="over after . of . attempts: set tasks.type=attempts"):
        while True:
            plans = stages.send(play(plans, lambda e: WRONG, source))


# what is read and measured


class Chat:
    """Stands for a chat format: ids that say what they are."""

    end_ids = frozenset({9})
    close = [9]

    def head(self, goal: str) -> list[int]:
        return [1]

    def observation(self, text: str, first: bool = False, past: bool = False) -> list[int]:
        return [100 + int(text)] if first else [200 + int(text)]

    def spoken(self, ids: list[int]) -> list[int]:
        return ids if ids[-1] in self.end_ids else ids + self.close


def test_the_window_keeps_the_task_the_newest_attempts_and_what_followed_them() -> None:
    chat: Any = Chat()
    seen, said = ["0", "1", "2", "3"], [[11, 9], [12], [13, 9]]
    for keep, prompt in (
        (1, [1, 100, 13, 9, 203]),
        (2, [1, 100, 12, 9, 202, 13, 9, 203]),
        (3, [1, 100, 11, 9, 201, 12, 9, 202, 13, 9, 203]),
        (9, [1, 100, 11, 9, 201, 12, 9, 202, 13, 9, 203]),
    ):
        assert RecentTurns(keep=keep).render(chat, Past("g", seen, said)) == prompt
    assert RecentTurns(keep=1).render(chat, Past("g", seen[:1], [])) == [1, 100]


@pytest.mark.parametrize(
    ("answers", "right_ones", "last", "majority", "any_of_them"),
    [
        ("aabbc", "b", 0, 1, 1),  # a and b have two votes each, and b is newer
        ("abaac", "a", 0, 1, 1),
        ("abbba", "a", 1, 0, 1),
        ("abcde", "e", 1, 1, 1),  # one vote each: the newest
        ("abcde", "", 0, 0, 0),
    ],
)
def test_the_last_the_most_frequent_and_any_attempt(
    answers: str, right_ones: str, last: int, majority: int, any_of_them: int
) -> None:
    attempts = [(a, float(a in right_ones)) for a in answers]
    measures = After(attempts=5, by="last"), After(attempts=5, by="majority"), After(attempts=5, by="any")
    assert [measure.of(attempts) for measure in measures] == [last, majority, any_of_them]
    assert After(attempts=1, by="majority").of(attempts) == float(answers[0] in right_ones)
    assert After(attempts=2, by="any").of(attempts) == max(score for _, score in attempts[:2])
    assert After(attempts=5, by="any").of([]) == 0
    assert After(attempts=3, by="majority").of([("a", 1.0), (None, 0.0), (None, 0.0)]) == 1


def test_measures_of_one_class_stand_side_by_side_and_two_of_one_name_are_refused() -> None:
    names = [measure.name for measure in RECIPE.evaluation.measures]
    assert names == ["last_1", "last_2", "last_3", "last_4", "last_5", "majority_5", "any_5"]
    with pytest.raises(ConfigError, match="two of them are called 'any_5'"):
        RECIPE.replace(evaluation={"measures": (After(attempts=5, by="any"),) * 2})


def test_parallel_attempts_are_first_ones_each_with_a_seed_of_its_own_and_voted_on() -> None:
    tasks = SOURCE.held_out(2)
    plans = [Plan(task, k, 40 + k, Budget(turns=5), k) for k, task in enumerate(tasks)]
    run = ParallelAttempts().run(plans, ScriptedPlayer(right))
    asked = list(next(run))
    assert len({plan.ordinal for plan in asked}) == 10
    assert list(next(ParallelAttempts().run(plans[1:], ScriptedPlayer(right)))) == asked[5:], "whatever else is played"
    solved = {0: (0, 1, 2), 1: (4,)}  # which of the five attempts at each task are right
    numbers = {plan.ordinal: n % 5 for n, plan in enumerate(asked)}
    found = play(asked, lambda e: right(e) if numbers[e.plan.ordinal] in solved[e.plan.group] else WRONG)
    for n, t in enumerate(found, 1):
        t.turns[0].sampled_ids = [0] * n
    with pytest.raises(StopIteration) as end:
        run.send(found)
    assert [e.trajectory.ordinal for e in end.value.value] == [0, 1]
    assert [e.measures for e in end.value.value] == [{"majority_5": 1, "any_5": 1}, {"majority_5": 0, "any_5": 1}]
    assert [e.spent_tokens for e in end.value.value] == [1 + 2 + 3 + 4 + 5, 6 + 7 + 8 + 9 + 10]
    found[3].stop = StopReason.INFRA_FAILURE
    assert ParallelAttempts().measures(found[:5]) == {"majority_5": None, "any_5": None}


# the run


def test_arms_differ_in_what_follows_a_first_attempt() -> None:
    assert CLAIM.changes("rise") == {}
    assert CLAIM.changes("first_attempts") == {"episodes_per_iteration": 960, "sampler.attempts": 1}


def test_a_run_that_was_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    recipe = RECIPE.replace(
        iterations=2,
        episodes_per_iteration=8,
        tasks=SOURCE,
        learner={"batch_samples": 4},
        evaluation={"tasks": 2, "every": 2},
    )
    train(recipe, tmp_path / "whole")
    train(recipe.replace(iterations=1), tmp_path / "cut")
    train(recipe, tmp_path / "cut", resume=True)
    assert rows_of(tmp_path / "whole")[-1] == rows_of(tmp_path / "cut")[-1]
    stories = [(tmp_path / name / "trajectories.jsonl").read_text() for name in ("whole", "cut")]
    told = [
        [(d["ordinal"], d["role"], [t["ids"] for t in d["turns"]]) for d in map(json.loads, s.splitlines())]
        for s in stories
    ]
    assert told[0] == told[1]
    assert {role for _, role, _ in told[0]} == {"attempt_1", "attempt_2", "attempt_3"}
    one, other = (load_run(tmp_path / name)[1].model.state_dict() for name in ("whole", "cut"))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_the_claim_can_be_frozen_and_read_at_equal_cost() -> None:
    check_pilot(CLAIM)
    for arm in CLAIM.arms.values():
        assert isinstance(arm, Recipe) and arm.iterations >= 2 * arm.evaluation.every
