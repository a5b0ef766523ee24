"""Context, batch and turns with a language model: `longstride eval scaling_3d` plays mixes of about as many tokens.

On one's own: `longstride eval scaling_3d model=MODEL tasks.path=tasks.jsonl`, with the mixes in `evaluation.strategies`.
"""

from typing import Any

from longstride.claims.claim import Claim
from longstride.papers.scaling_3d.method import ThreeAxes
from longstride.run.recipe import Recipe
from longstride.setups import puzzles
from longstride.stats import Ordering

ANSWER = 6
"""Tokens of an answer after its thought."""


def mix(batch: int, turns: int, tokens: int = 192) -> ThreeAxes:
    """A mix that takes about as many tokens, thoughts as long as that allows."""
    return ThreeAxes(context=tokens // (batch * turns) - ANSWER, batch=batch, turns=turns)


THREE = ((2, 2), (3, 2), (2, 3), (4, 2), (2, 4))
"""Batch and turns."""
TWO = ((2, 1), (1, 2), (3, 1), (1, 3), (4, 1), (1, 4), (6, 1))
"""Mixes of context with one other axis."""

RECIPE = puzzles.tested(
    "scaling_3d",
    (mix(2, 2), mix(4, 1), mix(1, 4), mix(2, 1)),
    model="base-thoughts",
)


def _under(batch: int, turns: int, tokens: int = 192) -> Recipe:
    return RECIPE.replace(evaluation={"tasks": 120, "strategies": (mix(batch, turns, tokens),)})


def _mixes(of: tuple[tuple[int, int], ...]) -> tuple[Any, ...]:
    return tuple([mix(*one).as_data()] for one in of)


_doses = {tokens: {"three": _under(2, 2, tokens), "two": _under(4, 1, tokens)} for tokens in (96, 240, 384)}

CLAIM = Claim(
    name="scaling_3d",
    paper="arXiv 2511.15738, abstract",
    statement="In as many tokens, several thoughts of some length in several turns solve more than the best mix of context "
    "with one other axis.",
    recipe=_under(2, 2),
    arms={
        "three": _under(2, 2),
        "two": _under(4, 1),
        **{f"{side}_{tokens}": arm for tokens, of in _doses.items() for side, arm in of.items()},
    },
    expected=Ordering(relations=("three > two by 0.02",)),
    # an axis is bounded, so the more there is to spend the more it helps to have another
    dose=tuple(f"three_{tokens} > two_{tokens}" for tokens in _doses),
    seeds=tuple(range(470, 480)),
    tuning_seeds=(930, 931),
    grid={
        "three: evaluation.strategies": _mixes(THREE),
        "two: evaluation.strategies": _mixes(TWO),
    },
    cost="total_tokens",
)
