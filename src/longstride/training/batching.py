"""Batches: samples become rows of ids with a weight per trained token, and rows become padded micro-batches.

What always holds: a token is trained only where its weight is not zero; padding stands on the right, so that under
causal attention it touches nothing; how rows are cut and packed into micro-batches changes the loss by rounding
alone; the tokens of one sample are in one micro-batch, in order. Where weights come from is not known here (see
`longstride.algorithms`).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
S = TypeVar("S", bound="Trainable")


class Trainable(Protocol):
    """What a batch is made of: an `algorithms.base.Sample`, or anything that looks like one.

    It may carry `prompt_from`: where in `prompt_ids` the newest observation starts; with a `prompt_weight` above 0 the
    tokens from there on are trained too (warm start). It may carry `logprobs` and `proximal`, one a sampled token, for
    losses that read them.
    """

    prompt_ids: list[int]
    sampled_ids: list[int]
    weights: list[float]


@dataclass(slots=True)
class Row:
    """One sequence: `weights[k]` is the weight of predicting `ids[first + k]` from all that stands before it."""

    ids: list[int]
    first: int
    weights: list[float]
    behaviour: list[float]
    """Log-probability under the policy that sampled the token; nan where it is not known. From `first` on, like
    `weights` and what follows."""
    proximal: list[float]
    """The same under the weights at the start of the update."""
    sequences: list[int]
    """Number of the sample, among those of the step, that the token is of."""


@dataclass(slots=True)
class MicroBatch:
    """Rows padded to one length, and the places whose next token is trained (P of them)."""

    ids_B_L: Tensor
    at_P: Tensor
    """Index into the flattened B * L positions: the one *before* the trained token."""
    target_P: Tensor
    weight_P: Tensor
    behaviour_P: Tensor
    proximal_P: Tensor
    sequence_P: Tensor


def chains(samples: Sequence[S]) -> list[list[S]]:
    """Cuts into runs of neighbours in which each prompt goes on where the sample before it ended, token for token.

    The turns of an episode whose context only grows are one chain, and one row: T turns cost what they are long, not T
    times their history. Where the context is rebuilt every turn each sample is a chain of its own.
    """
    out: list[list[S]] = []
    end: list[int] = []
    for s in samples:
        if out and len(s.prompt_ids) >= len(end) and s.prompt_ids[: len(end)] == end:
            out[-1].append(s)
        else:
            out.append([s])
        end = s.prompt_ids + s.sampled_ids
    return out


def row_of(
    chain: Sequence[Trainable], prompt_weight: float = 0.0, shares: Sequence[float] = (), number: int = 0
) -> Row:
    """The row of a chain of samples.

    With `prompt_weight` > 0 each prompt token from `sample.prompt_from` on has weight `prompt_weight` / (how many there
    are), the same length normalisation that a turn's own tokens have in filtered behaviour cloning.

    Args:
        chain: samples, each going on where the one before ended.
        prompt_weight: see above.
        shares: what each sample's weights are multiplied by (see `algorithms.Aggregation`); 1 if left out.
        number: of the first sample among those of the step.
    """
    ids = chain[-1].prompt_ids + chain[-1].sampled_ids
    weights, sequences = [0.0] * len(ids), [number] * len(ids)
    behaviour, proximal = [math.nan] * len(ids), [math.nan] * len(ids)
    for k, (s, share) in enumerate(zip(chain, shares or [1.0] * len(chain), strict=True)):
        n = len(s.prompt_ids)
        own = slice(n, n + len(s.sampled_ids))
        weights[own] = [w * share for w in s.weights]
        sequences[own] = [number + k] * len(s.sampled_ids)
        behaviour[own] = getattr(s, "logprobs", None) or behaviour[own]
        proximal[own] = getattr(s, "proximal", None) or proximal[own]
        first = max(getattr(s, "prompt_from", n), 1)
        if prompt_weight > 0 and first < n:
            weights[first:n] = [prompt_weight / (n - first)] * (n - first)
    first = next((k for k, w in enumerate(weights) if w), len(ids))
    return Row(ids, first, weights[first:], behaviour[first:], proximal[first:], sequences[first:])


def rows_of(samples: Sequence[Trainable], shares: Sequence[float] = (), prompt_weight: float = 0.0) -> list[Row]:
    """The rows of a step: one a chain (see `row_of`)."""
    rows, n = [], 0
    for chain in chains(samples):
        rows.append(row_of(chain, prompt_weight, shares[n : n + len(chain)], n))
        n += len(chain)
    return rows


def steps_of(chained: Sequence[Sequence[T]], size: int) -> list[list[T]]:
    """Cuts chains, unbroken, into the fewest optimiser steps of about `size` samples, as equal as can be: no small last
    part with a large share of the update."""
    total = sum(map(len, chained))
    parts: list[list[T]] = [[] for _ in range(-(-total // size))]
    seen = 0
    for chain in chained:
        parts[(2 * seen + len(chain)) * len(parts) // (2 * total)] += chain  # by the middle of the chain
        seen += len(chain)
    return [p for p in parts if p]


def shuffled(items: Sequence[T], rng: random.Random) -> list[T]:
    """A shuffled copy."""
    return rng.sample(items, len(items))


def micro_batches(rows: Sequence[Row], micro_tokens: int, device: torch.device | str = "cpu") -> list[MicroBatch]:
    """Sorts rows by length and packs them: at most `micro_tokens` padded tokens each; a longer row stands alone.

    Rows in which nothing is trained are left out, and so is what stands after the last trained token of a row.
    """
    cut = [(r, r.first + max(k for k, w in enumerate(r.weights) if w) + 1) for r in rows if any(r.weights)]
    cut.sort(key=lambda pair: pair[1])
    packs: list[list[Row]] = []
    for row, length in cut:
        if not packs or (len(packs[-1]) + 1) * length > micro_tokens:
            packs.append([])
        packs[-1].append(replace(row, ids=row.ids[:length]))
    return [_pad(pack, device) for pack in packs]


def _pad(rows: Sequence[Row], device: torch.device | str) -> MicroBatch:
    length = max(len(r.ids) for r in rows)
    trained = [
        (b * length + p - 1, row.ids[p], w, row.behaviour[k], row.proximal[k], row.sequences[k])
        for b, row in enumerate(rows)
        for k, (p, w) in enumerate(zip(range(row.first, len(row.ids)), row.weights, strict=False))
        if w
    ]
    at, target, weight, behaviour, proximal, sequence = zip(*trained, strict=True)
    ids = torch.tensor([r.ids + [0] * (length - len(r.ids)) for r in rows])
    real = torch.float32
    return MicroBatch(
        ids.to(device),
        torch.tensor(at).to(device),
        torch.tensor(target).to(device),
        torch.tensor(weight, dtype=real).to(device),
        torch.tensor(behaviour, dtype=real).to(device),
        torch.tensor(proximal, dtype=real).to(device),
        torch.tensor(sequence).to(device),
    )
