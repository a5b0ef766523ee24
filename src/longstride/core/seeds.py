"""Randomness: every random stream is derived from the run's seed and a path of names, so that no two streams are shared
and adding a stream never changes another. No global generator is ever used."""

import hashlib
import random


def derive(seed: int, *path: str | int) -> int:
    """A 63-bit seed for the stream named by `path` under `seed`: stable across processes, platforms and versions."""
    text = ":".join([str(seed), *map(str, path)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stream(seed: int, *path: str | int) -> random.Random:
    """A `random.Random` of its own for the stream named by `path` under `seed`."""
    return random.Random(derive(seed, *path))
