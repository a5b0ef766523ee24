"""A claim as data: what a paper states, as arms and relations between them. No torch."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.core.component import Component
from longstride.core.errors import unknown
from longstride.run.experiment import Experiment
from longstride.stats import Ordering, Relation

FRESH = tuple(range(10, 20))
"""Seeds of a claim: none of them was looked at when its recipe's settings were chosen. A claim that has, names
others."""


class Claim(Component):
    """What a paper states, as arms of one experiment and relations between them."""

    name: str
    """Name of the claim: of its files, and for `longstride claim`."""
    paper: str
    """Where the paper states it."""
    statement: str
    """What the paper states, in a sentence."""
    recipe: Experiment
    """What the arms are variants of, as long and as often evaluated as they are."""
    arms: Mapping[str, Experiment]
    """By name; each differs from `recipe` in what it is about."""
    measure: str = "success"
    """What is compared where a relation names nothing else: a measure of the last evaluation, by its name in
    `metrics.jsonl` (such as `pass@16`)."""
    expected: Ordering
    """Relations between arms, under the first of `evaluation.strategies`; `ARM@STRATEGY` is the arm under another."""
    control: Ordering | None = None
    """Relations that must *not* hold: where the paper's cause is taken away, the effect has to go too."""
    reported: Ordering | None = None
    """Relations that are of interest and decide nothing."""
    along: str = ""
    """A measure of what an evaluation spends, such as `spent_tokens`: the figure shows every strategy by it, before and
    after training. Left out, it shows the run by what training has spent."""
    check_again: str = ""
    """Arm whose start and final policy are evaluated with 1 to 4 checks of the answer; none if empty."""
    seeds: Annotated[tuple[int, ...], Field(min_length=2)] = FRESH
    """Recipe seeds, each of them for every arm."""

    @model_validator(mode="after")
    def _names_arms(self) -> Self:
        named = [side for relation in self.relations for side in (relation.better, relation.worse)]
        named += [self.check_again] * bool(self.check_again)
        for name in (side.partition("@")[0] for side in named):
            if name not in self.arms:
                raise ValueError(unknown("arm", name, self.arms))
        return self

    @property
    def relations(self) -> list[Relation]:
        """Those that are expected, then those of the control, then those that are only reported."""
        return [r for of in (self.expected, self.control, self.reported) if of for r in of.parsed]

    @property
    def measures(self) -> list[str]:
        """All that is compared, `measure` first, and what the figure shows it by."""
        named = [r.measure for r in self.relations if r.measure] + [self.along] * bool(self.along)
        return list(dict.fromkeys([self.measure, *named]))

    def changes(self, arm: str) -> dict[str, Any]:
        """What an arm has otherwise than `recipe`, by dotted key; None where it has nothing."""
        return dict(differing(self.recipe.as_data(), self.arms[arm].as_data()))


def differing(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys under which data of components differ, as deep as their types are the same, with the new value;
    None where there is none."""
    for key in dict.fromkeys([*old, *new]):
        a, b, place = old.get(key), new.get(key), f"{path}{key}"
        if isinstance(a, Mapping) and isinstance(b, Mapping) and a.get("type") == b.get("type"):
            yield from differing(a, b, f"{place}.")
        elif a != b:
            yield place, b


def changed(data: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Data with changes that `differing` found: an arm's from its recipe's."""
    found = dict(data)
    for place, value in changes.items():
        key, _, rest = place.partition(".")
        if rest:
            found[key] = changed(found[key], {rest: value})
        elif value is None:
            found.pop(key, None)
        else:
            found[key] = value
    return found
