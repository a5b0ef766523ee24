"""Low-rank adapters (LoRA, Hu et al., arXiv 2106.09685), by way of peft: what is trained in place of the weights.

What always holds: the weights of the adapted model stay as they are, bit for bit; an adapter starts as nothing, so that
the adapted model gives the logits of the model; `merged` is an ordinary model of the same architecture, which engines
and checkpoints take. Neither peft nor torch is imported before an adapter is made.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.core.errors import ConfigError
from longstride.core.seeds import derive
from longstride.models.lora import LoRA

if TYPE_CHECKING:
    from torch import nn


TUNER, NAME = "_longstride_tuner", "default"
"""Where an adapted model keeps the object that put the adapters in, and what peft calls them."""
MAMBA = frozenset(("falcon_h1", "falcon_mamba", "mamba", "mamba2", "nemotron_h"))
"""Models, by their `model_type`, of which peft refuses some layers."""


def adapt(model: "nn.Module", lora: LoRA, seed: int = 0) -> None:
    """Puts adapters into a model, in place, and leaves them alone with `requires_grad`. Their first values are of a
    run's `seed` and their own.

    Raises:
        ConfigError: peft is not installed, or the targets are no layers of the model.
    """
    try:
        from peft import LoraConfig
        from peft.tuners.lora import LoraModel
    except ImportError as e:
        raise ConfigError("learner.lora needs peft: pip install 'longstride[lora]'") from e
    import torch

    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    left_out = _not_adapted(model) if lora.targets == "all-linear" else []
    numbers: dict[str, Any] = {"r": lora.rank, "lora_alpha": lora.alpha}
    config: Any = LoraConfig(**numbers, target_modules=targets, exclude_modules=left_out or None)
    with torch.random.fork_rng():  # peft draws from the global generator
        torch.manual_seed(derive(seed, "lora", lora.seed))
        try:
            # among what belongs to the model and is no part of it: no parameter gets a second name, and copies have it
            model.__dict__[TUNER] = LoraModel(model, config, NAME)
            for p in (p for p in model.parameters() if p.requires_grad and p.element_size() < 4):
                p.data = p.data.float()  # 16 bits would lose most of an update
        except ValueError as e:
            raise ConfigError(f"learner.lora.targets {lora.targets!r} do not fit the model: {e}") from e


def _not_adapted(model: "nn.Module") -> list[str]:
    """Linear layers of a model that cannot have adapters: routers of experts, which answer with more than a tensor, and
    those whose weights Mamba's kernels read by themselves."""
    from torch import nn

    mamba = getattr(getattr(model, "config", None), "model_type", "") in MAMBA
    return [
        name
        for name, m in model.named_modules()
        if (isinstance(m, nn.Linear) and "Router" in type(m).__name__)
        or (mamba and name.rpartition(".")[2] in ("out_proj", "conv1d"))
    ]


def merged(model: "nn.Module", in_place: bool = False) -> "nn.Module":
    """A copy of an adapted model in which W + (alpha / rank) B A stands in the place of W, without adapters; or the
    model itself, so changed, where it is not needed any more as it was."""
    plain = model if in_place else copy.deepcopy(model)
    return plain.__dict__.pop(TUNER).merge_and_unload().requires_grad_(True)


def is_adapted(model: "nn.Module") -> bool:
    """Whether `adapt` has put adapters into a model."""
    return TUNER in model.__dict__


def save_adapters(model: "nn.Module", folder: Path, base: str) -> None:
    """Saves the adapters alone, as `peft.PeftModel.from_pretrained` loads them onto the model called `base`."""
    from peft.utils import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = copy.deepcopy(model.__dict__[TUNER].peft_config[NAME])
    config.base_model_name_or_path, config.inference_mode, config.task_type = base, True, "CAUSAL_LM"
    config.save_pretrained(folder)
    found = get_peft_model_state_dict(model, model.state_dict(), NAME)
    tensors = {f"base_model.model.{name}": tensor.detach().contiguous() for name, tensor in found.items()}
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})


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
