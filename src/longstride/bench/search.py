"""What several samples and searches cost beside the sampling of their own tokens, as beginnings are read once.

What always holds: all sides of a row sample by the same weights, seeds and settings; a token counts as read twice where
the engine encoded it in a prompt though it stood there before, after the very same tokens, read or sampled. The last
sampled token of a completion is not encoded by sampling it, so its first reading is none.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.engines.base import Completion, Outcome, Request
from longstride.engines.cache import Cache, Slot
from longstride.engines.local import LocalEngine
from longstride.envs.puzzles.modular import ModularChain
from longstride.models.load import Policy, load_policy
from longstride.models.tiny import TinyConfig, build_model
from longstride.papers.grpo import recipe as grpo
from longstride.run.evaluation import evaluate_player, language_player
from longstride.strategies.search import Beam, BestFirst, Particles, Search, TreeSearch
from longstride.strategies.searched import Oracle, Searched

SHAPE, VOCABULARY = TinyConfig(width=160, layers=6, heads=4, kv_heads=2, ffn=432, context=2048), 2048
"""2.0M parameters."""
SAMPLES, PROMPT, NEW = 64, 300, (32, 128)
"""Samples of a prompt, its tokens, and tokens of a sample."""
WITHIN = 1 / 1.15
"""Share of our time that sampling alone should take."""
START, TASKS = "base-puzzles", 8
SEARCHES: Mapping[str, Search] = {
    "beam of 16": Beam(n=16, width=4),
    "beam of 16, one step ahead": Beam(n=16, width=4, ahead=1),
    "16 particles": Particles(n=16),
    "best first, 16 expansions of 4": BestFirst(expansions=16, width=4, finish=8),
    "tree search, 16 expansions of 4": TreeSearch(expansions=16, width=4),
}
NOISE = 1.0
"""Of the guide: one that never errs ends a search before there is a tree."""


class CountedEngine(LocalEngine):
    """A local engine that counts what it reads twice."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._requests: dict[int, Request] = {}
        self._known: set[int] = set()
        """A number for each place that was read or sampled, made of all tokens up to it."""
        self._needed = 0

    @property
    def read_twice(self) -> int:
        """Tokens of prompts that were encoded beyond those that had to be, in all requests that are complete."""
        return self.tokens_in - self._needed

    def submit(self, request: Request) -> int:
        ticket = super().submit(request)
        self._requests[ticket] = request
        return ticket

    def poll(self) -> list[tuple[int, Outcome]]:
        done = super().poll()
        for ticket, outcome in done:
            if isinstance(outcome, Completion):
                self._note(self._requests.pop(ticket).prompt, outcome.ids)
        return done

    def _note(self, prompt: list[int], sampled: list[int]) -> None:
        place = 0
        for n, token in enumerate(prompt + sampled[:-1]):
            place = hash((place, token))
            self._needed += n < len(prompt) and place not in self._known
            self._known.add(place)


class Anew(LocalEngine):
    """A local engine that takes nothing over from what it read or sampled before."""

    def _empty_cache(self, store: Any = None) -> Cache:
        return _Unshared(self._bytes_per_token, self._cache_bytes, self._max_batch, self._max_context)


