"""Drawing tokens from logits.

What always holds: a token is drawn by inverting its cumulative distribution at one uniform number, which is made of the
request's seed and the token's index; its log-probability is that under the very distribution it was drawn from.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from longstride.core.errors import EngineFailure
from longstride.engines.base import Request

NUCLEUS = 8
"""Tokens that a nucleus is looked for in before a row's whole vocabulary is sorted, which takes many times as long."""
GOLDEN = 0x9E3779B97F4A7C15
"""Step of splitmix64 (Steele, Lea and Flood 2014)."""


def draw(logits_R_V: Tensor, requests: Sequence[Request], indices: Sequence[int]) -> tuple[list[int], list[float]]:
    """One token for each row by inverting its cumulative distribution at one uniform number.

    The nucleus (Holtzman et al. 2020, section 3.1) is the smallest set of most likely tokens whose probability, at the
    given temperature, reaches top_p.

    Args:
        logits_R_V: float32.
        requests: of the rows, of which there may be none.
        indices: how many tokens each row has sampled before.

    Returns:
        tokens, and their log-probabilities under the distribution that they were drawn from.

    Raises:
        EngineFailure: a row has no finite distribution.
    """
    if not requests:
        return [], []
    temperature = [r.sampling.temperature for r in requests]
    greedy = [t <= 0 for t in temperature]
    if all(t in (0, 1) for t in temperature):
        chance = logits_R_V.softmax(-1)
    else:
        scale = [1.0 if t <= 0 else t for t in temperature]
        chance = (logits_R_V / logits_R_V.new_tensor(scale).unsqueeze(1)).softmax(-1)
    top_p = [r.sampling.top_p if r.sampling.top_p < 1 else 2.0 for r in requests]
    if min(top_p) < 1:
        limit = torch.tensor(top_p, dtype=torch.float64, device=chance.device).unsqueeze(1)
        chance = _nucleus(chance, limit, NUCLEUS)
    below = chance.cumsum(-1, dtype=torch.float64)
    total = below[:, -1:]
    uniform = torch.from_numpy(uniforms([r.seed for r in requests], indices)).to(below.device).unsqueeze(1)
    # the first token whose cumulative probability exceeds u: never one of probability 0, since u < total
    token = torch.searchsorted(below, uniform * total, right=True).clamp_(max=below.shape[1] - 1)
    if any(greedy):
        best = logits_R_V.argmax(-1, keepdim=True)
        token = torch.where(torch.tensor(greedy, device=best.device).unsqueeze(1), best, token)
    logprob = (chance.gather(1, token) / total).log()
    # one tensor, as a device is waited for once; ids are exact in float64
    tokens, logprobs, totals = torch.cat([token.double(), logprob, total], 1).T.tolist()
    if not np.isfinite(totals).all():
        raise EngineFailure("the model's logits are not finite; its weights have probably diverged")
    return [int(t) for t in tokens], [0.0 if g else p for g, p in zip(greedy, logprobs, strict=True)]


def _nucleus(chance_R_V: Tensor, limit_R_1: Tensor, size: int) -> Tensor:
    """Probabilities with zeros outside of each row's nucleus, which is looked for in `size` tokens first."""
    part = size < chance_R_V.shape[1]
    ranked, order = chance_R_V.topk(size) if part else chance_R_V.sort(descending=True, stable=True)
    below = ranked.cumsum(-1, dtype=torch.float64)
    kept = torch.zeros_like(chance_R_V).scatter(1, order, ranked.masked_fill(below - ranked >= limit_R_1, 0.0))
    if part and (short_R := below[:, -1] < limit_R_1[:, 0]).any():
        kept[short_R] = _nucleus(chance_R_V[short_R], limit_R_1[short_R], chance_R_V.shape[1])
    return kept


def uniforms(seeds: Sequence[int], indices: Sequence[int]) -> np.ndarray:
    """A number in [0, 1) for each pair of seed and index: splitmix64 at a place of its own, with 53 random bits."""
    seed = np.array([s & 0xFFFFFFFFFFFFFFFF for s in seeds], np.uint64)
    index = np.array(indices, np.uint64)
    bits = _mixed(_mixed(seed) + (index + np.uint64(1)) * np.uint64(GOLDEN))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(z: np.ndarray) -> np.ndarray:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
