"""Time of a learner's update against the turns of an episode: rows that share what turns share, and a row a turn.

What always holds: both sides get the same samples and compute the same gradient (a difference ends the benchmark), and
a time is that of forward and backward of one optimiser step, without the optimiser.
"""

import random
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError, RunError
from longstride.core.seeds import stream
from longstride.learner.batching import StreamTable, row_of
from longstride.learner.config import LearnerConfig
from longstride.learner.learner import Learner
from longstride.learner.likelihood import TokenLikelihood
from longstride.learner.packing import Row
from longstride.methods.base import Sample, demonstration
from longstride.models.tiny import TinyConfig, build_model

TURNS = (4, 8, 16, 32, 64)
HEAD, PAGE_TOKENS, SAID = 40, 30, 12
"""Tokens before the first page, of a page, and of what is said to it."""
WORDS = 1000
MODEL = TinyConfig(context=HEAD + max(TURNS) * (PAGE_TOKENS + SAID))
KINDS = {"growing context": False, "rebuilt context": True}
"""Whether only the newest page is kept, so that turns share their head and what was said, but no page."""


class RowPerTurn(Learner):
    """A learner that shares nothing between turns: each is a row, with all that stands before it."""

    def _rows(self, samples: Sequence[Sample], table: StreamTable, likelihood: TokenLikelihood) -> list[Row]:
        return [row_of(samples, [n], table) for n in range(len(samples))]


def episode(turns: int, rebuilt: bool, rng: random.Random) -> list[Sample]:
    """The samples of one episode of random words."""

    def words(n: int) -> list[int]:
        return rng.choices(range(WORDS), k=n)

    context, samples = words(HEAD), []
    for _ in range(turns):
        page, said = words(PAGE_TOKENS), words(SAID)
        samples.append(demonstration(context + page, said, 1 / SAID))
        context = context + ([] if rebuilt else page) + said
    return samples


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; there is no peer but ourselves, un-merged.

    Raises:
        ConfigError: an environment was named for a peer.
        RunError: the two ways differ in their loss.
    """
    if peer is not None:
        raise ConfigError(f"ours is compared with itself, un-merged; leave --peer {peer} out")
    sides = {"merged": Learner, "row a turn": RowPerTurn}
    learners = {
        name: kind(build_model(MODEL, WORDS, 0), LearnerConfig(dtype="float32")) for name, kind in sides.items()
    }
    rows = []
    for kind, rebuilt in KINDS.items():
        samples = {turns: episode(turns, rebuilt, stream(0, kind, turns)) for turns in TURNS}
        for learner in learners.values():
            learner.accumulate(samples[TURNS[0]])  # a first pass allocates

        def one(name: str, samples: dict[int, list[Sample]] = samples) -> dict[str, Any]:
            return _seconds(learners[name], samples)

        seen = in_turn({name: lambda _, name=name: one(name) for name in sides}, rounds, progress)
        if not np.allclose(*(seen[name]["loss"] for name in sides), rtol=1e-4):
            raise RunError(f"{kind}: the loss of merged rows is not that of a row a turn; nothing was measured")
        ours, theirs = (seen[name]["seconds"] for name in sides)
        for k, turns in enumerate(TURNS):
            rows.append(Quantity(f"{kind}, {turns} turns", "s", ours[:, k], theirs[:, k], "a row a turn"))
        rows.append(Quantity(f"{kind}: exponent of turns, merged", "", exponents(ours)))
        rows.append(Quantity(f"{kind}: exponent of turns, a row a turn", "", exponents(theirs)))
    return rows, {"torch": str(torch.__version__)}


def _seconds(learner: Learner, samples: dict[int, list[Sample]]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"seconds": [], "loss": []}
    for batch in samples.values():
        began = time.perf_counter()
        loss, _ = learner.accumulate(batch)
        found["seconds"].append(time.perf_counter() - began)
        found["loss"].append(loss)
    return found


def exponents(seconds_R_T: np.ndarray) -> np.ndarray:
    """Of each round the slope of log seconds against log turns, from the second number of turns on: an overhead of its
    own hides in the first."""
    return np.polyfit(np.log(TURNS[1:]), np.log(seconds_R_T[:, 1:]).T, 1)[0]


BENCHMARK = Benchmark(
    name="turns",
    question="What does an optimiser step on an episode cost when turns share what they have in common, by turns?",
    equal=(
        "the model (0.5M parameters) and its float32 arithmetic",
        f"the samples: {HEAD} tokens, then {PAGE_TOKENS} of a page and {SAID} said per turn",
        "the gradient, which both compute",
        "micro-batches of at most 8192 tokens",
    ),
    limits=(
        "a context that only grows is one causal row; attention over it grows with the square of its length and is the "
        "smaller part up to 64 turns. A rebuilt context shares what was said, but each page is computed by itself."
    ),
    measure=measure,
    how_to_make_peer="  longstride bench turns  # there is no peer: ours is compared with itself, un-merged",
)
