"""MOORL: which source a block learns from, and what is kept of it."""

import numpy as np
import pytest
import torch

from longstride.control import (
    BehaviourCloning,
    ControlAgent,
    ControlEpisode,
    DeterministicPolicy,
    Level,
    Reptile,
    TransitionStore,
)
from longstride.control.envs import Spec
from longstride.control.learner import ControlLearner, Source, train_together
from longstride.models.mlp import Trunk

AGENT = ControlAgent(
    levels=(Level(policy=DeterministicPolicy(trunk=Trunk(width=8, depth=1)), extraction=BehaviourCloning()),),
    batch=8,
    policy_lr=0.01,
)


def store(action: float) -> TransitionStore:
    return TransitionStore.of([ControlEpisode(np.zeros((5, 1)), np.full((4, 1), action), np.zeros(4), False)])


def learner(seed: int = 0) -> ControlLearner:
    return ControlLearner(AGENT, Spec(1, 1, ()), seed)


def weights(of: ControlLearner) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in of.levels[0].parameters()])


def train(of: ControlLearner, reptile: Reptile | None, sources: list[Source], updates: int) -> None:
    train_together([of], updates, [sources], reptile=reptile)


def test_a_block_has_one_source_as_often_as_it_has_rows() -> None:
    rng = np.random.default_rng(0)
    drawn = [Reptile().chosen([("offline", 2), ("online", 6)], rng) for _ in range(2000)]
    assert {tuple(of) for of in drawn} == {(("offline", 8),), (("online", 8),)}
    assert np.mean([of[0][0] == "online" for of in drawn]) == pytest.approx(0.75, abs=0.03)


def test_the_share_of_a_block_is_kept() -> None:
    """theta + eta (theta_K - theta), by the weights of the same learner after K plain updates."""
    sources = [(store(0.5), 8)]
    start, plain, kept, none = (learner() for _ in range(4))
    train(plain, None, sources, 3)
    train(kept, Reptile(inner=3, rate=0.25), sources, 3)
    train(none, Reptile(inner=3, rate=0.0), sources, 9)
    torch.testing.assert_close(weights(kept), weights(start).lerp(weights(plain), 0.25))
    assert torch.equal(weights(none), weights(start)) and not torch.equal(weights(plain), weights(start))


def test_with_a_rate_of_one_sources_take_turns_in_plain_training() -> None:
    """What is done in the end is between what two sources do, by their shares."""
    of = learner()
    sources = [(store(0.8), 2), (store(-0.8), 6)]
    train(of, Reptile(inner=1, rate=1.0), sources, 150)
    seen = (np.zeros((1, 1), np.float32), np.zeros((1, 0), np.float32), np.ones(1, bool))
    assert of.actor(0, explore=False)(*seen).item() == pytest.approx(-0.4, abs=0.25)


def test_runs_beside_choose_their_sources_apart_and_resume_with_the_same_numbers() -> None:
    sources, reptile = [(store(0.5), 4), (store(-0.5), 4)], Reptile(inner=2)
    alone, beside = ([learner(seed) for seed in (0, 1)] for _ in range(2))
    for of in alone:
        train(of, reptile, sources, 6)
        train(of, reptile, sources, 4)
    train_together(beside, 6, [sources] * 2, reptile=reptile)
    train_together(beside, 4, [sources] * 2, reptile=reptile)
    for one, other in zip(alone, beside, strict=True):
        torch.testing.assert_close(weights(one), weights(other), atol=1e-5, rtol=1e-5)
