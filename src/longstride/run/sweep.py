"""Sweeps: a recipe under every combination of some settings, with several seeds.

What always holds: every combination is built before the first one is run, so a key that does not exist, or a value that
does not fit, costs nothing; the name of a run's folder says its settings, so a sweep that grows keeps what it has.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.run.experiment import Experiment

_STRING = r"""(?<!\w)(?:"(?:\\.|[^"\\])*"|'[^']*')"""
"""A string of TOML; a quote after a letter is an apostrophe."""
LONGEST = 250
"""Bytes that the name of a folder may have; systems take 255."""


def parse_axis(text: str) -> tuple[str, list[str]]:
    """`learner.lr=1e-4,3e-4` -> ("learner.lr", ["1e-4", "3e-4"]). A comma within brackets, braces or quotes, as TOML
    has them, parts nothing.

    Raises:
        ConfigError: no key, or fewer than two different values.
    """
    key, mark, values = text.partition("=")
    parts, depth = [""], 0
    for token in re.findall(_STRING + "|.", values, re.DOTALL):
        depth = max(0, depth + (token in "[{") - (token in "]}"))
        if token == "," and not depth:
            parts.append("")
        else:
            parts[-1] += token
    found = [part.strip() for part in parts if part]
    if not (key.strip() and mark) or len(set(found)) < max(2, len(found)):
        raise ConfigError(f"{text!r} is no axis of a grid; expected KEY=VALUE,VALUE with two different values or more")
    return key.strip(), found


def combinations(
    base: Experiment, axes: Mapping[str, Sequence[str]], seeds: Sequence[int], folder: Path
) -> dict[Path, Experiment]:
    """The runs of a sweep by folder.

    Args:
        base: what is swept.
        axes: by dotted key, values as they stand on a command line.
        seeds: of every combination.
        folder: below it stands `KEY=VALUE,...,seed=N`, with the last part of each key; where that is longer than a
            name can be, `KEY=K,...`, with the place of the value in its axis.

    Raises:
        ConfigError: an unknown key (the nearest one is named), or a value that does not fit; or two combinations of one
            name.
    """
    short = {key: key.rpartition(".")[2] for key in axes}
    if len(set(short.values())) < len(short) or "seed" in short.values():
        short = {key: key for key in axes}
    if "seed" in axes:
        raise ConfigError("seeds are no axis of a grid; say how many with --seeds")
    runs: dict[Path, Experiment] = {}
    for values in product(*axes.values()):
        settings = dict(zip(axes, values, strict=True))
        experiment = resolve(type(base), base, [f"{key}={value}" for key, value in settings.items()])
        shown = {short[key]: value for key, value in settings.items()}
        places = {short[key]: axes[key].index(value) for key, value in settings.items()}
        for seed in seeds:
            name = _name(shown | {"seed": seed})
            place = folder / (name if len(name.encode()) <= LONGEST else _name(places | {"seed": seed}))
            if place in runs:
                raise ConfigError(
                    f"two combinations would have one folder, {place.name}, in whose name every sign but letters, "
                    "digits and .,=+- is _; sweep them one after the other, in folders of their own"
                )
            runs[place] = experiment.replace(seed=seed)
    return runs


def folder_name(*parts: str) -> str:
    """The name of a run's folder, of parts such as KEY=VALUE; every sign but letters, digits and .,=+- is _."""
    return re.sub(r"[^\w.,=+-]", "_", ",".join(parts))


def _name(settings: Mapping[str, object]) -> str:
    return folder_name(*(f"{key}={value}" for key, value in settings.items()))
