"""The score of a beginning beside the authors' code: `BestFirstSearch` of zeyu-zheng/BFS-Prover-V2
(`src/search/prover_manager.py`, commit 6118f5f) takes the node for which the negative sum of its tactics'
log-probabilities, over depth^depth_reward, is least. A tactic's is the *mean* over its tokens there, and their sum
here, as the papers have it: the two are one where every step has one token."""

from collections.abc import Sequence
from math import exp, log

import pytest
from helpers import make_trajectory

from longstride.rollout import ScriptedPlayer
from longstride.strategies.searched import STEPS, PathLikelihood

Steps = list[tuple[int, float]]
"""Tokens of each step, and their log-probability."""
BEGINNINGS: list[Steps] = [
    [(1, log(0.5))],
    [(1, log(0.9)), (1, log(0.4))],
    [(1, log(0.6)), (1, log(0.6)), (1, log(0.6))],
    [(1, log(0.2))],
]


def score(steps: Steps, alpha: float) -> float:
    """Of ours."""
    found = PathLikelihood(alpha=alpha)([make_trajectory([], evidence={STEPS: steps})], ScriptedPlayer(lambda _: ""))
    return found[0].value or 0.0


def released(steps: Sequence[tuple[int, float]], depth_reward: float) -> float:
    """Its place in the queue, the least of which is taken."""
    priority = sum(logprob / tokens for tokens, logprob in steps)
    return -priority / len(steps) ** depth_reward


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_of_steps_of_one_token_the_score_is_that_of_the_release(alpha: float) -> None:
    assert [score(of, alpha) for of in BEGINNINGS] == pytest.approx([exp(-released(of, alpha)) for of in BEGINNINGS])


def test_a_long_step_is_forgiven_there_and_not_here() -> None:
    long, short = [(4, 4 * log(0.8))], [(1, log(0.5))]
    assert released(long, 0.0) < released(short, 0.0) and score(long, 0.0) < score(short, 0.0)
