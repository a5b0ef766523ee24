"""Batches: samples become rows of ids with an entry per trained token, and rows become micro-batches.

What always holds: a token is trained only where its weight or its penalty is not zero; padding stands on the right, so
that under causal attention it touches nothing; how rows are cut, merged and packed into micro-batches changes the loss
by rounding alone; the tokens of one sample are in one micro-batch, in order. Where weights come from is not known here
(see `longstride.methods`).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from longstride.learner.packing import Entry, Row, families, merged
from longstride.learner.tree_attention import Forest

T = TypeVar("T")
S = TypeVar("S", bound="Trainable")


class Trainable(Protocol):
    """What a batch is made of: an `methods.base.Sample`, or anything that looks like one.

    It may carry `prompt_from`: where in `prompt_ids` the newest observation starts; with a `prompt_weight` above 0 the
    tokens from there on are trained too (warm start). It may carry `logprobs`, `proximal` and `reference`, one a
    sampled token, for losses that read them.
    """

    prompt_ids: list[int]
    sampled_ids: list[int]
    weights: list[float]


@dataclass(slots=True)
class MicroBatch:
    """Rows, and the places whose next token is trained (P of them): paths padded to one length, or trees one after the
    other (B is 1)."""

    ids_B_L: Tensor
    at_P: Tensor
    """Index into the flattened B * L positions: the one *before* the trained token."""
    target_P: Tensor
    weight_P: Tensor
    behaviour_P: Tensor
    proximal_P: Tensor
    sequence_P: Tensor
    reference_P: Tensor
    penalty_P: Tensor
    forest: Forest | None = None
    """Who sees whom; None where rows do not branch."""


def chains(samples: Sequence[S]) -> list[list[S]]:
    """Cuts into runs of neighbours in which each prompt goes on where the sample before it ended, token for token.

    The turns of an episode whose context only grows are one chain: T turns cost what they are long, not T times their
    history. Where the context is rebuilt every turn each sample is a chain of its own.
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
    chain: Sequence[Trainable],
    prompt_weight: float = 0.0,
    shares: Sequence[float] = (),
    number: int = 0,
    penalties: Sequence[float] = (),
) -> Row:
    """The row of a chain of samples, which ends with the last trained token.

    With `prompt_weight` > 0 each prompt token from `sample.prompt_from` on has weight `prompt_weight` / (how many there
    are), the same length normalisation that a turn's own tokens have in filtered behaviour cloning.

    Args:
        chain: samples, each going on where the one before ended.
        prompt_weight: see above.
        shares: what each sample's weights are multiplied by (see `methods.Aggregation`); 1 if left out.
        number: of the first sample among those of the step.
        penalties: what the divergence of each sample's tokens from the reference weighs, before its share; 0 if left
            out.
    """
    ids = chain[-1].prompt_ids + chain[-1].sampled_ids
    entries: list[Entry] = []
    each_share, each_penalty = shares or [1.0] * len(chain), penalties or [0.0] * len(chain)
    for k, (s, share, penalty) in enumerate(zip(chain, each_share, each_penalty, strict=True), number):
        n, unknown = len(s.prompt_ids), [math.nan] * len(s.sampled_ids)
        first = max(getattr(s, "prompt_from", n), 1)
        if prompt_weight > 0 and first < n:
            each = prompt_weight / (n - first)
            entries += [Entry(at, ids[at + 1], each, math.nan, math.nan, k) for at in range(first - 1, n - 1)]
        behaviour = getattr(s, "logprobs", None) or unknown
        proximal = getattr(s, "proximal", None) or unknown
        reference = getattr(s, "reference", None) or unknown
        tokens = zip(s.sampled_ids, s.weights, behaviour, proximal, reference, strict=True)
        entries += [
            Entry(at, i, w * share, b, p, k, r, penalty * share)
            for at, (i, w, b, p, r) in enumerate(tokens, n - 1)
            if w or penalty
        ]
    return Row(ids[: max((e.at + 2 for e in entries), default=0)], entries)


