"""What Adam keeps of a parameter, taken back from a checkpoint.

What always holds: a parameter has all of it or, where it was never trained, nothing; no value is one that Adam cannot
have: a step counter, means and means of squares in the parameter's shape.
"""

from collections.abc import Mapping

from torch import Tensor

from longstride.core.errors import RunError
from longstride.learner import parallel

MOMENTS = ("step", "exp_avg", "exp_avg_sq")
SCALES = ("exp_avg_scale", "exp_avg_sq_scale")
"""Of moments of 8 bits (`eight_bit`)."""


def taken_moments(found: Mapping[str, Tensor], p: Tensor, name: str) -> dict[str, Tensor]:
    """`checked_moments` as the optimiser keeps them, beside the parameter."""
    return {k: parallel.like(v, p, whole=k == "step") for k, v in checked_moments(found, p, name).items()}


def checked_moments(found: Mapping[str, Tensor], p: Tensor, name: str) -> dict[str, Tensor]:
    """The moments of parameter `p`, called `name`.

    Raises:
        RunError: one is missing or strange, of another shape, or impossible.
    """
    if found and set(found) != set(MOMENTS):
        raise RunError(f"optimiser state is damaged: {name} has {sorted(found)}, expected were {sorted(MOMENTS)}")
    for key, value in found.items():
        shape = () if key == "step" else tuple(p.shape)
        if tuple(value.shape) != shape:
            raise RunError(f"optimiser state of another model: {key}/{name} is {tuple(value.shape)}, not {shape}")
        if key != "exp_avg" and (value < 0).any():
            raise RunError(f"optimiser state is damaged: {key}/{name} is below zero")
    return dict(found)
