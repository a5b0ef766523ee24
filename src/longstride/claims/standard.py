"""The standard that a kept result meets, and the word that it is called by.

What always holds: a word follows from what is kept, so results of before the standard are read by it as all others
are. An exact problem shows that a mechanism holds in its worlds; shown is what was run, on a model or in an
environment, with as many seeds as its pilot asks for and with settings that are good for runs as long as its own.

Imports nothing heavy: `longstride list` asks it.
"""

from collections.abc import Mapping
from math import isnan
from typing import Any, Literal

Word = Literal["holds", "shown", "null", "open", "below standard", "earlier form"]
EXACT = "exact_recipe"
"""Type of an exact problem's recipe."""


def lacking(result: Mapping[str, Any]) -> list[str]:
    """What the standard asks for and a kept result has not; empty where it has all."""
    design, tuned = result.get("design", {}), result.get("tuned", {})
    exact = result.get("recipe", {}).get("type") == EXACT
    sides = dict.fromkeys(
        side.partition("@")[0] for text in result.get("ordering", ()) for side in text.split(" ")[:3:2]
    )
    untuned = [arm for arm in sides if not tuned.get(arm, {}).get("tried")]
    shown = not exact and result["verdict"] == "reproduced"
    return [
        *(["its world is one, and not drawn"] if exact and "worlds" not in design else []),
        *([f"{' and '.join(untuned)} {'is' if len(untuned) == 1 else 'are'} not tuned"] if untuned else []),
        *([] if design.get("cost") else ["no cost is named"]),
        *([] if result.get("frozen") else ["it was not frozen before its seeds were run"]),
        *(_power(result.get("pilot")) if shown else []),
        *(_whole(result) if shown and "tuning" in design else []),
    ]


def _power(pilot: Mapping[str, Any] | None) -> list[str]:
    """What a run lacks of seeds."""
    if not pilot:
        return ["no pilot says how many seeds its margin takes"]
    if pilot["needed"] is None or pilot["needed"] > pilot["claimed"]:
        return [f"its pilot asks for {pilot['needed'] or 'more than 10,000'} seeds"]
    return []


def _whole(result: Mapping[str, Any]) -> list[str]:
    """What a run lacks whose arms were tuned on shorter runs: that its weaker side was tried at full length too, and
    gains less there than what it is behind."""
    found, design = [], result["design"]
    for effect in result["effects"]:
        weaker = weaker_side(effect["relation"], result["measure"], design)
        if not (tuned := result["tuned"].get(weaker, {})).get("whole"):
            found.append(f"{weaker} is tuned on shorter runs alone")
        elif effect["lo"] - (gain := gain_beside(tuned, design)) <= effect["gap"]:
            found.append(f"{weaker} gains {gain:.3f} at full length by a setting beside its own")
    return found


def weaker_side(relation: str, measure: str, design: Mapping[str, Any]) -> str:
    """The arm over which an effect is expected: that on the right, or the one on the left where the relation is in the
    measure that arms are tuned by and the lowest is best, as in `dpo > inpo` of errors.

    Args:
        relation: which is expected (`stats.Relation`).
        measure: of the claim.
        design: of the claim (`Claim.design`).
    """
    better, _, worse = relation.split(" ")[:3]
    judged_by = relation.partition(" in ")[2] or measure
    low = design.get("lower_is_better", False) and judged_by == (design.get("tuned_by") or measure)
    return (better if low else worse).partition("@")[0]


def gain_beside(tuned: Mapping[str, Any], design: Mapping[str, Any]) -> float:
    """By how much the best of what an arm was tried with at full length is better than the setting that it entered
    with, in what it was tuned by. What is no number, which is kept as None, is worst.

    Args:
        tuned: of the arm, with `whole` (`claims.tuning.Tuned`).
        design: of the claim (`Claim.design`).
    """
    sign = -1 if design.get("lower_is_better", False) else 1
    worth = [float("-inf") if mean is None or isnan(mean) else sign * mean for _, mean in tuned["whole"]]
    return max(worth) - worth[[changes for changes, _ in tuned["whole"]].index(tuned["chosen"])]


def word(result: Mapping[str, Any]) -> Word:
    """What a kept result is called: by its verdict where it is of its claim as it stands and meets the standard."""
    if "earlier" in result:
        return "earlier form"
    if lacking(result):
        return "below standard"
    if result["verdict"] == "reproduced":
        return "holds" if result["recipe"]["type"] == EXACT else "shown"
    return "null" if result["verdict"] == "not reproduced" else "open"
