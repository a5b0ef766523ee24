"""Merged policies: the mean of the weights of two models of one architecture, such as one that thinks for long and one
that answers at once (Kimi k1.5, arXiv 2501.12599, section 2.4), or a policy before and after training."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.core.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from longstride.models.load import Policy


def merge(first: "Policy", second: "Policy", share: float = 0.5) -> "Policy":
    """A policy whose weights are `share` of the first one's and the rest of the second one's.

    Raises:
        ConfigError: `share` is not in [0, 1].
        ModelError: they have other tokenizers, or other parameters.
    """
    import torch

    if not 0 <= share <= 1:
        raise ConfigError(f"share is the first model's part of the weights, from 0 to 1; got {share}")
    if first.tokenizer.get_vocab() != second.tokenizer.get_vocab():
        raise ModelError(f"{first.name} and {second.name} have other tokenizers; merge models that share one")
    mine, theirs = (dict[str, Any](policy.model.named_parameters()) for policy in (first, second))
    for name in [*mine, *theirs]:
        shapes = [tuple(of[name].shape) if name in of else None for of in (mine, theirs)]
        if shapes[0] != shapes[1]:
            raise ModelError(
                f"{first.name} and {second.name} are no models of one shape: {name} is {shapes[0]} in one and "
                f"{shapes[1]} in the other"
            )
    with torch.no_grad():
        for name, weights in mine.items():
            weights.lerp_(theirs[name].to(weights), 1 - share)
    return replace(first, name=f"{first.name} + {second.name}")


def merge_folders(first: str, second: str, folder: Path | str, share: float = 0.5) -> Path:
    """Writes the merger of two models (`base`, folders, names on the hub) as a model folder."""
    from longstride.models.load import load_policy, save_policy

    save_policy(merge(load_policy(first), load_policy(second), share), Path(folder))
    return Path(folder)
