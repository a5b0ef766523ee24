"""What laws foretell: experiments that are run, and laws fitted to the first part of what they came to, which say what
the rest will be. No torch.

What always holds: the runs do not depend on the laws, so laws are compared on the same runs; what is held out is seen
by no law.
"""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.numbers import Count, Share
from longstride.run.experiment import Experiment
from longstride.scaling import Law

ALONE = "all"
"""The name of what is run where there are no settings."""


class Reading(Component):
    """A law, and what it may look at."""

    law: Law | None = None
    """Of y by x. Left out, what was measured last is the prediction."""
    until: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Share of the largest x beyond which is held out."""
    since: Share = 0.0
    """Share of it before which is left out: the first steps of a run often follow no law."""

    @model_validator(mode="after")
    def _sees_something(self) -> Self:
        if self.since >= self.until:
            raise ValueError(f"nothing lies between since, {self.since:g}, and until, {self.until:g}")
        return self


class Extrapolation(Experiment):
    """Experiments, and what laws foretell of them. Its folder has theirs in `runs/`; each law is a row, as a strategy
    is: `longstride fit FOLDER/runs` fits others.

    Measures of a law, means over settings: `error` (mean distance of the prediction from what came, in units of y),
    `closer` (by how much that is less than that of what was measured last), `within` (share of what came in the band of
    95 %), `refused` (1 where the points do not settle the law; too few for it are refused, and what was measured last
    stands for the prediction), `reached` (y at the end), and, of several settings, `chosen` (y at the end of the one
    that the law says ends highest)."""

    run: Experiment
    """What is run."""
    settings: dict[str, dict[str, Any]] = {}
    """Its variants, by name: what each has otherwise, as `Component.replace` takes it. If empty, it is run as it is."""
    seeds: Count = 1
    """Runs of each, which are fitted together; those of another seed of this experiment are others."""
    x: str = "iteration"
    """What was spent, or `attempts` (see `report.curves.curve_of`)."""
    y: str = "success"
    """A measure."""
    readings: Annotated[dict[str, Reading], Field(min_length=1)]
    """By name; claims call the first by the arm alone, the others `ARM@NAME`."""

    @property
    def iterations(self) -> int:
        """Of the longest run."""
        return max(run.iterations for run in self.variants.values())

    @property
    def variants(self) -> dict[str, Experiment]:
        """What is run, by the name of its setting."""
        return {name: self.run.replace(**changes) for name, changes in (self.settings or {ALONE: {}}).items()}

    @model_validator(mode="after")
    def _has_variants(self) -> Self:
        self.variants  # noqa: B018 (a setting that does not fit is refused before anything is run)
        return self

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(self.readings)

    def identity(self) -> dict[str, Any]:
        return self.as_data()
