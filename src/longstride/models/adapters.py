"""Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685), by way of peft: what is trained in place of the weights.

What always holds: the weights of the adapted model stay as they are, bit for bit; an adapter starts as nothing, so that
the adapted model gives the logits of the model; `merged` is an ordinary model of the same architecture, which engines
and checkpoints take. Neither peft nor torch is imported before an adapter is made.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from longstride.core.component import Component
from longstride.core.errors import ConfigError

if TYPE_CHECKING:
    from torch import nn


class LoRA(Component):
    """W + (alpha / rank) B A for the chosen linear layers, with A and B trained. There is no dropout: what is trained
    is the distribution that was sampled from."""

    rank: Annotated[int, Field(ge=1)] = 16
    """Rows of A, columns of B."""
    alpha: Annotated[float, Field(gt=0)] = 32.0
    """Scale: the learning rate of the adapters in other words."""
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the linear layers (such as `q_proj`), a regular expression over their paths, or all but the head."""
    seed: int = 0
    """Seed of A's first values; B begins as 0."""


def adapt(model: "nn.Module", lora: LoRA) -> None:
    """Puts adapters into a model, in place, and leaves them alone with `requires_grad`.

    Raises:
        ConfigError: peft is not installed, or the targets are no layers of the model.
    """
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as e:
        raise ConfigError("learner.lora needs peft: pip install 'longstride[lora]'") from e
    import torch

    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    config: Any = LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules=targets)  # pyright: ignore[reportArgumentType]
    with torch.random.fork_rng():  # peft draws from the global generator
        torch.manual_seed(lora.seed)
        try:
            inject_adapter_in_model(config, model)
        except ValueError as e:
            raise ConfigError(f"learner.lora.targets {lora.targets!r} do not fit the model: {e}") from e


def merged(model: "nn.Module") -> "nn.Module":
    """A copy of an adapted model in which W + (alpha / rank) B A stands in the place of W, without adapters."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    plain = copy.deepcopy(model)
    for path, module in list(plain.named_modules()):
        if isinstance(module, BaseTunerLayer):
            module.merge()
            parent, _, name = path.rpartition(".")
            setattr(plain.get_submodule(parent), name, module.get_base_layer())
    return plain.requires_grad_(True)


@contextmanager
def without_adapters(model: "nn.Module") -> Iterator[None]:
    """Within it, an adapted model is the one that was adapted."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    layers = [m for m in model.modules() if isinstance(m, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)
