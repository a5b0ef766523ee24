"""SCoRe: credit for attempts by hand and its exact expected gradient, the KL term by turn, and the two stages."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from estimators import all_of, episode_of, weighted_scores
from helpers import make_trajectory, make_turn, rows_of, trajectories_of

from longstride.core.budget import StopReason
from longstride.core.component import build
from longstride.core.content import described
from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.exact.worlds.tabular import EnumerableMDP
from longstride.methods import Credit, Sample
from longstride.methods.base import ADVANTAGES
from longstride.methods.kl import KL
from longstride.methods.losses import KL_COEFFICIENT
from longstride.papers.score.method import AttemptCredit, Gain, KLByTurn
from longstride.papers.score.recipe import BONUS, RECIPE
from longstride.rewards.attempts import scores


def scored(episode: Trajectory, r: tuple[float, ...]) -> Trajectory:
    """An episode whose attempts have these scores, as `rewards.Attempts` rewards them."""
    earned = [r[0], *(b - a for a, b in pairwise(r))]
    earned[-1] -= r[-1]  # the evaluator's part
    for turn, reward in zip(episode.turns, earned, strict=True):
        turn.reward = reward
    episode.reward = r[-1]
    return episode


def attempts(*r: float, group: int = 0, ids: tuple[tuple[int, ...], ...] = (), **fields: Any) -> Trajectory:
    turns = [make_turn(ids[k] if ids else (1,), [k]) for k in range(len(r))]
    return scored(make_trajectory(turns, group=group, **fields), r)


def advantages(credit: Credit, episodes: list[Trajectory]) -> list[list[float]]:
    return [s.advantages for s in credit(episodes)]


def test_the_score_of_an_attempt_is_what_was_earned_by_then_and_the_last_is_the_reward():
    for r in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (1.0, 0.0, 1.0), (1.0,)):
        assert scores(attempts(*r)) == list(r)
    assert scores(make_trajectory([], reward=1.0)) == []


def test_rewards_of_attempts_by_hand():
    for credit, r, rewards in (
        (AttemptCredit(), (1, 0), [1, 0]),
        (AttemptCredit(bonus=10), (1, 0), [1, -10]),
        (AttemptCredit(bonus=10), (0, 1), [0, 11]),
        (AttemptCredit(bonus=10), (1, 1), [1, 1]),
        (AttemptCredit(bonus=2, first=0.5), (1, 0, 1), [0.5, -2, 3]),
    ):
        assert credit.rewards(attempts(*r)) == rewards


def test_an_attempt_is_compared_with_those_of_its_number_in_its_group():
    group = [attempts(1, 0), attempts(0, 1), attempts(0, 0), attempts(1, 1, group=1), attempts(0, 1, group=1)]
    # R_2 = -1, 2, 0 in the first group, 1, 2 in the other
    found = advantages(AttemptCredit(bonus=1), group)
    assert [a for (a,) in found] == pytest.approx([1, -2, -0.5, 2.5, -0.5, -0.5, 1, -1, -1, 1])
    second_alone = advantages(AttemptCredit(first=0, baseline="mean"), group)
    assert [a for (a,) in second_alone] == pytest.approx([0, -1 / 3, 0, 2 / 3, 0, -1 / 3, 0, 0, 0, 0])


@pytest.mark.parametrize("stop", [StopReason.ANSWERED, StopReason.TURNS])
def test_an_episode_of_one_attempt_is_refused_unless_something_else_cut_it(stop: StopReason):
    with pytest.raises(ConfigError, match="over after 1 of 2 attempts: set tasks.type=attempts"):
        AttemptCredit(first=0)([attempts(0, 1), attempts(1, stop=stop)])
    assert AttemptCredit()([attempts(1, stop=StopReason.TOKENS), attempts(1, 1)])


def test_all_tokens_of_an_attempt_share_its_advantage_and_turns_without_tokens_are_no_samples():
    episodes = [attempts(1, 1, ids=((4, 5), (6,))), attempts(0, 1, ids=((4, 5), ()))]
    found = [(s.sampled_ids, s.advantages, s.turn) for s in AttemptCredit(baseline="none")(episodes)]
    assert found == [([4, 5], [1, 1], 0), ([6], [1], 1), ([4, 5], [0, 0], 0)]
    failed, counted = attempts(1, 1, stop=StopReason.INFRA_FAILURE), [attempts(0, 1), attempts(1, 1)]
    assert AttemptCredit()([failed, *counted]) == AttemptCredit()(counted)


def two_attempts() -> tuple[EnumerableMDP, np.ndarray]:
    """State 0 is the first attempt, whose action leads to state 1 or 2, the second one; rewards are scores."""
    moves = np.zeros((4, 2, 4))
    moves[0, 0, 1] = moves[0, 1, 2] = moves[1:, :, 3] = 1
    score = np.array([[1.0, 0.0], [0.3, 0.9], [0.8, 0.1], [0.0, 0.0]])
    logits = np.random.default_rng(5).normal(size=(4, 2))
    return EnumerableMDP(moves, score, np.eye(4)[0], np.arange(4) == 3, horizon=2), logits


@pytest.mark.parametrize(
    ("credit", "n", "first", "second"),
    [
        (AttemptCredit(baseline="none"), 1, 1, 1),
        (AttemptCredit(baseline="none", bonus=4), 1, 1, 5),
        (AttemptCredit(first=0), 2, 0, 1),
        (AttemptCredit(bonus=10), 2, 1, 11),
        (AttemptCredit(bonus=2), 3, 1, 3),
        (AttemptCredit(bonus=10, baseline="mean"), 3, 2 / 3, 2 / 3 * 11),
    ],
)
def test_the_expected_gradient_is_that_of_each_attempts_own_score(credit, n: int, first: float, second: float):
    problem, logits = two_attempts()
    policy, found = problem.policy(logits), np.zeros_like(logits)
    for paths, chance in all_of(*[list(problem.trajectories(logits))] * n):
        episodes = [scored(episode_of(path, ordinal=k), path.rewards) for k, path in enumerate(paths)]
        found += chance * weighted_scores(policy, credit(episodes)) / n
    # of one state on its own: probability of being there times pi (score - its mean)
    visits_S = np.array([1.0, *policy[0], 0.0])
    own = visits_S[:, None] * policy * (problem.rewards - (policy * problem.rewards).sum(1, keepdims=True))
    expected = own * np.array([first, second, second, 0.0])[:, None]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_kl_coefficient_goes_by_the_turn_and_the_last_one_stays():
    turns = [Sample([0], [1], {ADVANTAGES: [0.0]}, turn=k) for k in (0, 1, 2, 9)]
    held = RECIPE.loss.replace(kl=KLByTurn(coefficient=0.5, by_turn=(1.0, 0.2, 0.0)))
    assert held.coefficients(turns) == {KL_COEFFICIENT: [0.5, 0.1, 0, 0]}
    with pytest.raises(ConfigError, match="by_turn: Tuple should have at least 1 item"):
        held.replace(kl={"by_turn": ()})


def test_the_first_stage_credits_second_attempts_alone_and_holds_first_ones():
    first, second = RECIPE.at(1), RECIPE.at(RECIPE.objectives[0].after + 1)
    for stage, credited, held in (
        (first, AttemptCredit(first=0.0), (True, False)),
        (second, AttemptCredit(bonus=BONUS), (True, True)),
    ):
        assert stage.credit == credited and stage.loss.kl is not None
        assert tuple(stage.loss.kl.at(turn) > 0 for turn in (0, 1)) == held


def test_the_gain_is_what_later_attempts_changed():
    assert [Gain()(attempts(*r)) for r in ((0, 1), (1, 1), (1, 0))] == [1, 0, -1]
    assert Gain()(make_trajectory([])) == 0


def test_a_run_plays_two_attempts_and_is_held_to_where_it_started(tmp_path):
    changes = {"episodes_per_iteration": 8, "group_size": 4, "evaluation": {"tasks": 2, "every": 2}}
    RECIPE.replace(iterations=2, **changes).train(tmp_path / "run")
    for t in trajectories_of(tmp_path / "run"):
        assert t.length == 2 and described(t.turns[1].observation).endswith("check again")
    first, second = rows_of(tmp_path / "run", "train")
    assert first["kl"] == pytest.approx(0, abs=1e-5) and second["kl"] >= first["kl"]
    assert all("gain" in row["measures"] for row in rows_of(tmp_path / "run", "eval"))


@pytest.mark.parametrize(
    ("family", "member"),
    [
        (Credit, AttemptCredit(first=0.0, bonus=3.0, baseline="mean")),
        (KL, KLByTurn(coefficient=0.1, by_turn=(1.0, 0.0))),
    ],
)
def test_its_components_are_built_again_from_their_data(family, member):
    assert build(family, member.as_data()) == member
