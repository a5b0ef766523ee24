"""Learners: what each is known to choose, that a trial is one life of them, and what they do beside a policy."""

import random
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pytest

from longstride.core.budget import Budget
from longstride.core.component import build
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.envs.hidden import (
    Bandits,
    Corridors,
    DarkRooms,
    GaussianBandits,
    GaussianLinearBandits,
    LinearBandits,
)
from longstride.envs.puzzles import Mastermind
from longstride.rewards import TaskReward
from longstride.rollout import Plan, Pool, Trial
from longstride.rollout.players import ScriptedPlayer
from longstride.strategies import Strategy
from longstride.strategies.learners import (
    UCB,
    AnyChoice,
    Distracted,
    GaussianThompson,
    GreedyMean,
    LinUCB,
    OneOf,
    Optimal,
    PlayedBy,
    QLearning,
    Thompson,
    TrialLearner,
    taking_turns,
)


class Arms:
    """An environment of arms, as far as learners ask."""

    def __init__(self, names: str = "ab", features: Sequence[Sequence[float]] = ()) -> None:
        self._names, self._features = names, features

    def choices(self) -> Sequence[str]:
        return self._names

    def best(self) -> Sequence[str]:
        return self._names[-1]

    def features(self) -> Sequence[Sequence[float]]:
        return self._features


def chosen(
    learner: TrialLearner, told: Sequence[tuple[str, float]], env: Arms | None = None, times: int = 400
) -> list[str]:
    """What a learner chooses after it was told what choices earned, with so many seeds."""
    env = env or Arms()
    learning = learner.begin(env)
    for choice, reward in told:
        learning.saw("", choice, reward, "")
    return [learning.choose("", env, random.Random(k)) for k in range(times)]


def played(world: TaskSource, learner: TrialLearner, trials: int, episodes: int) -> list[Trajectory]:
    """Trials of a learner in a world."""
    trial = Trial(episodes=episodes, start="new")
    tasks = world.sample(random.Random(0), trials)
    plans = [
        Plan(task, n, n, Budget(turns=99, turn_tokens=4), trial=trial, after=tuple(range(k * episodes, n)))
        for k, task in enumerate(tasks)
        for n in range(k * episodes, (k + 1) * episodes)
    ]
    return Pool(ScriptedPlayer(taking_turns(learner)), world.env, TaskReward()).run(plans)


def by_place(trials: list[Trajectory]) -> list[float]:
    places = sorted({t.place for t in trials})
    return [float(np.mean([t.reward for t in trials if t.place == p])) for p in places]


def test_thompson_chooses_an_arm_as_often_as_it_is_best_in_its_posterior() -> None:
    # Beta(2, 1) against Beta(1, 1): P(first is better) = integral of x 2x dx = 2/3
    share = chosen(Thompson(), [("a", 1.0)], times=4000).count("a") / 4000
    assert share == pytest.approx(2 / 3, abs=0.03)


def test_gaussian_thompson_does_so_with_noise_of_a_known_deviation() -> None:
    # one pull of noise as wide as the prior: N(1, 1/2) against N(0, 1), and P(first is better) = Phi(1 / sqrt(1.5))
    learner = GaussianThompson(deviation=1.0, mean=0.0, variance=1.0)
    share = chosen(learner, [("a", 2.0)], times=4000).count("a") / 4000
    assert share == pytest.approx(NormalDist().cdf(1 / 1.5**0.5), abs=0.03)


def test_thompson_of_rewards_between_0_and_1_says_who_takes_others() -> None:
    with pytest.raises(ConfigError, match="a turn earned 1.2; take gaussian_thompson"):
        chosen(Thompson(), [("a", 1.2)])


def test_ucb_tries_all_arms_and_then_takes_the_highest_bound() -> None:
    assert set(chosen(UCB(), [("a", 1.0)])) == {"b"}
    # after a: 2 of 2, b: 0 of 1: 1 + c sqrt(ln 3 / 2) = 1 + .741 c, 0 + c sqrt(ln 3) = 1.048 c, equal at c = 3.26
    told = [("a", 1.0), ("a", 1.0), ("b", 0.0)]
    assert set(chosen(UCB(bonus=3.2), told)) == {"a"} and set(chosen(UCB(bonus=3.3), told)) == {"b"}
    assert set(chosen(GreedyMean(), told)) == {"a"}


