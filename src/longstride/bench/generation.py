"""New tokens a second of the local engine, against Hugging Face `generate` on the same model, prompts and lengths.

Native kernels (`models.native`), where a compiler is there, stand in rows of their own, against ours of torch.

What always holds: all sides sample with temperature 1 in float32 from the same module; only tokens that were wanted
count, however many a side had to sample; no caches are left from the round before.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention
from torch.overrides import TorchFunctionMode

from longstride.bench import hf_peer
from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.core.errors import ConfigError
from longstride.engines.base import Request
from longstride.engines.local import LocalEngine
from longstride.models.native import library
from longstride.models.tiny import TinyConfig, build_model

SHAPE, VOCABULARY = TinyConfig(width=160, layers=6, heads=4, kv_heads=2, ffn=432, context=2048), 2048
"""2.0M parameters."""
PROMPT, NEW, SEEN = (200, 400), (16, 48), (30, 50)
"""Least and most tokens of a first prompt, of a completion, and of what is observed after it."""


@dataclass(frozen=True)
class GenerationWork:
    """Episodes that are played together."""

    name: str
    prompts: int
    group: int = 1
    """Episodes of each prompt."""
    turns: int = 1
    goal: float | None = None


WORKS = (
    GenerationWork("64 prompts", 64, goal=3.0),
    GenerationWork("256 prompts", 256, goal=3.0),
    GenerationWork("8 groups of 8", 8, group=8, goal=8.0),
    GenerationWork("32 groups of 8", 32, group=8, goal=8.0),
    GenerationWork("32 episodes of 6 turns", 32, turns=6, goal=6.0),
)
WITHIN = 1 / 1.2
"""Share of our time that the matrix products alone should take: within 20 % of what they allow."""

NATIVE = 1.3
"""How many times faster native kernels have to be, to be worth that they differ from torch's in the last bits."""

Sampler = Callable[[int, Sequence[list[int]], Sequence[int]], list[list[int]]]
"""From the turn, the prompts and the number of tokens that each wants to those tokens."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; the peer is in our own environment and always measured.

    Raises:
        ConfigError: another environment was named for the peer.
        RunError: the peer did not do the work.
    """
    if peer is not None:
        raise ConfigError(f"generate of this environment's transformers is measured; leave --peer {peer} out")
    versions = {name: version(name) for name in ("transformers", "torch")}
    model: Any = build_model(SHAPE, VOCABULARY, seed=0)
    model.generation_config.eos_token_id = None  # all sample as many tokens as they are asked for
    rows, threads = [], torch.get_num_threads()
    for work in WORKS:
        progress(work.name)
        sampler = ours(model)
        with Products() as products:
            play(work, sampler)  # warms up, too
        sides: dict[str, Callable[[int], Mapping[str, float]]] = {
            "ours": lambda _, w=work: {"seconds": play(w, ours(model))},
            "generate": lambda _, w=work: {"seconds": play(w, theirs(model))},
            "products": lambda _, p=products: {"seconds": p.seconds()},
        }
        if library() is not None:
            play(work, ours(model, "native"))
            sides["native"] = lambda _, w=work: {"seconds": play(w, ours(model, "native"))}
        seen = {side: times["seconds"] for side, times in in_turn(sides, rounds, progress).items()}
        tokens, against = sum(map(sum, wanted(work))), f"generate of transformers {versions['transformers']}"
        share = seen["products"] / seen["ours"]
        rows += [
            Quantity(
                work.name, "new tokens/s", tokens / seen["ours"], tokens / seen["generate"], against, True, work.goal
            ),
            Quantity(f"{work.name}: matrix products", "share of our time", share, higher_is_better=True, goal=WITHIN),
        ]
        if "native" in seen:
            native = tokens / seen["native"], tokens / seen["ours"]
            rows.append(
                Quantity(f"{work.name}: native kernels", "new tokens/s", *native, "kernels of torch", True, NATIVE)
            )
    return rows, versions | {"threads of torch": str(threads)}


def wanted(work: GenerationWork) -> list[list[int]]:
    """New tokens by turn and episode."""
    draw = random.Random(1)
    return [[draw.randint(*NEW) for _ in range(work.prompts * work.group)] for _ in range(work.turns)]


