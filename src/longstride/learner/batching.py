"""Batches: samples become rows of ids with a list of trained tokens, and rows become micro-batches.

What always holds: a token is trained only where its advantage or a coefficient of the loss is not zero; padding stands
on the right, so that under causal attention it touches nothing; how rows are cut, merged and packed into micro-batches
changes the loss by rounding alone; the tokens of one sample are in one micro-batch, in order. Streams pass through by
name: what they mean is not known here (see `longstride.methods`).
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from longstride.core.content import Media, by_placeholder, placed
from longstride.learner.packing import Row, TrainedToken, merged, trees
from longstride.learner.tree_attention import Forest
from longstride.methods.base import ADVANTAGES, Sample

T = TypeVar("T")


class StreamTable:
    """The streams of all N sampled tokens of a step, in the order of samples.

    Args:
        samples: all of the step. A stream that some of them lack is nan there.
        coefficients: further streams, one number a sample (`methods.Loss.coefficients`).
        shares: of each sample, what its advantages and coefficients are multiplied by (`methods.Aggregation`); 1 if
            left out.
        everything: whether every token counts as trained, also one of advantage 0.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        coefficients: Mapping[str, Sequence[float]] | None = None,
        shares: Sequence[float] = (),
        everything: bool = False,
    ) -> None:
        sizes = [len(s.sampled_ids) for s in samples]
        self.media = by_placeholder(m for s in samples for m in s.media)
        """What placeholders in prompts stand for."""
        self.starts = list(accumulate(sizes, initial=0))
        """Of each sample, the place of its first token."""
        self.sequence_N = np.repeat(np.arange(len(samples)), sizes)
        share_N = np.repeat(np.asarray(shares or [1.0] * len(samples), float), sizes)
        names = dict.fromkeys(name for s in samples for name in s.streams)
        self._streams: dict[str, np.ndarray] = {
            name: np.concatenate(
                [np.asarray(s.streams.get(name, [np.nan] * len(s.sampled_ids)), float) for s in samples]
            )
            for name in names
        }
        weights = {name: np.repeat(np.asarray(c, float), sizes) for name, c in (coefficients or {}).items()}
        advantages_N = self._streams.get(ADVANTAGES, np.zeros(0))
        self.trained_N = np.logical_or.reduce([advantages_N != 0, *(w != 0 for w in weights.values())]) | everything
        """Which tokens are trained."""
        self._streams |= {name: w * share_N for name, w in weights.items()} | {ADVANTAGES: advantages_N * share_N}

    def at(self, index_P: np.ndarray, device: torch.device | str) -> dict[str, Tensor]:
        """The streams at P places, float32."""
        return {
            name: torch.from_numpy(stream_N[index_P].astype(np.float32)).to(device)
            for name, stream_N in self._streams.items()
        }


@dataclass(slots=True)
class MicroBatch:
    """Rows, and the places whose next token is trained (P of them): paths padded to one length, or trees one after the
    other (B is 1)."""

    ids_B_L: Tensor
    at_P: Tensor
    """Index into the flattened B * L positions: the one *before* the trained token."""
    target_P: Tensor
    index_P: Tensor
    """Place of each token in the step's `StreamTable`."""
    sequence_P: Tensor
    """Number of the sample, among those of the step, that the token is of."""
    streams: dict[str, Tensor]
    """By name, (P,)."""
    forest: Forest | None = None
    """Who sees whom; None where rows do not branch."""
    entropy_P: Tensor | None = None
    """Set by `Likelihood` where it is asked for."""
    media: dict[int, Media] = field(default_factory=dict)
    """What each id below zero in `ids_B_L` stands for."""


def chains(samples: Sequence[Sample]) -> list[list[int]]:
    """Cuts into runs of neighbours, by number, in which each prompt goes on where the sample before it ended, token for
    token.

    The turns of an episode whose context only grows are one chain: T turns cost what they are long, not T times their
    history. Where the context is rebuilt every turn each sample is a chain of its own.
    """
    out: list[list[int]] = []
    end: list[int] = []
    for n, s in enumerate(samples):
        if out and len(s.prompt_ids) >= len(end) and s.prompt_ids[: len(end)] == end:
            out[-1].append(n)
        else:
            out.append([n])
        end = s.prompt_ids + s.sampled_ids
    return out


def row_of(samples: Sequence[Sample], chain: Sequence[int], table: StreamTable) -> Row:
    """The row of a chain of samples, which ends with the last trained token."""
    ids = samples[chain[-1]].prompt_ids + samples[chain[-1]].sampled_ids
    tokens: list[TrainedToken] = []
    for n in chain:
        before, start = len(samples[n].prompt_ids) - 1, table.starts[n]
        said = samples[n].targets or samples[n].sampled_ids
        trained = np.flatnonzero(table.trained_N[start : table.starts[n + 1]]).tolist()
        if trained and before < 0:
            raise ValueError("a sample has no prompt: what its tokens were sampled after is not known")
        for k in trained:
            tokens.append(TrainedToken(before + k, said[k], start + k))
    return Row(ids[: max((t.at + 2 for t in tokens), default=0)], tokens)