def rows_of(
    samples: Sequence[Trainable],
    shares: Sequence[float] = (),
    prompt_weight: float = 0.0,
    branch_tokens: int = 0,
    penalties: Sequence[float] = (),
) -> list[Row]:
    """The rows of a step.

    Args:
        samples: all of the step.
        shares: see `row_of`.
        prompt_weight: see `row_of`.
        branch_tokens: tokens that a branched row may have; 0 where rows must not branch.
        penalties: see `row_of`.
    """
    rows, n = [], 0
    for chain in chains(samples):
        end = n + len(chain)
        rows.append(row_of(chain, prompt_weight, shares[n:end], n, penalties[n:end]))
        n = end
    trained = [row for row in rows if row.entries]
    return [merged([trained[k] for k in family]) for family in families([row.ids for row in trained], branch_tokens)]


def units(samples: Sequence[S], branch_tokens: int, most: int, penalties: Sequence[float] = ()) -> list[list[S]]:
    """What an epoch shuffles as one: chains that will share a row, as long as they are no more than `most` samples.

    So the siblings of a group meet in one optimiser step where they share their prompt. Without branches a unit is a
    chain, as long as it may be.
    """
    chained = chains(samples)
    sizes = [len(c) for c in chained]
    ids = [
        row_of(c, penalties=penalties[n : n + len(c)]).ids
        for n, c in zip(accumulate(sizes, initial=0), chained, strict=False)
    ]
    found = families(ids, branch_tokens, sizes, most)
    return [[s for k in sorted(family) for s in chained[k]] for family in found]


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


def packs(rows: Sequence[Row], micro_tokens: int) -> list[list[Row]]:
    """Sorts rows by length and cuts them into parts of at most `micro_tokens` padded tokens; a longer row stands alone.
    Rows that branch are apart from those that do not; they need no padding."""
    out: list[list[Row]] = []
    for branched in (False, True):
        part: list[Row] = []
        for row in sorted((r for r in rows if bool(r.ends) == branched), key=lambda r: len(r.ids)):
            padded = sum(len(r.ids) for r in part) if branched else len(part) * len(row.ids)
            if not part or padded + len(row.ids) > micro_tokens:
                part = []
                out.append(part)
            part.append(row)
    return out


def micro_batches(rows: Sequence[Row], micro_tokens: int, device: torch.device | str = "cpu") -> list[MicroBatch]:
    """The micro-batches of rows, each with at least one entry (see `packs`)."""
    return [micro_batch(part, device) for part in packs(rows, micro_tokens)]


def micro_batch(rows: Sequence[Row], device: torch.device | str = "cpu") -> MicroBatch:
    """Rows as tensors; either all of them branch or none."""
    length, branched = max(len(r.ids) for r in rows), bool(rows[0].ends)
    starts = (
        list(accumulate((len(r.ids) for r in rows), initial=0)) if branched else range(0, length * len(rows), length)
    )
    entries = [e._replace(at=start + e.at) for row, start in zip(rows, starts, strict=False) for e in row.entries]
    at, target, weight, behaviour, proximal, sequence, reference, penalty = zip(*entries, strict=True)
    if branched:
        ids = [[i for row in rows for i in row.ids]]
        ends = [start + end for row, start in zip(rows, starts, strict=False) for end in row.ends]
        forest = Forest([depth for row in rows for depth in row.depths], ends, device)
    else:
        ids, forest = [r.ids + [0] * (length - len(r.ids)) for r in rows], None
    real = torch.float32
    return MicroBatch(
        torch.tensor(ids).to(device),
        torch.tensor(at).to(device),
        torch.tensor(target).to(device),
        torch.tensor(weight, dtype=real).to(device),
        torch.tensor(behaviour, dtype=real).to(device),
        torch.tensor(proximal, dtype=real).to(device),
        torch.tensor(sequence).to(device),
        torch.tensor(reference, dtype=real).to(device),
        torch.tensor(penalty, dtype=real).to(device),
        forest,
    )
