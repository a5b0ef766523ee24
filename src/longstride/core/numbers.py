"""Ranges of numbers, each under one name: what the fields of components are made of. No component takes `nan` or `inf`,
whatever the range (`core.component`)."""

from typing import Annotated

from pydantic import AfterValidator, Field

MOST = 10**9
"""No count is larger: what has more of anything runs on nothing that there is."""
Count = Annotated[int, Field(ge=1, le=MOST)]
"""How many, at least one."""
CountOrZero = Annotated[int, Field(ge=0, le=MOST)]
"""How many, or none."""
Limit = Annotated[int | None, Field(ge=1, le=MOST)]
"""A largest number; `None` is no limit."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A part of a whole, a probability, a discount."""
Weight = Annotated[float, Field(ge=0)]
"""A factor that may be zero."""
Positive = Annotated[float, Field(gt=0)]
"""A rate, a scale."""
Seconds = Annotated[float, Field(gt=0, le=MOST)]
"""How long something may take: no longer than the waits of an operating system."""
Wait = Annotated[float, Field(ge=0, le=MOST)]
"""How long is waited, or not at all."""
Decay = Annotated[float, Field(ge=0, lt=1)]
"""What is left of a running mean at each step."""
COLDEST = 1e-3
"""Smallest temperature above 0."""


def _far_from_zero(temperature: float) -> float:
    if 0 < temperature < COLDEST:
        raise ValueError(f"expected 0, which is greedy, or {COLDEST} at least: logits are divided by it")
    return temperature


Temperature = Annotated[float, Field(ge=0, le=100), AfterValidator(_far_from_zero)]
"""Of a distribution that tokens are drawn from; 0 is greedy."""


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError("expected the least first, then the largest")
    return ends


Ends = Annotated[tuple[float, float], AfterValidator(_ordered)]
"""The least and the largest value of something."""
