"""The form in which a claim's result is kept: final values by seed, with all that is needed to make them again.

Settings are whole, measured numbers have six significant digits: far below what seeds differ by. Curves stay in the run
folders. A result counts as long as its claim is what was run; from then on it is of an earlier form, says in `earlier`
what differs, and counts nowhere.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longstride.claims.claim import Claim, changed, differing
from longstride.core.component import build
from longstride.core.errors import ConfigError, RunError
from longstride.core.files import make_folder, write_atomically
from longstride.core.sealed import dumps
from longstride.run.experiment import Experiment

SETTINGS = ("recipe", "changes", "design", "chosen", "tried")
"""What was set instead of measured."""
FIELDS = ("name", "verdict", "ordering", "control", "recipe", "seeds", "effects", "control_effects", "arms", "commit")
"""What a result cannot be without."""
MEANS = re.compile(
    r"(.*\.)?(engine(\..*)?|learner\.(micro_tokens|checkpointing|sharded|kernels|threads|packed|head|compile|float32_head))"
)
"""Settings of what a run and its parts are computed with: they decide the last bits of its numbers, and not what is
claimed."""
DIGITS = 6
"""Significant digits of what was measured."""


def is_means(place: str) -> bool:
    """Whether a dotted setting says what a run is computed with."""
    return MEANS.fullmatch(place) is not None


def without_means(value: Any, path: str = "") -> Any:
    """What stands under a dotted path, without the settings in it that say what a run is computed with."""
    if isinstance(value, list):
        return [without_means(of, path) for of in value]
    if not isinstance(value, Mapping):
        return value
    places = {key: f"{path}.{key}" if path else key for key in value}
    return {key: without_means(of, places[key]) for key, of in value.items() if not is_means(places[key])}


def write_kept(path: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a result, or what is frozen of a claim, to `path` with a line for each arm, relation and setting, and
    returns what is written: measured numbers are rounded."""
    rounded = _rounded(result)
    make_folder(path.parent)
    write_atomically(path, _lines(rounded) + "\n")
    return rounded


def read_kept(path: Path) -> dict[str, Any]:
    """The result at `path`.

    Raises:
        RunError: the file is damaged.
    """
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        if lacking := [key for key in FIELDS if key not in result]:
            raise KeyError(lacking[0])
        return result
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise RunError(f"{path} cannot be read: {type(e).__name__}: {e}; remove it, and run the claim again") from e


def differences(claim: Claim, result: Mapping[str, Any]) -> list[str]:
    """What of a claim is otherwise than in a result of it: measure, seeds, relations, and the settings of recipe and
    arms, except `MEANS`. A setting that came since then has its default."""
    arms = {side: arm["changes"] for side, arm in result["arms"].items() if "@" not in side}
    try:
        recipe = build(Experiment, result["recipe"]).as_data()
        built = {arm: build(Experiment, changed(recipe, changes)).as_data() for arm, changes in arms.items()}
    except ConfigError as e:
        return [f"its settings are of a form that is gone: {str(e).partition(';')[0]}"]
    was: dict[str, Any] = {"measure": result["measure"], "seeds": result["seeds"], "arms": sorted(arms)}
    now: dict[str, Any] = {"measure": claim.measure, "seeds": list(claim.seeds), "arms": sorted(claim.arms)}
    was |= {"ordering": result["ordering"], "control": result["control"]}
    was |= {"reported": [effect["relation"] for effect in result.get("reported", [])]}
    orderings = {"ordering": claim.expected, "control": claim.control, "reported": claim.reported}
    now |= {name: list(of.relations) if of else [] for name, of in orderings.items()}
    was |= result.get("design", {})
    now |= claim.design
    today = claim.recipe.as_data()
    was |= {f"recipe: {key}": value for key, value in differing(today, recipe)}
    now |= {f"recipe: {key}": value for key, value in differing(recipe, today)}
    for arm in arms.keys() & claim.arms.keys():
        was |= {f"{arm}: {key}": value for key, value in differing(recipe, built[arm])}
        now |= {f"{arm}: {key}": value for key, value in claim.changes(arm).items()}
    places = {key: key.rpartition(": ")[2] for key in [*was, *now]}
    return [
        f"{key}: {was.get(key)}, now {now.get(key)}"
        for key, place in places.items()
        if not is_means(place) and without_means(was.get(key), place) != without_means(now.get(key), place)
    ]


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: of if key in SETTINGS else _rounded(of) for key, of in value.items()}
    return [_rounded(of) for of in value] if isinstance(value, list) else value


def _lines(value: Any, depth: int = 0) -> str:
    """JSON of which two levels take a line for each entry, and all below stands on that line."""
    if depth == 2 or not value or not isinstance(value, (dict, list)) or not _nested(value):
        return dumps(value)
    inner = "\n" + " " * (depth + 1)
    if isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_lines(of, depth + 1)}" for key, of in value.items()]
        return f"{{{inner}{f',{inner}'.join(entries)}\n{' ' * depth}}}"
    return f"[{inner}{f',{inner}'.join(_lines(of, depth + 1) for of in value)}\n{' ' * depth}]"


def _nested(value: dict[str, Any] | list[Any]) -> bool:
    return any(isinstance(of, (dict, list)) for of in (value.values() if isinstance(value, dict) else value))