class _Unshared(Cache):
    def _like(self, ids: list[int], own: Slot | None, most: int) -> tuple[Slot | None, int, int]:
        return None, 0, 0


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; there is no peer but ourselves, without what is shared.

    Raises:
        ConfigError: an environment was named for a peer.
    """
    if peer is not None:
        raise ConfigError(f"ours is compared with itself, without what is shared; leave --peer {peer} out")
    rows = [*_samples(rounds, progress), *_searches(rounds, progress)]
    return rows, {"torch": str(torch.__version__), "threads of torch": str(torch.get_num_threads())}


def _samples(rounds: int, progress: Progress) -> list[Quantity]:
    model, draw = build_model(SHAPE, VOCABULARY, seed=0), random.Random(0)
    apart = [[draw.randrange(VOCABULARY) for _ in range(PROMPT)] for _ in range(SAMPLES)]
    prompts = {"one": apart[:1] * SAMPLES, "alone": apart[:1] * SAMPLES, "apart": apart}
    rows = []
    for new in NEW:

        def side(name: str, new: int = new) -> Callable[[int], Mapping[str, float]]:
            return lambda _: {"seconds": sampling(model, prompts[name], new, cached=name == "alone")}

        sides = {name: side(name) for name in prompts}
        sides["one"](0)  # warms up
        seen = {name: found["seconds"] for name, found in in_turn(sides, rounds, progress).items()}
        name = f"best of {SAMPLES}, {new} tokens each"
        rows += [
            Quantity(
                f"{name}, beside their sampling alone", "s", seen["one"], seen["alone"], "prompt cached", goal=WITHIN
            ),
            Quantity(f"{name}, beside {SAMPLES} prompts", "s", seen["one"], seen["apart"], "one for each sample"),
        ]
    return rows


def sampling(model: Any, prompts: Sequence[list[int]], new: int, cached: bool) -> float:
    """Seconds in which a new engine samples `new` tokens after each prompt; `cached` has it read the prompts before."""
    engine = LocalEngine(model, frozenset(), SHAPE.context)
    requests = [Request(p, new, seed=k, session=k) for k, p in enumerate(prompts)]
    if cached:
        engine.generate([Request(r.prompt, 1, r.seed, r.session) for r in requests])
    began = time.perf_counter()
    engine.generate(requests)
    return time.perf_counter() - began


def _searches(rounds: int, progress: Progress) -> list[Quantity]:
    policy, tasks = load_policy(START), ModularChain().held_out(TASKS)
    rows = []
    for name, search in SEARCHES.items():

        def side(kind: type[LocalEngine], search: Search = search) -> Callable[[int], Mapping[str, float]]:
            return lambda _: searching(engine_of(policy, kind), policy, search, tasks)

        seen = in_turn({"reused": side(LocalEngine), "anew": side(Anew)}, rounds, progress)
        reused, anew, against = seen["reused"], seen["anew"], "all read anew"
        twice = sum(read_twice(policy, search, task) for task in tasks)
        rows += [
            Quantity(name, "sampled tokens/s", reused["rate"], anew["rate"], against, higher_is_better=True),
            Quantity(f"{name}: tokens read", "", reused["read"], anew["read"], against),
            Quantity(f"{name}: tokens read twice", "", np.full(rounds, twice), goal=0.0),
        ]
    return rows


def read_twice(policy: Policy, search: Search, task: Task) -> int:
    """Tokens that the search for a solution of one task reads twice."""
    engine = CountedEngine(policy.model, policy.chat.end_ids, policy.max_context)
    searching(engine, policy, search, [task])
    return engine.read_twice


def engine_of(policy: Policy, kind: type[LocalEngine]) -> LocalEngine:
    """An engine for a policy, with nothing cached."""
    return kind(policy.model, policy.chat.end_ids, policy.max_context)


def searching(engine: LocalEngine, policy: Policy, search: Search, tasks: Sequence[Task]) -> dict[str, float]:
    """Searches for solutions of all tasks together; returns how fast tokens were sampled, and how many were read."""
    recipe = grpo.RECIPE.replace(tasks=ModularChain())
    player = language_player(policy, recipe, engine, testing=True)
    before, began = engine.tokens_out, time.perf_counter()
    evaluate_player(player, recipe, tasks, Searched(search=search, guide=Oracle(noise=NOISE)))
    rate = (engine.tokens_out - before) / (time.perf_counter() - began)
    return {"rate": rate, "read": engine.tokens_in}


BENCHMARK = Benchmark(
    name="search",
    question="What do several samples of a prompt, and searches, cost beside the sampling of their own tokens?",
    equal=(
        f"samples: a Llama of 2.0M parameters with random weights, a prompt of {PROMPT} tokens, temperature 1, no end "
        "token",
        f"searches: the start {START} on {TASKS} modular chains, a step up to a mark, a guide that sees the truth with "
        f"noise of standard deviation {NOISE:g}",
        "float32",
    ),
    limits=(
        "the prompt is read while nobody samples, and is copied for each sample, which weighs most where samples are "
        "short. Tokens read twice are counted task by "
        "task: different tasks that begin together and share fewer than 16 tokens each read these."
    ),
    measure=measure,
    how_to_make_peer="  longstride bench search  # there is no peer: ours is compared with itself, nothing shared",
)
