"""AdamW whose moments take a byte each (Dettmers et al., arXiv 2110.02861), by torchao: a quarter of the memory.

What always holds: moments of 4096 values and more, in whole blocks of 256, are codes and a scale a block, and smaller
ones float32; both are saved as they are, so that a resume is exact. Run on a CPU with torchao 0.18; no step was
taken on a GPU yet.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from longstride.core.errors import ConfigError, MissingExtra, RunError
from longstride.learner.config import LearnerConfig
from longstride.learner.moments import SCALES, checked_moments

BLOCK = 256
"""Values that share a scale."""
SCALE = "_scale"
"""What follows the name of a moment in the name of its scales."""


def adamw_8bit(parameters: Iterable[Tensor], config: LearnerConfig) -> Any:
    """The optimiser.

    Raises:
        MissingExtra: torchao is not installed.
        ConfigError: parameters are sharded.
    """
    if config.sharded:
        raise ConfigError("learner.optimiser: adamw_8bit does not go with learner.sharded; leave one of them out")
    try:
        from torchao.optim import AdamW8bit  # pyright: ignore[reportMissingImports]
    except ImportError as e:
        raise MissingExtra("learner.optimiser = 'adamw_8bit' needs torchao: pip install 'longstride[torchao]'") from e
    return AdamW8bit(list(parameters), config.lr, config.betas, weight_decay=config.weight_decay, block_size=BLOCK)


def plain(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A parameter's moments as plain tensors, codes and scales apart."""
    found: dict[str, Tensor] = {}
    for key, value in state.items():
        codes: Any = value
        found |= {key: codes.codes, key + SCALE: codes.scale} if hasattr(value, "codes") else {key: value}
    return found


def quantised(found: Mapping[str, Tensor], p: Tensor, name: str) -> dict[str, Any]:
    """The moments of parameter `p`, called `name`, as torchao keeps them, of what `plain` gave.

    Raises:
        RunError: they are those of another optimiser, or no moments.
    """
    from torchao.optim.subclass_8bit import OptimState8bit  # pyright: ignore[reportMissingImports]

    coded = p.numel() >= 4096 and p.numel() % BLOCK == 0
    if coded != all(key in found for key in SCALES):
        raise RunError(f"optimiser state of another optimiser: {name}; resume with the run's own learner.optimiser")
    checked = checked_moments({k: v for k, v in found.items() if k not in SCALES}, p, name)
    made: dict[str, Any] = {k: v if coded or k == "step" else v.to(p.device, copy=True) for k, v in checked.items()}
    for key in made if coded else ():
        if key != "step":
            kept: Any = OptimState8bit.zeros(p.shape, key == "exp_avg", BLOCK, p.device, dtype=p.dtype)
            if made[key].dtype != torch.uint8 or found[key + SCALE].shape != kept.scale.shape:
                raise RunError(f"optimiser state is damaged: {key}/{name} is no code with a scale a block")
            kept.codes.copy_(made[key])
            kept.scale.copy_(found[key + SCALE])
            made[key] = kept
    return made
