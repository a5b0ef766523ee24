"""Packing: rows whose ids begin alike become one row, each token of a shared prefix in it once.

The rows of a step form a trie. The turns of an episode whose context only grows are one path of it; the siblings of a
group share their prompt; contexts that are rebuilt share their head. A branched `Row` is a part of the trie in
depth-first order: a token sees its ancestors and itself, so what is shared is computed once, forward and backward. What
always holds: every trained token of every sample is listed for itself, also where two samples trained the same token
at the same place; a row that does not branch is an ordinary sequence; the loss differs from that of one row a sample
by rounding alone. How rows are computed is not known here (see `batching`, `tree_attention`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from longstride.engines.cache import common_prefix

SHARED = 16
"""Least tokens of a shared prefix for which a row branches."""
SHARE = 0.25
"""Least part of a sequence that is shared where it branches off. A branched row does without the causal fast path: with
two siblings (2.4M parameters, a thread) sharing a fifth of 300 tokens is worth nothing, a third 1.05, a half 1.14 times
the speed, with eight 1.05, 1.25 and more; eight completions of 32 behind 300 shared tokens 4.5."""


class TrainedToken(NamedTuple):
    """A token whose log-probability is trained or read."""

    at: int
    """Place in its row of the token before it."""
    target: int
    index: int
    """Its place among all sampled tokens of the step, in the order of samples: where its numbers stand in a
    `batching.StreamTable`."""


@dataclass(slots=True)
class Row:
    """A sequence, or a tree of ids in depth-first order."""

    ids: list[int]
    tokens: list[TrainedToken]
    """In the order of samples and tokens."""
    depths: list[int] = field(default_factory=list)
    """Of each token: how many stand before it on its path. Empty where the row does not branch."""
    ends: list[int] = field(default_factory=list)
    """Of each token: the place after its last descendant, so that place i sees j where j <= i < ends[j]."""


def trees(
    sequences: Sequence[Sequence[int]], branch_tokens: int, sizes: Sequence[int] = (), most: int | None = None
) -> list[list[int]]:
    """Which sequences share a row.

    A sequence that another one starts with always joins it. One that branches off joins where the shared prefix is
    long enough (`SHARED`, `SHARE`) and the row stays within `branch_tokens`; else it begins a row, in which the prefix
    is repeated.

    Args:
        sequences: ids.
        branch_tokens: tokens that a branched row may have; 0 where rows must not branch.
        sizes: of the sequences, for `most`.
        most: sum of the sizes of a tree; a larger sequence stands alone.

    Returns:
        numbers of sequences, each in one tree, in lexicographic order of the ids (placeholders after all others);
        trees in the order of their first sequence.
    """
    keys = [np.array(ids, ">i8").tobytes() for ids in sequences]  # bytes compare a hundred times as fast as lists
    out: list[list[int]] = []
    before: Sequence[int] = ()
    tokens = size = 0
    branched = False
    for k in sorted(range(len(keys)), key=keys.__getitem__):
        ids, shared = sequences[k], common_prefix(before, sequences[k])
        branches = branched or shared < len(before)
        tokens += len(ids) - shared
        size += sizes[k] if sizes else 0
        pays = not branches or (tokens <= branch_tokens and shared >= max(SHARED, SHARE * len(ids)))
        if shared and pays and (most is None or size <= most):
            out[-1].append(k)
            branched = branches
        else:
            out.append([k])
            tokens, size, branched = len(ids), sizes[k] if sizes else 0, False
        before = ids
    return sorted(out, key=min)


def merged(rows: Sequence[Row]) -> Row:
    """The row of several paths in lexicographic order, the ids that neighbours share written once."""
    if len(rows) == 1:
        return rows[0]
    ids: list[int] = []
    depths: list[int] = []
    tokens: list[TrainedToken] = []
    path: list[int] = []
    ends = np.zeros(sum(len(row.ids) for row in rows), np.int64)
    before: list[int] = []
    for row in rows:
        shared = common_prefix(before, row.ids)
        ends[path[shared:]] = len(ids)
        path = path[:shared] + list(range(len(ids), len(ids) + len(row.ids) - shared))
        ids += row.ids[shared:]
        depths += range(shared, len(row.ids))
        tokens += [t._replace(at=path[t.at]) for t in row.tokens]
        before = row.ids
    if len(path) == len(ids):
        return Row(ids, tokens)
    ends[path] = len(ids)
    return Row(ids, tokens, depths, ends[: len(ids)].tolist())