def play(work: GenerationWork, sample: Sampler) -> float:
    """Seconds that the work takes."""
    draw = random.Random(0)

    def words(least: int, most: int) -> list[int]:
        return [draw.randrange(VOCABULARY) for _ in range(draw.randint(least, most))]

    prompts = [p for p in (words(*PROMPT) for _ in range(work.prompts)) for _ in range(work.group)]
    began = time.perf_counter()
    for turn, new in enumerate(wanted(work)):
        said = sample(turn, prompts, new)
        prompts = [p + ids + words(*SEEN) for p, ids in zip(prompts, said, strict=True)]
    return time.perf_counter() - began


def ours(model: Any, kernels: Literal["torch", "native"] = "torch") -> Sampler:
    """The local engine, without a cache; an episode is a session."""
    engine = LocalEngine(model, frozenset(), SHAPE.context, kernels=kernels)

    def sample(turn: int, prompts: Sequence[list[int]], new: Sequence[int]) -> list[list[int]]:
        asked = zip(prompts, new, strict=True)
        requests = [Request(p, n, seed=i + (turn << 32), session=i) for i, (p, n) in enumerate(asked)]
        return [completion.ids for completion in engine.generate(requests)]

    return sample


def theirs(model: Any) -> Sampler:
    """`generate`, which keeps nothing between turns."""
    return lambda _, prompts, new: hf_peer.generate(model, prompts, new)


class Products(TorchFunctionMode):
    """Notes the shapes of all matrix products while it is entered, and does these alone afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.linear: list[tuple[int, int, int]] = []
        """Of each linear layer's call tokens, inputs and outputs."""
        self.attention: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        """Of each attention's call the shapes of queries and keys."""
        self.batched: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        """Of each other product of batches the shapes of its factors."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is linear:
            self.linear.append((args[0].numel() // args[0].shape[-1], args[0].shape[-1], args[1].shape[0]))
        elif func is scaled_dot_product_attention:
            self.attention.append((tuple(args[0].shape), tuple(args[1].shape)))
        elif func in (torch.bmm, Tensor.baddbmm_):
            left, right = args[-2:]
            self.batched.append((tuple(left.shape), tuple(right.shape)))
        return func(*args, **(kwargs or {}))

    @torch.inference_mode()
    def seconds(self) -> float:
        """Seconds that the products take: of inputs and weights, of queries and keys, and of scores and values."""
        sizes = [n * i for n, i, _ in self.linear] + [i * o for _, i, o in self.linear]
        sizes += [prod(shape) for shapes in self.attention + self.batched for shape in shapes]
        a, b, c = (torch.rand(max(sizes)) for _ in range(3))
        began = time.perf_counter()
        for n, i, o in self.linear:
            linear(_shaped(a, n, i), _shaped(b, o, i))
        for queries, keys in self.attention:
            scores = torch.matmul(_shaped(a, *queries), _shaped(b, *keys).transpose(-1, -2))
            torch.matmul(scores, _shaped(c, *keys))
        for left, right in self.batched:
            torch.bmm(_shaped(a, *left), _shaped(b, *right))
        return time.perf_counter() - began


def _shaped(buffer: Tensor, *shape: int) -> Tensor:
    return buffer[: prod(shape)].view(shape)


BENCHMARK = Benchmark(
    name="generation",
    question="How many tokens a second are sampled, and how near is that to what the matrix products allow?",
    equal=(
        "the model (a Llama of 2.0M parameters with random weights) and its arithmetic, float32",
        f"the prompts ({PROMPT[0]} to {PROMPT[1]} tokens) and how many tokens follow each ({NEW[0]} to {NEW[1]})",
        "temperature 1, no end token",
        f"what is observed between turns ({SEEN[0]} to {SEEN[1]} tokens)",
    ),
    limits=(
        "each token reads the keys and values of its whole row, which costs most over many turns; first prompts cost "
        "their matrix products and the exponentials of attention, a pass of few tokens the calls between them. "
        "`generate` pads prompts to the longest, samples for all as many tokens as the longest completion has, and "
        "encodes shared prompts and earlier turns again."
    ),
    measure=measure,
)
