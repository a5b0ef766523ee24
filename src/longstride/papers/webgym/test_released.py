"""WebGym beside its authors' code: how often `ReplayBuffer.get_training_samples` of microsoft/webgym
(`webgym/data/replay_buffer.py`, commit 574a205; `recency_bias_power` 2, as published) takes each of six when it takes
three, in 100,000 draws."""

import random
from collections import Counter

import pytest
from helpers import Collected, make_trajectory

from longstride.papers.webgym.method import RecentSuccesses

RELEASED = [0.051, 0.1983, 0.4141, 0.6475, 0.8015, 0.8875]


def test_several_are_drawn_as_often_as_in_the_release() -> None:
    past, counts = Collected([make_trajectory(reward=1.0, ordinal=k) for k in range(6)]), Counter[int]()
    kept, replay, rng, draws = past.records, RecentSuccesses(keep=3), random.Random(0), 4000
    for _ in range(draws):
        counts.update(r.ordinal for r in replay.draw(kept, 6, rng, past))
    assert [counts[k] / draws for k in range(6)] == pytest.approx(RELEASED, abs=0.02)