def rows_of(samples: Sequence[Sample], table: StreamTable, branch_tokens: int = 0) -> list[Row]:
    """The rows of a step.

    Args:
        samples: all of the step.
        table: their streams.
        branch_tokens: tokens that a branched row may have; 0 where rows must not branch.
    """
    rows = [row_of(samples, chain, table) for chain in chains(samples)]
    trained = [row for row in rows if row.tokens]
    return [merged([trained[k] for k in tree]) for tree in trees([row.ids for row in trained], branch_tokens)]


def units(samples: Sequence[Sample], table: StreamTable, branch_tokens: int, most: int) -> list[list[Sample]]:
    """What an epoch shuffles as one: chains that will share a row, as long as they are no more than `most` samples, and
    the samples of a pair.

    So the siblings of a group meet in one optimiser step where they share their prompt. Without branches a unit is a
    chain, as long as it may be.
    """
    chained = chains(samples)
    ids = [row_of(samples, chain, table).ids for chain in chained]
    found = [
        [n for k in sorted(tree) for n in chained[k]]
        for tree in trees(ids, branch_tokens, [len(c) for c in chained], most)
    ]
    return [[samples[n] for n in unit] for unit in _with_partners(found, samples)]


def _with_partners(units: Sequence[list[int]], samples: Sequence[Sample]) -> list[list[int]]:
    """Units of sample numbers, joined where a pair lies across two of them."""
    joined: dict[int, list[int]] = {}
    home: dict[int, int] = {}
    for number, unit in enumerate(units):
        others = {home[samples[n].pair] for n in unit if samples[n].pair in home}
        members = [n for other in sorted(others) for n in joined.pop(other)] + unit
        key = min(others, default=number)
        joined[key] = members
        home |= {samples[n].pair: key for n in members if samples[n].pair >= 0}
    return list(joined.values())


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


def packs(rows: Sequence[Row], micro_tokens: int, packed: bool = False, padded: bool = True) -> list[list[Row]]:
    """Sorts rows by length and cuts them into parts of at most `micro_tokens` padded tokens; a longer row stands alone.
    Rows that branch are apart from those that do not; they need no padding, and none does where all are `packed`. Where
    rows must not be `padded`, those of a part have one length."""
    out: list[list[Row]] = []
    for branched in (True,) if packed else (False, True):
        part: list[Row] = []
        for row in sorted((r for r in rows if packed or bool(r.ends) == branched), key=lambda r: len(r.ids)):
            tokens = sum(len(r.ids) for r in part) if branched else len(part) * len(row.ids)
            apart = not (padded or branched) and part and len(part[0].ids) < len(row.ids)
            if not part or apart or tokens + len(row.ids) > micro_tokens:
                part = []
                out.append(part)
            part.append(row)
    return out


def micro_batch(
    rows: Sequence[Row], table: StreamTable, device: torch.device | str = "cpu", packed: bool = False
) -> MicroBatch:
    """Rows as tensors, each with at least one trained token; either all of them branch or none, unless all are
    `packed`."""
    length, branched = max(len(r.ids) for r in rows), packed or bool(rows[0].ends)
    starts: Iterable[int] = (
        accumulate((len(r.ids) for r in rows), initial=0) if branched else range(0, length * len(rows), length)
    )
    starts = list(starts)
    at = [start + t.at for row, start in zip(rows, starts, strict=False) for t in row.tokens]
    target = [t.target for row in rows for t in row.tokens]
    index_P = np.array([t.index for row in rows for t in row.tokens])
    if branched:
        ids = [[i for row in rows for i in row.ids]]
        ends = [start + e for r, start in zip(rows, starts, strict=False) for e in r.ends or [len(r.ids)] * len(r.ids)]
        forest = Forest([depth for r in rows for depth in r.depths or range(len(r.ids))], ends, device)
    else:
        ids, forest = [r.ids + [0] * (length - len(r.ids)) for r in rows], None
    ids_B_L = torch.tensor(ids)
    media = placed(ids_B_L[ids_B_L < 0].unique().tolist(), table.media)
    return MicroBatch(
        ids_B_L.to(device),
        torch.tensor(at).to(device),
        torch.tensor(target).to(device),
        torch.from_numpy(index_P).to(device),
        torch.from_numpy(table.sequence_N[index_P]).to(device),
        table.at(index_P, device),
        forest,
        media=by_placeholder(media),
    )
