"""DSAC-T in a world of the test's own, with rewards of any size."""

import pytest
import torch
from aiming import Aiming, off_after

from longstride import papers
from longstride.control import SAC, GaussianPolicy
from longstride.models.mlp import Trunk


@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_it_learns_from_rewards_of_any_size_under_one_setting(scale: float) -> None:
    off, learner = off_after(papers.load("dsac_t"), Aiming(scale=scale, noise=0.3))
    assert off < 0.3
    assert (learner.state()[0]["0.critic.usual"] > 0).all()


def test_critics_value_a_target_network_that_follows_the_policy() -> None:
    policy = GaussianPolicy(trunk=Trunk(width=4, depth=1)).make(1, 1, torch.Generator().manual_seed(0))
    actor = SAC(tau=0.25).make(policy)
    assert SAC().make(policy).valued is policy and actor.valued is actor.target is not policy
    before = [p.clone() for p in policy.parameters()]
    with torch.no_grad():
        for p in policy.parameters():
            p += 1.0
    SAC(tau=0.25).after_step(actor)
    for moved, at in zip(actor.valued.parameters(), before, strict=True):
        torch.testing.assert_close(moved, at + 0.25)
        assert not moved.requires_grad
