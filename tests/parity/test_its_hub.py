# pyright: reportMissingImports=false
"""Searches make the same choices as its_hub, the library of arXiv 2502.01618, from the same generator and scorer. Run
with its_hub 1.2.0.

Where the two differ, the cases are such that it does not matter. Its beam starts from n / kept candidates, ours from n:
here what ours has more at the start is scored lowest. Its beam copies finished candidates, so beams have solutions of
one length. Its particles are drawn once more when all are finished: systematic draws keep the best. Its
`ParticleFiltering` does not hand on `resampling_method`, so `ParticleGibbs` with one iteration stands for it. Particle
Gibbs proper is not compared: the reference stands last there, and its copies may branch off.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from longstride.core.generators import driven
from longstride.strategies.search import Beam, Independent, Partial, Particles, Search

pytest.importorskip("its_hub", reason="compares with its_hub: make parity")

from its_hub.api import AbstractLanguageModel, AbstractOutcomeRewardModel, AbstractProcessRewardModel
from its_hub.core.algorithms.beam_search import BeamSearch
from its_hub.core.algorithms.bon import BestOfN
from its_hub.core.algorithms.particle_gibbs import ParticleGibbs
from its_hub.core.lms.step_generation import StepGeneration

LETTERS = "abcdefghijklmnop"
LENGTH = 4
"""Letters of a solution, unless one of them ends it."""


class World(AbstractLanguageModel, AbstractProcessRewardModel, AbstractOutcomeRewardModel):
    """Generator and scorer of both libraries. Solutions are words: the n-th continuation of a word within a request
    appends the n-th letter. Words have random scores, but words of one letter score 0 after the first `start` letters.
    `asked` has the words of every request."""

    def __init__(self, seed: int, end: str | None = None, start: int = len(LETTERS)) -> None:
        self.seed, self.end, self.start = seed, end, start
        self.asked: list[list[str]] = []
        self.solutions = iter(LETTERS)

    def extended(self, words: list[str]) -> list[str]:
        self.asked.append(words)
        return [word + LETTERS[words[:k].count(word)] for k, word in enumerate(words)]

    def value(self, word: str) -> float:
        known = len(word) > 1 or word in LETTERS[: self.start]
        return float(np.random.default_rng([self.seed, *map(ord, word)]).random()) if known else 0.0

    def __call__(self, partials: Sequence[Partial]) -> list[Partial]:
        words = self.extended([p.state for p in partials])
        done = [len(word) == LENGTH or word[-1] == self.end for word in words]
        return [Partial(w, self.value(w), d, w if d else None) for w, d in zip(words, done, strict=True)]

    async def agenerate(self, messages: Any, stop: str | None = None, **kwargs: Any) -> Any:
        words = [said[-1].content if said[-1].role == "assistant" else "" for said in messages]
        return [{"role": "assistant", "content": word[-1]} for word in self.extended(words)]

    async def agenerate_single(self, messages: Any, stop: str | None = None, **kwargs: Any) -> Any:
        return {"role": "assistant", "content": next(self.solutions) + "a" * (LENGTH - 1)}

    def score(self, prompt_or_messages: Any, steps: Any = None, **kwargs: Any) -> Any:
        words = [said[-1].content for said in prompt_or_messages] if steps is None else steps
        return [self.value(word) for word in words]

    async def ascore(self, prompt_or_messages: Any, steps: Any = None, **kwargs: Any) -> Any:
        return self.score(prompt_or_messages, steps)


def steps(end: str | None = None) -> StepGeneration:
    return StepGeneration(max_steps=LENGTH - 1, tokens_per_step=1, stop_token=end)


def ours(search: Search, world: World, rng: np.random.Generator) -> list[str]:
    """The finished words, the chosen one first."""
    return [p.state for p in driven(search.run(Partial(""), rng), world)]


def theirs(algorithm: Any, world: World, n: int) -> Any:
    return asyncio.run(algorithm.ainfer(world, "task", n, return_response_only=False))


@pytest.mark.parametrize("seed", range(10))
def test_best_of_n_chooses_the_same(seed: int) -> None:
    world = World(seed)
    found = theirs(BestOfN(world), world, 8)
    mine = ours(Independent(n=8), world, np.random.default_rng(0))
    assert found.the_one["content"] == mine[0]
    assert {response["content"] for response in found.responses} == set(mine)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("n", "width"), [(4, 4), (8, 4), (16, 4)])
def test_a_beam_extends_and_chooses_the_same(n: int, width: int, seed: int) -> None:
    kept = n // width
    here, there = World(seed, start=width), World(seed, start=width)
    found = theirs(BeamSearch(steps(), there, beam_width=kept), there, n)
    mine = ours(Beam(n=n, width=width), here, np.random.default_rng(0))
    assert found.the_one["content"] == mine[0]
    assert [Counter(words) for words in there.asked[1:]] == [Counter(words) for words in here.asked[1:]]
    assert (len(there.asked[0]), len(here.asked[0])) == (width, n)


@pytest.mark.parametrize("seed", range(10))
def test_particles_are_drawn_and_chosen_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there, uniforms = World(seed, "c"), World(seed, "c"), np.random.default_rng(seed)
    monkeypatch.setattr(np.random, "uniform", lambda low, high: uniforms.random())
    algorithm = ParticleGibbs(steps("c"), there, num_ref_particles=0, resampling_method="systematic")
    found = theirs(algorithm, there, 8)
    mine = ours(Particles(n=8), here, np.random.default_rng(seed))
    assert found.the_one["content"] == mine[0]
    assert there.asked == here.asked
    assert {response["content"] for response in found.responses_lst[0]} <= set(mine)
