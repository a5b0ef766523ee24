"""Attention over trees: queries in blocks, each against the keys that one of its tokens may see.

Registered under `NAME` with the library's attention interface; a model runs it when `Forest` is passed along as
`forest`. What always holds: a token sees its ancestors and itself (within the layer's window) and nothing else; keys
that no token of a block may see cost nothing, so a prefix with many short branches costs about what each branch costs
behind the prefix. Nothing here knows of samples or losses.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from longstride.core.errors import ModelError
from longstride.learner.flex import attend_flex

NAME = "longstride-trees"
"""Name under which the attention is registered."""
BLOCK = 64
"""Queries of a block."""
FLEX = ["cuda"]
"""Devices on which FlexAttention has a backward pass: there it takes the place of gathers."""


class Forest:
    """Trees of one packed sequence of N tokens, in depth-first order.

    Args:
        depths: of each token, which is its position.
        ends: of each token, the place after its last descendant: place i sees j where j <= i < ends[j].
        device: of the model.
    """

    def __init__(self, depths: Sequence[int], ends: Sequence[int], device: torch.device | str) -> None:
        depth_N, end_N, n = np.asarray(depths), np.asarray(ends), len(depths)
        self.position_N = torch.from_numpy(depth_N).to(device)
        self.end_N = end_N
        self.known_masks: dict[Any, Any] = {}
        self.flex = self.position_N.device.type in FLEX
        """Whether FlexAttention computes it."""
        if self.flex:
            self.shape = depth_N, end_N
            return
        self._near: list[Tensor] = []
        """Of each block, (queries, keys): how many tokens before the query its ancestor stands; -1 for others."""
        keys = []
        for start in range(0, n, BLOCK):
            query_Q_1 = np.arange(start, min(start + BLOCK, n))[:, None]
            keys.append(np.flatnonzero(end_N[: start + BLOCK] > start))
            seen = (keys[-1] <= query_Q_1) & (query_Q_1 < end_N[keys[-1]])
            near = np.where(seen, depth_N[query_Q_1] - depth_N[keys[-1]], -1)
            self._near.append(torch.from_numpy(near).to(device))
        self.key = torch.from_numpy(np.concatenate(keys)).to(device)
        """Places of the keys of all blocks, one block after the other."""
        self.heights, self.widths = [len(b) for b in self._near], [b.shape[1] for b in self._near]

    def masks(self, window: int | None, like: Tensor) -> list[Tensor]:
        """What is added to the scores of each block: minus infinity where a token must not look."""
        key = (window, like.dtype)
        if key not in self.known_masks:
            far = window or len(self.position_N)
            self.known_masks[key] = [
                like.new_zeros(near.shape).masked_fill_((near < 0) | (near >= far), -torch.inf) for near in self._near
            ]
        return self.known_masks[key]


def attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    forest: Forest | None = None,
    sliding_window: int | None = None,
    **more: object,
) -> tuple[Tensor, None]:
    """Attention of one layer for packed queries (1, heads, N, size), keys and values (1, kv heads, N, size).

    Returns:
        outputs of shape (1, N, heads, size), and None for the weights.

    Raises:
        ModelError: the architecture asks for something that this attention does not do.
    """
    strange = [name for name in ("softcap", "s_aux", "position_bias", "head_mask") if more.get(name) is not None]
    if forest is None or attention_mask is not None or strange:
        raise ModelError(f"{type(module).__name__} asks for {', '.join(strange) or 'its own mask'} over trees")
    if forest.flex:
        return attend_flex(query, key, value, forest, sliding_window, scaling).transpose(1, 2), None
    # one gather for all blocks, as an embedding: of all ways to gather its backward pass is by far the fastest on a CPU
    keys, values = (
        nn.functional.embedding(forest.key, x[0].transpose(0, 1).flatten(1)).unflatten(1, (x.shape[1], -1))
        for x in (key, value)
    )
    keys = keys.transpose(0, 1).unsqueeze(0).split(forest.widths, 2)
    values = values.transpose(0, 1).unsqueeze(0).split(forest.widths, 2)
    grouped = query.shape[1] != key.shape[1]
    out = [
        nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=scaling, enable_gqa=grouped)
        for q, k, v, mask in zip(
            query.split(forest.heights, 2), keys, values, forest.masks(sliding_window, query), strict=True
        )
    ]
    return torch.cat(out, 2).transpose(1, 2), None


AttentionInterface.register(NAME, attend)
