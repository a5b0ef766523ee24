"""Longstride: train, test and study agents whose interaction horizon scales. docs/architecture.md is the map of
the code."""

import os

import longstride.wings  # noqa: F401 (says where what stands in a wing is found)

__version__ = "0.2.0"

# oneDNN keeps a compiled primitive for every shape of a matrix product, 1024 of them if left alone. Batches of text
# have ever new shapes, so on a CPU the memory of a run grew by gigabytes for no speed. It is read when torch is loaded.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")
