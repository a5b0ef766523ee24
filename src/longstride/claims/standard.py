"""The standard that a kept result meets, and the word that it is called by.

What always holds: a word follows from what is kept, so results of before the standard are read by it as all others
are. An exact problem shows that a mechanism holds in its worlds; shown is what was run, on a model or in an
environment, with as many seeds as its pilot asks for.
"""

from collections.abc import Mapping
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
    return [
        *(["its world is one, and not drawn"] if exact and "worlds" not in design else []),
        *([f"{' and '.join(untuned)} {'is' if len(untuned) == 1 else 'are'} not tuned"] if untuned else []),
        *([] if design.get("cost") else ["no cost is named"]),
        *([] if result.get("frozen") else ["it was not frozen before its seeds were run"]),
        *(_power(result.get("pilot")) if not exact and result["verdict"] == "reproduced" else []),
    ]


def _power(pilot: Mapping[str, Any] | None) -> list[str]:
    """What a run lacks of seeds."""
    if not pilot:
        return ["no pilot says how many seeds its margin takes"]
    if pilot["needed"] is None or pilot["needed"] > pilot["claimed"]:
        return [f"its pilot asks for {pilot['needed'] or 'more than 10,000'} seeds"]
    return []


def word(result: Mapping[str, Any]) -> Word:
    """What a kept result is called: by its verdict where it is of its claim as it stands and meets the standard."""
    if "earlier" in result:
        return "earlier form"
    if lacking(result):
        return "below standard"
    if result["verdict"] == "reproduced":
        return "holds" if result["recipe"]["type"] == EXACT else "shown"
    return "null" if result["verdict"] == "not reproduced" else "open"
