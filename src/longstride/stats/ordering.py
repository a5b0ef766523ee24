"""Orderings: what a claim expects of its arms, written down before the run, and what the runs say to it.

What always holds: a verdict follows from the interval alone: *reproduced* when all of it lies above the gap, *not
reproduced* when none of it does, else *undecided*. Few seeds make the interval wide, and so lead to the last, but for a
handful that are alike by chance: fewer than five decide nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, Field

from longstride.core.component import Component, unknown
from longstride.core.errors import ConfigError
from longstride.stats.bootstrap import Effect, paired_difference_clustered

Judgement = Literal["reproduced", "not reproduced", "undecided"]
FEWEST = 5
"""Seeds that can decide: as many differences lie on one side of the gap by chance in one case of 32."""
_RELATION = re.compile(r"(\S+) > (\S+)(?: by (\d+(?:\.\d+)?))?(?: in (\S+))?")


class Relation(NamedTuple):
    """`BETTER > WORSE`, `BETTER > WORSE by GAP`, either of them `in MEASURE`."""

    better: str
    worse: str
    gap: float
    measure: str
    """Empty where none is named."""

    @classmethod
    def of(cls, text: str) -> "Relation":
        """Raises: ValueError when the text is no relation."""
        if not (match := _RELATION.fullmatch(text)):
            raise ValueError("a relation is `BETTER > WORSE`, with ` by GAP` and ` in MEASURE` behind it if you like")
        better, worse, gap, measure = match.groups()
        return cls(better, worse, float(gap or 0), measure or "")


def _relation(text: str) -> str:
    Relation.of(text)
    return text


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs say to one relation."""

    relation: str
    effect: Effect
    """Mean of better - worse, paired by seed."""
    gap: float
    verdict: Judgement


class Ordering(Component):
    """The relations that a claim expects."""

    relations: Annotated[tuple[Annotated[str, AfterValidator(_relation)], ...], Field(min_length=1)]
    """Such as `multiplicative > fixed_short` or `multiplicative > fixed_long by 0.05`: the arm on the left is better
    by more than the gap (0 where none is named), in the measure that is meant where ` in MEASURE` names no other."""

    @property
    def parsed(self) -> list[Relation]:
        """The relations, taken apart."""
        return [Relation.of(text) for text in self.relations]

    def judge(
        self, results: Mapping[str, Mapping[str, ArrayLike]], measure: str, seed: int, level: float = 0.95
    ) -> list[Finding]:
        """Holds every relation against the results, in the order of `relations`.

        Args:
            results: by measure, of each arm: (seeds,) or (seeds, tasks), paired between arms entry by entry.
            measure: of relations that name none.
            seed: of the resampling.
            level: of the intervals.

        Raises:
            ConfigError: an arm is missing or lacks the measure, or two arms cannot be paired (shapes differ, fewer than
                two seeds), or a value is missing (nan) or infinite.
        """
        findings = []
        for text, relation in zip(self.relations, self.parsed, strict=True):
            better, worse, gap, named = relation
            arms = results.get(named or measure, {})
            for name in (better, worse):
                if name not in arms:
                    which = f"in {named or measure!r}: {unknown('arm', name, arms)}" if arms else "in any arm"
                    raise ConfigError(f"relation {text!r}: no results {which}")
            try:
                better_ST, worse_ST = _by_seed(arms[better]), _by_seed(arms[worse])
                effect = paired_difference_clustered(better_ST, worse_ST, seed, level)
            except ValueError as e:
                raise ConfigError(f"relation {text!r}: {e}; run both arms with the same two or more seeds") from e
            if not np.isfinite(effect.mean):
                raise ConfigError(f"relation {text!r}: a value is missing or infinite")
            findings.append(Finding(text, effect, gap, _verdict(effect, gap, len(better_ST))))
        return findings


def overall(findings: Sequence[Finding]) -> Judgement:
    """A claim is reproduced when all its relations are, and not when one of them is not."""
    verdicts = {f.verdict for f in findings}
    if "not reproduced" in verdicts:
        return "not reproduced"
    return "reproduced" if verdicts == {"reproduced"} else "undecided"


def _verdict(effect: Effect, gap: float, seeds: int) -> Judgement:
    if seeds < FEWEST or effect.lo <= gap < effect.hi:
        return "undecided"
    return "reproduced" if effect.lo > gap else "not reproduced"


def _by_seed(values: ArrayLike) -> np.ndarray:
    """(seeds,) as (seeds, 1): one result a seed is one task a seed."""
    array = np.asarray(values, dtype=np.float64)
    return array[:, None] if array.ndim == 1 else array
