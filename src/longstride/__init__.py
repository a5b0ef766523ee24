"""Longstride: train, test and study agents whose interaction horizon scales. docs/architecture.md is the map of
the code, docs/api.md lists what is public.

What always holds: importing the package imports nothing heavy: the public names are those of `__init__.pyi`, and the
module of each is imported when the name is first used.
"""

import ast
import functools
import importlib
import os
from pathlib import Path
from typing import Any

import longstride.wings  # noqa: F401 (says where what stands in a wing is found)

__version__ = "0.2.0"

# oneDNN keeps a compiled primitive for every shape of a matrix product, 1024 of them if left alone. Batches of text
# have ever new shapes, so on a CPU the memory of a run grew by gigabytes for no speed. It is read when torch is loaded.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")


@functools.cache
def _public() -> dict[str, str]:
    """The module of each public name."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_public())
    if name.startswith("_") or name not in _public():
        raise AttributeError(f"module 'longstride' has no attribute {name!r}")
    return globals().setdefault(name, getattr(importlib.import_module(_public()[name]), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *_public()})
