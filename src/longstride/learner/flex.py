"""Attention over packed rows and trees by FlexAttention: one kernel that skips every block of keys that no token of a
block of queries may see. For CUDA, where gathers are slow (`tree_attention` has them for the CPU).

What always holds: a token sees its ancestors and itself (within the layer's window) and nothing else, so a row of
several documents is a forest of several roots.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

if TYPE_CHECKING:
    from longstride.learner.tree_attention import Forest

BLOCK = 128
"""Queries and keys of a block, which is the kernel's own."""


def block_mask(depth_N: np.ndarray, end_N: np.ndarray, window: int | None, device: torch.device) -> BlockMask:
    """Who sees whom of N tokens in depth-first order (see `tree_attention.Forest`).

    Which blocks are empty, and which are seen by all, is read off the places where subtrees end: nothing of size N x N
    is made.
    """
    n = len(depth_N)
    blocks = -(-n // BLOCK)
    ends = np.zeros(blocks * BLOCK, np.int64)
    ends[:n] = end_N
    latest = ends.reshape(blocks, BLOCK).max(1)
    ends[n:] = blocks * BLOCK  # what stands behind the last token is masked as a query
    earliest = ends.reshape(blocks, BLOCK).min(1)
    first = np.arange(blocks) * BLOCK
    query, key = np.indices((blocks, blocks))
    seen = (key <= query) & (latest[key] > first[query])
    full = (key < query) & (earliest[key] >= first[query] + BLOCK) & (window is None)
    depth, end = torch.from_numpy(depth_N).to(device), torch.from_numpy(end_N).to(device)

    def visible(batch: Tensor, head: Tensor, i: Tensor, j: Tensor) -> Tensor:
        within = (j <= i) & (i < end[j])
        return within if window is None else within & (depth[i] - depth[j] < window)

    some, all_ = (_listed(chosen, device) for chosen in (seen & ~full, full))
    return BlockMask.from_kv_blocks(*some, *all_, BLOCK_SIZE=BLOCK, mask_mod=visible, seq_lengths=(n, n))


def attend_flex(
    query: Tensor, key: Tensor, value: Tensor, forest: "Forest", window: int | None, scaling: float | None
) -> Tensor:
    """Outputs of shape (1, heads, N, size); arguments are those of `tree_attention.attend`."""
    mask = forest.known_masks.get(window)
    if mask is None:
        mask = forest.known_masks[window] = block_mask(*forest.shape, window, query.device)
    kernel: Any = _compiled() if query.is_cuda else flex_attention
    return kernel(query, key, value, block_mask=mask, scale=scaling, enable_gqa=query.shape[1] != key.shape[1])


@cache
def _compiled() -> Any:
    """Compiled once for all lengths."""
    return torch.compile(flex_attention, dynamic=True)


def _listed(chosen: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """How many blocks of keys each block of queries reads, and their numbers, padded: (1, 1, Q) and (1, 1, Q, K)."""
    order = np.argsort(~chosen, axis=1, kind="stable")
    counts = chosen.sum(1)
    found = (torch.from_numpy(x.astype(np.int32)).to(device)[None, None] for x in (counts, order))
    counted, numbers = found
    return counted, numbers
