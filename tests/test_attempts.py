"""Credit for attempts: by hand, and its exact expected gradient over all trajectories of a problem of two attempts."""

import itertools

import numpy as np
import pytest
from longstride.methods.attempts import AttemptCredit, scores

from longstride.core.budget import Budget, StopReason
from longstride.core.component import build
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, Turn
from longstride.envs.exact.tabular import EnumerableMDP
from longstride.methods.base import Credit


def episode(*r: float, group: int = 0, ids: tuple[tuple[int, ...], ...] = ((1,), (1,), (1,))) -> Trajectory:
    """Attempts with these scores, as `envs.puzzles.Attempts` rewards them."""
    rewards = [r[0], *(b - a for a, b in itertools.pairwise(r))]
    rewards[-1] -= r[-1]  # the evaluator's part
    turns = [
        Turn([k], list(i), [-1.0] * len(i), [0] * len(i), "", "", reward=x)
        for k, (x, i) in enumerate(zip(rewards, ids, strict=False))
    ]
    return Trajectory(Task(id="t", source="s", goal="g", start="s"), 0, 0, Budget(), turns, StopReason.ANSWERED,
                      reward=r[-1], group=group)  # fmt: skip


def weights(credit: Credit, episodes: list[Trajectory]) -> list[list[float]]:
    return [s.weights for s in credit(episodes)]


def test_the_scores_of_attempts_are_what_was_earned_by_then_and_the_last_is_the_reward() -> None:
    for r in ((0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (1.0, 0.0, 1.0), (1.0,)):
        assert scores(episode(*r)) == list(r)
    empty = episode(1.0)
    empty.turns = []
    assert scores(empty) == []


def test_rewards_of_attempts_by_hand() -> None:
    for credit, r, rewards in (
        (AttemptCredit(), (1, 0), [1, 0]),
        (AttemptCredit(bonus=10), (1, 0), [1, -10]),
        (AttemptCredit(bonus=10), (0, 1), [0, 11]),
        (AttemptCredit(bonus=10), (1, 1), [1, 1]),
        (AttemptCredit(bonus=2, first=0.5), (1, 0, 1), [0.5, -2, 3]),
    ):
        assert credit.rewards(episode(*r)) == rewards


def test_an_attempt_is_held_against_those_of_its_number_in_its_group() -> None:
    group = [episode(1, 0), episode(0, 1), episode(0, 0), episode(1, 1, group=1), episode(0, 1, group=1)]
    # R_2 = -1, 2, 0 in the first group, 1, 2 in the other
    found = weights(AttemptCredit(bonus=1), group)
    assert [w for (w,) in found] == pytest.approx([1, -2, -0.5, 2.5, -0.5, -0.5, 1, -1, -1, 1])
    pinned = weights(AttemptCredit(first=0, centre="mean"), group)
    assert [w for (w,) in pinned] == pytest.approx([0, -1 / 3, 0, 2 / 3, 0, -1 / 3, 0, 0, 0, 0])


def test_all_tokens_of_an_attempt_share_its_weight_and_turns_without_tokens_are_no_samples() -> None:
    cut = episode(0, 1, ids=((4, 5), ()))
    samples = AttemptCredit(centre="none")([episode(1, 1, ids=((4, 5), (6,))), cut])
    found = [(s.sampled_ids, s.weights, s.turn) for s in samples]
    assert found == [([4, 5], [1, 1], 0), ([6], [1], 1), ([4, 5], [0, 0], 0)]
    failed = episode(1, 1)
    failed.stop = StopReason.INFRA_FAILURE
    assert AttemptCredit()([failed, episode(0, 1), episode(1, 1)]) == AttemptCredit()([episode(0, 1), episode(1, 1)])


def test_it_is_built_again_from_its_data() -> None:
    credit = AttemptCredit(first=0.0, bonus=3.0, centre="mean")
    assert build(Credit, credit.as_data()) == credit


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
        (AttemptCredit(centre="none"), 1, 1, 1),
        (AttemptCredit(centre="none", bonus=4), 1, 1, 5),
        (AttemptCredit(first=0), 2, 0, 1),
        (AttemptCredit(bonus=10), 2, 1, 11),
        (AttemptCredit(bonus=2), 3, 1, 3),
        (AttemptCredit(bonus=10, centre="mean"), 3, 2 / 3, 2 / 3 * 11),
    ],
)
def test_the_expected_gradient_is_that_of_each_attempts_own_score(credit, n: int, first: float, second: float) -> None:
    problem, logits = two_attempts()
    policy = problem.policy(logits)
    found = np.zeros_like(logits)
    for paths in itertools.product(problem.trajectories(logits), repeat=n):
        episodes = [episode(*p.rewards, ids=tuple((a,) for a in p.actions)) for p in paths]
        for k, (t, path) in enumerate(zip(episodes, paths, strict=True)):
            t.ordinal = k
            for turn, state in zip(t.turns, path.states, strict=True):
                turn.prompt_ids = [state]
        for s in credit(episodes):
            state, action = s.prompt_ids[0], s.sampled_ids[0]
            score = -policy[state] + (np.arange(2) == action)
            found[state] += np.prod([p.probability for p in paths]) * s.weights[0] * score / n
    # of one state on its own: probability of being there times pi (score - its mean)
    came_S = np.array([1.0, *policy[0], 0.0])
    own = came_S[:, None] * policy * (problem.rewards - (policy * problem.rewards).sum(1, keepdims=True))
    expected = own * np.array([first, second, second, 0.0])[:, None]
    np.testing.assert_allclose(found, expected, atol=1e-12)
