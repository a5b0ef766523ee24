"""DSAC-T in a world of the test's own, with rewards of any size."""

import pytest
from aiming import Aiming, off_after

from longstride import papers


@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_it_learns_from_rewards_of_any_size_under_one_setting(scale: float) -> None:
    off, learner = off_after(papers.load("dsac_t"), Aiming(scale=scale, noise=0.3))
    assert off < 0.3
    tensors, _ = learner.state()
    assert (tensors["0.critic.usual"] > 0).all()
    behind = tensors["0.actor.target.net.weights.0"] - tensors["0.actor.policy.net.weights.0"]
    assert behind.abs().max() > 0
