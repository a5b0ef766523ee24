"""Devices: where a run's models compute, and in which type their weights are kept.

What always holds: a device that is named is used or refused; `auto` is CUDA where there is one, then MPS, then the CPU;
a model of up to `TINY` parameters is timed on both first, and stays on the CPU where that is faster.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from longstride.core.errors import ConfigError
from longstride.models.load import folder_of
from longstride.models.size import check_size

TINY = 50_000_000
"""Parameters up to which a CPU may be the faster place: a pass of a tiny model on a GPU is the launching of kernels
(1,633 of them in a decoding pass of a 0.6B model on an H100, two thirds of its time)."""
DECODED, STEPS, TRAINED = 64, 16, (8, 128)
"""What is timed: passes of one token of so many rows, how many of them, and rows and tokens of a training pass."""


def available() -> str:
    """The device that `auto` means on this machine for a model that is not tiny."""
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def settled_device(device: str, model: str) -> str:
    """The device of a setting, for a model as `Recipe.model` names it.

    Under torchrun nothing is timed, so that all processes decide the same.

    Raises:
        ConfigError: the device that is named is not there.
    """
    if device != "auto":
        return _there(device)
    there = available()
    if there == "cpu" or int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return there
    return there if not is_tiny(model) else fastest(("cpu", there), lambda d: seconds_on(d, model))


def place_of(model: torch.nn.Module, device: str) -> str:
    """The device of a setting, for a model that is trained from nothing: a tiny one stays on the CPU under `auto`.

    Raises:
        ConfigError: the device that is named is not there.
    """
    if device == "auto" and sum(p.numel() for p in model.parameters()) <= TINY:
        return "cpu"
    return _there(device)


def device_here(device: str, model: str) -> str:
    """The same for a model that was trained elsewhere: a device that is not here counts as `auto`."""
    return settled_device(device if device in ("cpu", available()) else "auto", model)


def settled_weights(weights: str, device: str, trained: bool) -> str:
    """Type in which the policy's weights are kept.

    `auto` is float32, and bfloat16 on CUDA where the weights themselves are not trained (adapters are): a weight in
    bfloat16 has 8 bits, so that an update below 1/256 of it is lost.
    """
    if weights != "auto":
        return weights
    return "bfloat16" if device == "cuda" and not trained else "float32"


def _there(device: str) -> str:
    """What a setting names, or the device that is there under `auto`.

    Raises:
        ConfigError: the device that is named is not there.
    """
    there = available()
    if device not in ("auto", "cpu", there):
        raise ConfigError(f"device is {device!r}, and torch finds none here ({there} alone); set device=auto")
    return there if device == "auto" else device


def described(device: str) -> str:
    """A device's name and memory, for a person."""
    if device != "cuda":
        return {"cpu": f"CPU, {torch.get_num_threads()} threads", "mps": "Apple GPU (mps)"}[device]
    free, total = torch.cuda.mem_get_info()
    return f"{torch.cuda.get_device_name()} (cuda), {free / 2**30:.1f} of {total / 2**30:.1f} GiB free"


def skeleton_of(model: str, dtype: torch.dtype = torch.float32) -> Any:
    """A model as its configuration describes it, without memory (on torch's meta device): no weights are read.

    Raises:
        ConfigError: the configuration cannot be read.
        ModelError: it describes far more than the weights beside it hold.
    """
    folder = folder_of(model)
    if folder is not None:
        check_size(model, folder)
    try:
        config = AutoConfig.from_pretrained(str(folder or model), trust_remote_code=False)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=False)
    except Exception as e:  # whatever the library has for missing, foreign, absurd or unreachable files
        raise ConfigError(f"the configuration of {model!r} cannot be read ({type(e).__name__}: {str(e)[:200]})") from e


def is_tiny(model: str) -> bool:
    """Whether a model has at most `TINY` parameters, by its configuration."""
    return sum(p.numel() for p in skeleton_of(model).parameters()) <= TINY


def fastest(devices: tuple[str, ...], seconds: Callable[[str], float]) -> str:
    """The device on which the work takes the fewest seconds; the first of equals."""
    return min(devices, key=seconds)


def seconds_on(device: str, model: str) -> float:
    """Seconds of a little of a run's work on a device, by a model of this configuration with random weights: passes as
    in sampling, and one forward and backward pass; after one round that is not counted."""
    # on the CPU first: so the weights that are made have their values whatever the device
    made: Any = AutoModelForCausalLM.from_config(skeleton_of(model).config).to(device).eval()
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        with torch.no_grad():
            ids = torch.zeros(DECODED, 1, dtype=torch.long, device=device)
            for _ in range(STEPS):
                made(ids, use_cache=False)
        try_on(made, *TRAINED)
        seconds = time.perf_counter() - began
    return seconds


def try_on(model: Any, rows: int = 2, length: int = 8) -> float:
    """A forward and a backward pass of a model where it is; returns the loss, and so waits for the device."""
    ids = torch.arange(rows * length, device=model.device).view(rows, length) % 7
    loss = model(ids, use_cache=False).logits.float().log_softmax(-1)[..., 0].mean()
    loss.backward()
    model.zero_grad()
    return loss.item()
