"""Whether sampler and learner agree: what the mean difference of their log-probabilities says of a run."""

import warnings
from collections.abc import Sequence

from longstride.core.errors import LongstrideWarning
from longstride.core.trajectory import Trajectory
from longstride.engines.config import Local
from longstride.methods.ratios import RatioLoss
from longstride.run.recipe import Recipe

LARGEST_GAP = 0.05
"""Nats: engines in bfloat16 are some 0.02 off a float32 learner."""


def warn_of_gap(recipe: Recipe, iteration: int, chosen: Sequence[Trajectory], gap: float) -> None:
    """Warns of a gap (nats) above the bound, and names what lessens it. Nothing is said of tokens that an older policy
    sampled, nor where they were drawn from another distribution than the policy's own."""
    if gap <= LARGEST_GAP:
        return
    drawn = (recipe.sampling.temperature, recipe.sampling.top_p)
    if drawn != (1.0, 1.0) or any(v != iteration - 1 for t in chosen for turn in t.turns for v in turn.versions):
        return
    remedies = [] if recipe.learner.float32_head else ["learner.float32_head=true"]
    if isinstance(recipe.engine, Local):
        remedies += [] if recipe.engine.float32_head else ["engine.float32_head=true"]
        remedies.append("engine.dtype=float32")
    loss = recipe.at(iteration).loss
    if not isinstance(loss, RatioLoss):
        remedies.append("a loss with a ratio, such as loss.type=cispo (truncated importance sampling)")
    elif loss.correction is None:
        remedies.append("loss.correction={mode='truncate'} (truncated importance sampling)")
    warnings.warn(
        f"iteration {iteration}: the learner's log-probabilities are {gap:.3f} nats off the sampler's on average, so "
        f"that it trains another policy than the one that acted; set {', or '.join(remedies) or 'weights=float32'}",
        LongstrideWarning,
        stacklevel=3,
    )
