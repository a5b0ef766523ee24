"""How large a model its `config.json` describes, compared with the weights beside it: before anything of that size is
made.

What always holds: the work of the check is bounded by the size of the files.
"""

import json
import math
from pathlib import Path
from typing import Any

from longstride.core.errors import ModelError, short

PACKED = 16
"""Weights that one stored number may stand for at most: quantised ones are packed, tied ones are stored once."""
MOST_HEADER = 100_000_000
"""Bytes of a safetensors header, as the format allows."""
MOST_CONFIG = 10_000_000
"""Bytes of a config.json."""
MOST_AXES = 16
"""Axes of a tensor."""
LAYERS = frozenset(("num_hidden_layers", "n_layer", "num_layers", "n_layers"))
WIDE = frozenset(("vocab_size", "hidden_size", "intermediate_size", "n_embd", "d_model", "ffn_dim", "n_inner"))
"""Settings of a config that a model has matrices of, beside its width."""
WIDTHS = ("hidden_size", "n_embd", "d_model")


def check_size(name: str, folder: Path) -> None:
    """Refuses a model folder whose config describes a model far larger than its weights.

    Args:
        name: what messages call the model.
        folder: with `config.json` and safetensors files; where these are missing the library says so.

    Raises:
        ModelError: what is described and what is there; or a file that cannot be read.
    """
    try:
        shapes = [shape for path in folder.glob("*.safetensors") for shape in _shapes(path)]
        config = _config(folder / "config.json")
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as e:
        raise ModelError(f"{name!r} cannot be loaded: {type(e).__name__}: {str(e)[:200]}") from e
    if not shapes:
        return
    stored = sum(map(math.prod, shapes))
    for part in (config, *(v for v in config.values() if isinstance(v, dict))):
        width = next((v for key in WIDTHS if isinstance(v := part.get(key), int)), 1)
        for key, value in part.items():
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            if key in LAYERS and value > len(shapes):
                raise ModelError(
                    f"{name!r}: config.json has {key} = {short(value, 40)}, and there are {len(shapes)} weights"
                )
            if key in WIDE and abs(value * width) > PACKED * stored:
                raise ModelError(
                    f"{name!r}: config.json has {key} = {short(value, 40)}, which does not fit the weights: they are "
                    f"{stored} numbers in all"
                )


def _config(path: Path) -> dict[str, Any]:
    if path.stat().st_size > MOST_CONFIG:
        raise ValueError(f"{path.name} has more than {MOST_CONFIG} bytes")
    found = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise TypeError(f"{path.name} is not an object")
    return found


def _shapes(path: Path) -> list[list[int]]:
    """The shapes of the tensors in a safetensors file, from its header (eight bytes of length, then JSON)."""
    with path.open("rb") as f:
        length = int.from_bytes(f.read(8), "little")
        if length > min(MOST_HEADER, path.stat().st_size):
            raise ValueError(f"{path.name} has no header")
        header = json.loads(f.read(length))
    if not isinstance(header, dict):
        raise TypeError(f"the header of {path.name} is not an object")
    shapes = [entry["shape"] for key, entry in header.items() if key != "__metadata__"]
    for shape in shapes:
        if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(map(_is_length, shape)):
            raise ValueError(f"{path.name} has a tensor of shape {short(shape, 40)}")
    return shapes


def _is_length(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**63
