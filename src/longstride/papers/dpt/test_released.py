"""Learners beside those of DPT's authors: which arms `LinUCBPolicy` and `EmpMeanPolicy` of
jon--lee/decision-pretrained-transformer (`ctrls/ctrl_bandit.py`, commit 15172df) choose after each of these pulls. The
arms of the former have a constant feature, which ours adds by itself; the latter is read once all arms were tried.

And what `ThompsonSamplingPolicy` believes of the arms after all of them. Not compared: its UCB adds 1 / sqrt(n) and ours
sqrt(2 log t / n) at first.
"""

import random
from collections.abc import Sequence

import pytest

from longstride.strategies.learners import GaussianThompson, GreedyMean, LinUCB, TrialLearner

ARMS = [[-0.8, -1.3], [-0.2, 0.4], [1.1, 0.1], [-0.6, -0.8]]
PULLS = "0123000302301113"
REWARDS = [0.9, 0.84, 0.39, 0.49, 0.68, 0.06, 0.56, 0.27, 0.88, 0.06, 0.68, 0.87, 0.23, 0.9, 0.87, 0.02]


class Arms:
    """An environment of four arms, which are described."""

    def choices(self) -> Sequence[str]:
        return "0123"

    def features(self) -> Sequence[Sequence[float]]:
        return ARMS


@pytest.mark.parametrize(
    ("learner", "first", "released"),
    [
        (LinUCB(bonus=0.2), 1, "0000011100000001"),
        (LinUCB(bonus=1.0), 1, "0200021221110111"),
        (LinUCB(bonus=3.0), 1, "2200222221112222"),
        (GreedyMean(), 4, "0111111110011"),
    ],
)
def test_after_the_same_pulls_the_released_arm_is_chosen(learner: TrialLearner, first: int, released: str) -> None:
    env, rng, chosen = Arms(), random.Random(0), ""
    learning = learner.begin(env)
    for n, (pull, reward) in enumerate(zip(PULLS, REWARDS, strict=True), 1):
        learning.saw("", pull, reward, None)
        if n >= first:
            chosen += learning.choose("", env, rng)
    assert chosen == released


@pytest.mark.parametrize(
    ("deviation", "means", "variances"),
    [
        (0.3, [0.634181, 0.665354, 0.321429, 0.393701], [0.012712, 0.017717, 0.029221, 0.017717]),
        (1.5, [0.528788, 0.527097, 0.481034, 0.482581], [0.068182, 0.072581, 0.077586, 0.072581]),
    ],
)
def test_of_the_arms_is_believed_what_the_released_thompson_sampling_believes(
    deviation: float, means: list[float], variances: list[float]
) -> None:
    of_arms = [[r for pull, r in zip(PULLS, REWARDS, strict=True) if pull == arm] for arm in "0123"]
    found = [GaussianThompson(deviation=deviation).posterior(len(paid), sum(paid)) for paid in of_arms]
    assert [mean for mean, _ in found] == pytest.approx(means, abs=1e-6)
    assert [variance for _, variance in found] == pytest.approx(variances, abs=1e-6)
