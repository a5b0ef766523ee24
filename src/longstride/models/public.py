"""Shapes of a few public models, for plans on a machine that reaches no hub: their configurations as they are
published, and how many parameters the models are said to have. No weights, no torch.

What always holds: `config.json` in a folder comes first, then what stands here. Of Gemma 3, which sees, this is the
part that reads text.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longstride.core.errors import ConfigError, unknown

_QWEN3 = {"model_type": "qwen3", "vocab_size": 151_936, "num_key_value_heads": 8, "head_dim": 128}
_GEMMA3 = {"model_type": "gemma3_text", "vocab_size": 262_208, "sliding_window": 1024, "tie_word_embeddings": True}
_LLAMA3 = {"model_type": "llama", "vocab_size": 128_256, "num_key_value_heads": 8, "rms_norm_eps": 1e-5}
_NAMES = "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"


def _shape(family: dict[str, Any], sizes: tuple[int, int, int, int], billions: float, **more: Any) -> Any:
    return family | dict(zip(_NAMES, sizes, strict=True)) | more, billions


PUBLIC: dict[str, tuple[dict[str, Any], float]] = {
    "Qwen/Qwen3-0.6B": _shape(_QWEN3, (1024, 28, 16, 3072), 0.596, tie_word_embeddings=True),
    "Qwen/Qwen3-1.7B": _shape(_QWEN3, (2048, 28, 16, 6144), 1.72, tie_word_embeddings=True),
    "Qwen/Qwen3-4B": _shape(_QWEN3, (2560, 36, 32, 9728), 4.02, tie_word_embeddings=True),
    "Qwen/Qwen3-8B": _shape(_QWEN3, (4096, 36, 32, 12_288), 8.19, tie_word_embeddings=False),
    "Qwen/Qwen3-14B": _shape(_QWEN3, (5120, 40, 40, 17_408), 14.8, tie_word_embeddings=False),
    "Qwen/Qwen3-32B": _shape(_QWEN3, (5120, 64, 64, 25_600), 32.8, tie_word_embeddings=False),
    "google/gemma-3-4b-it": _shape(_GEMMA3, (2560, 34, 8, 10_240), 3.88, num_key_value_heads=4, head_dim=256),
    "google/gemma-3-12b-it": _shape(_GEMMA3, (3840, 48, 16, 15_360), 11.77, num_key_value_heads=8, head_dim=256),
    "google/gemma-3-27b-it": _shape(_GEMMA3, (5376, 62, 32, 21_504), 27.0, num_key_value_heads=16, head_dim=128),
    "meta-llama/Llama-3.2-1B": _shape(_LLAMA3, (2048, 16, 32, 8192), 1.24, head_dim=64, tie_word_embeddings=True),
    "meta-llama/Llama-3.2-3B": _shape(_LLAMA3, (3072, 28, 24, 8192), 3.21, head_dim=128, tie_word_embeddings=True),
    "meta-llama/Llama-3.1-8B": _shape(_LLAMA3, (4096, 32, 32, 14_336), 8.03, head_dim=128, tie_word_embeddings=False),
}
"""By their names on the hub: what `config.json` has of the shape, and billions of parameters."""


@contextmanager
def described(name: str) -> Iterator[str]:
    """A name under which the configuration of a model can be read without a hub: itself where it is a folder or one of
    `models.load.SHIPPED`, else a folder that is gone afterwards.

    Raises:
        ConfigError: it is none of these.
    """
    from longstride.models.load import folder_of

    if folder_of(name) is not None:
        yield name
    elif name in PUBLIC:
        with TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps(PUBLIC[name][0]), encoding="utf-8")
            yield folder
    else:
        raise ConfigError(
            f"{unknown('model', name, PUBLIC)}; or give a folder with the config.json of the model: no weights are read"
        )