def test_linucb_is_ridge_regression_with_a_bonus_for_what_is_unknown() -> None:
    features = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)]
    env, told = Arms("abc", features), [("a", 1.0), ("a", 1.0), ("b", 0.0)]
    x = np.hstack([np.array(features), np.ones((3, 1))])
    seen = x[[0, 0, 1]]
    a = 2.0 * np.eye(3) + seen.T @ seen
    theta = np.linalg.solve(a, seen.T @ np.array([1.0, 1.0, 0.0]))
    for bonus in (0.0, 0.5, 4.0):
        values = x @ theta + bonus * np.sqrt(np.einsum("ad,de,ae->a", x, np.linalg.inv(a), x))
        assert set(chosen(LinUCB(bonus=bonus, ridge=2.0), told, env)) == {"abc"[int(values.argmax())]}
    assert set(chosen(LinUCB(bonus=4.0, ridge=2.0), told, env)) == {"c"}


def test_q_learning_takes_over_what_comes_after_and_nothing_after_the_end() -> None:
    env = Arms()
    learning = QLearning(rate=0.5, discount=0.8, optimism=0.0).begin(env)
    learning.saw("y", "b", 1.0, None)
    learning.saw("x", "a", 0.0, "y")  # 0.5 * (0 + 0.8 * 0.5)
    assert learning._q["y"] == [0.0, 0.5] and learning._q["x"] == pytest.approx([0.2, 0.0])  # pyright: ignore[reportAttributeAccessIssue]
    assert learning.choose("x", env, random.Random(0)) == "a"


def test_a_distracted_learner_makes_any_choice_in_its_share_of_turns() -> None:
    share = chosen(Distracted(learner=Optimal(), share=0.4), [], times=4000).count("b") / 4000
    assert share == pytest.approx(0.6 + 0.4 / 2, abs=0.03)
    assert Distracted(learner=Thompson(), share=0.25).name == "thompson_0.25"


@pytest.mark.parametrize(
    ("world", "learner", "episodes"),
    [
        (Bandits(), Thompson(), 5),
        (GaussianBandits(), GaussianThompson(), 5),
        (LinearBandits(), LinUCB(), 4),
        (GaussianLinearBandits(), GaussianThompson(mean=0, variance=1), 5),
        (Corridors(), QLearning(), 9),
    ],
    ids=["bandits", "gaussian", "linear", "gaussian linear", "corridors"],
)
def test_a_learner_earns_more_in_later_episodes_of_a_trial(
    world: TaskSource, learner: TrialLearner, episodes: int
) -> None:
    earned, chance = (by_place(played(world, who, 40, episodes)) for who in (learner, AnyChoice()))
    assert earned[-1] > earned[0] and earned[-1] > chance[-1] + 0.1 * max(earned)


def test_an_episode_that_its_turns_cut_has_a_worth_after_it() -> None:
    """In a dark room a turn limit is no end: Q of the last cell looks ahead."""
    trials = played(DarkRooms(size=3, turns=4), QLearning(), 6, 12)
    assert by_place(trials)[-1] > by_place(trials)[0]


def test_who_knows_the_rule_wastes_nothing() -> None:
    assert by_place(played(Corridors(), Optimal(), 10, 2)) == [1.0, 1.0]


def test_a_learner_says_what_an_environment_lacks() -> None:
    with pytest.raises(ConfigError, match="has no `choices`"):
        Thompson().begin(Mastermind().env())
    with pytest.raises(ConfigError, match="gives none"):
        LinUCB().begin(Arms())


def test_a_strategy_named_by_its_learner_is_read_from_data() -> None:
    found = build(Strategy, {"type": "played_by", "learner": {"type": "ucb"}})
    assert found == PlayedBy(learner=UCB()) and found.name == "ucb"


def test_the_name_of_a_learner_says_what_is_not_by_default() -> None:
    assert UCB(bonus=9.0).name == "ucb_9_bonus" and QLearning().name == "q_learning"
    assert QLearning(rate=0.1, epsilon=0.2).name == "q_learning_0.1_rate_0.2_epsilon"
    assert OneOf(learners=(Thompson(), LinUCB()), weights=(1, 3)).name == "one_of_thompson_lin_ucb_1_3"
