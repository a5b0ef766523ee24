"""Cards: what data sheets say of them, and what our parts were measured to make of one. No torch.

What always holds: every number says whether it was measured, derived (from data sheets or a model's configuration) or
assumed, and by what.
"""

from dataclasses import dataclass
from typing import Literal

from longstride.core.errors import ConfigError, unknown

Kind = Literal["measured", "derived", "assumed"]
"""Where a number comes from."""


@dataclass(frozen=True)
class Sourced:
    """A number and where it comes from."""

    value: float
    kind: Kind
    source: str


@dataclass(frozen=True)
class Card:
    """What one card, or one process of a machine without cards, can do at most."""

    name: str
    memory: float
    """Bytes."""
    flops: float
    """Operations a second of dense bfloat16 products."""
    bandwidth: float
    """Bytes a second that it reads of its memory."""
    link: float
    """Bytes a second, each way, to another card of the same machine."""
    machine: int = 8
    """Cards of a machine."""


CARDS = {
    card.name: card
    for card in (
        Card("H100", 80e9, 989e12, 3.35e12, 450e9),
        Card("H200", 141e9, 989e12, 4.8e12, 450e9),
        Card("B200", 180e9, 2250e12, 8e12, 900e9),
        Card("A100", 80e9, 312e12, 2.04e12, 300e9),
        Card("L40S", 48e9, 362e12, 864e9, 32e9),
        Card("RTX4090", 24e9, 165e12, 1008e9, 32e9),
    )
}
"""Derived: NVIDIA's data sheets (SXM where there is such a card; PCIe 4.0 x16 where there is no NVLink)."""
NETWORK = Sourced(50e9, "assumed", "400 Gbit/s a card between machines")
USABLE = Sourced(0.92, "assumed", "share of a card's memory that parts may fill; the rest is the driver's and lost")


@dataclass(frozen=True)
class Speeds:
    """What an engine and the learner make of a card."""

    launch: Sourced
    """Seconds a layer that launching the kernels of a decoding pass takes: a pass takes no less."""
    reads: Sourced
    """Share of a card's bandwidth at which a decoding pass reads weights, keys and values."""
    prefill: Sourced
    """Share of a card's operations a second while prompts are read."""
    learning: Sourced
    """The same in an optimiser step."""


_H100 = "one H100, Qwen3-0.6B's shape, bfloat16, commit 1c8d745, 2026-11-22"
_H200 = "one H200, Qwen3-0.6B's shape, bfloat16, commit d085846, 2026-11-27"
_LEARNING = Sourced(0.154, "measured", f"43k tokens/s of 300 + 128 (74k with compiled layers), {_H200}")
_PREFILL = Sourced(0.12, "assumed", "nearly the learner's")
OURS = Speeds(
    launch=Sourced(0.0074 / 28, "measured", f"7.4 ms a pass of 64 rows and 28 layers as a graph, {_H200}"),
    reads=Sourced(0.12, "measured", f"4.3 GB in this pass at 424 tokens a row, {_H200}"),
    prefill=_PREFILL,
    learning=_LEARNING,
)
"""The engine in the run, with graphs."""
UNCAPTURED = Speeds(
    launch=Sourced(0.032 / 28, "measured", f"32 ms a pass of 64 rows and 28 layers, {_H100}"),
    reads=Sourced(0.083, "measured", f"81 ms a pass of 512 rows at about 364 tokens, {_H100}"),
    prefill=_PREFILL,
    learning=Sourced(0.12, "measured", f"34.0k tokens/s of 300 + 128, {_H100}"),
)
"""The engine in the run, without graphs: what there was when an H100 was measured."""
VLLM = Speeds(
    launch=Sourced(0.002 / 28, "assumed", "2 ms a pass of 28 layers as CUDA graphs; vLLM was not measured by us"),
    reads=Sourced(0.6, "assumed", "vLLM was not measured by us"),
    prefill=Sourced(0.4, "assumed", "vLLM was not measured by us"),
    learning=_LEARNING,
)


def card_of(name: str) -> Card:
    """A card by name, in any case.

    Raises:
        ConfigError: it is not in the table.
    """
    found = {known.lower(): card for known, card in CARDS.items()}.get(name.lower().replace(" ", ""))
    if found is None:
        raise ConfigError(f"{unknown('card', name, CARDS)}; a machine of your own is planned by --from RUN")
    return found
