"""A claim as data: what a paper states, as arms and relations between them. No torch."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.claims.standard import weaker_side
from longstride.claims.worlds import Draw
from longstride.core.component import Component
from longstride.core.errors import unknown
from longstride.run.experiment import Experiment
from longstride.stats import Ordering, Relation

DOSES = 3
"""Fewest strengths of a cause."""
GRID = 5
"""Fewest values of a setting that arms are tuned over."""
SPENT = ("env_steps", "sampled_tokens")
"""What training spends."""
TRAINING = (*SPENT, "slot_steps", "iterations")
"""What a claim may hold equal of training."""
DESIGN = (
    "worlds",
    "grid",
    "tuning_seeds",
    "tuning",
    "tuned_by",
    "lower_is_better",
    "cost",
    "equal_cost",
    "ways",
    "dose",
    "scale",
)
"""Fields of a claim that hold it to be fair."""
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
    `metrics.jsonl` (such as `pass@16`); `gained_NAME` is that minus what it was before training."""
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
    worlds: Mapping[str, Draw] = {}
    """By dotted setting of the problem, what the seed draws it from: every seed has a world of its own, which all arms
    share. An arm that sets it otherwise keeps its own, such as one from which the cause is taken away."""
    grid: Mapping[str, Annotated[tuple[Any, ...], Field(min_length=GRID)]] = {}
    """By dotted setting, values in their order (`{"learner.lr": (1e-4, 2e-4, 5e-4, 1e-3, 2e-3)}`): every arm is tried
    under every combination and enters at its own best. An arm that lacks a setting keeps what it has, and so does one
    that is about it: whose value is neither the recipe's nor one of these. `ARM: SETTING` is for that arm alone."""
    tuning_seeds: tuple[int, ...] = ()
    """Seeds on which arms are tuned and a pilot is run, none of them of `seeds`."""
    tuning: Mapping[str, Any] = {}
    """What all arms have otherwise while they are tuned, by dotted setting: `{"iterations": 6}`. The sides of what is
    expected go on without it, beside their best."""
    tuned_by: str = ""
    """The measure by which the best is chosen; `measure` if empty."""
    lower_is_better: bool = False
    """Whether the best is the lowest."""
    cost: str = ""
    """What both sides of an expected relation have to spend alike: `env_steps`, `sampled_tokens` or `slot_steps` of
    training, `iterations`, or a measure, such as `spent_tokens` of an evaluation, `samples` or `labels` of an exact
    problem."""
    equal_cost: bool = False
    """Whether relations are judged where both sides have spent as much as the thriftier one in all, between the two
    evaluations next to it; at the end if not. So evaluate often: a curve that flattens is read a little too low."""
    ways: Mapping[str, Annotated[tuple[str, ...], Field(min_length=3)]] = {}
    """Ways to spend more at the test: by name, the names of strategies. `ARM@WAY` is a side of relations where the arm
    has these, and its curve goes through them, in the order of what they cost after training. Takes `equal_cost`, and
    as `cost` a measure of an evaluation, such as `spent_tokens`."""
    dose: Annotated[tuple[str, ...], Field(max_length=9)] = ()
    """Relations at three or more rising strengths of the cause, along which the effect has to rise: a control too."""
    scale: tuple[float, float] = (0.0, 1.0)
    """Least and greatest value of what is measured: a control is void with an arm in a twentieth at either end."""

    @model_validator(mode="after")
    def _is_tuned_on_other_seeds(self) -> Self:
        if self.grid and not self.tuning_seeds:
            raise ValueError("a grid is tried on tuning_seeds, and there are none; name two or three")
        if shared := set(self.seeds) & set(self.tuning_seeds):
            raise ValueError(f"tuning_seeds are none of the seeds, and {sorted(shared)} are both; take others")
        if self.equal_cost and not self.cost:
            raise ValueError("equal_cost needs to know of what: name the cost, such as env_steps")
        if self.ways and (not self.equal_cost or self.cost in TRAINING):
            raise ValueError(
                f"ways to spend are read at equal_cost of a measure of evaluations, such as spent_tokens; got cost="
                f"{self.cost!r}, equal_cost={self.equal_cost}"
            )
        if both := set(self.worlds) & {name.rpartition(": ")[2] for name in self.grid}:
            raise ValueError(f"{sorted(both)} is drawn by the seed and tuned: leave it out of worlds, or of the grid")
        if self.dose and len(self.dose) < DOSES:
            raise ValueError(f"a dose has {DOSES} strengths or more, got {len(self.dose)}")
        return self

    @model_validator(mode="after")
    def _names_arms(self) -> Self:
        if strange := next((arm for arm in self.arms if not re.fullmatch(r"[\w.=+-]+", arm)), None):
            raise ValueError(f"folders are named by arms: give them letters, digits and ._=+- alone, not {strange!r}")
        named = [side for relation in self.relations for side in (relation.better, relation.worse)]
        named += [self.check_again] * bool(self.check_again)
        for name in (side.partition("@")[0] for side in named):
            if name not in self.arms:
                raise ValueError(unknown("arm", name, self.arms))
        return self

    @property
    def relations(self) -> list[Relation]:
        """Those that are expected, then those of the control and of the dose, then those that are only reported."""
        dose = Ordering(relations=self.dose) if self.dose else None
        return [r for of in (self.expected, self.control, dose, self.reported) if of for r in of.parsed]

    @property
    def measures(self) -> list[str]:
        """All that is compared, `measure` first, what the figure shows it by, and what arms are tuned by and cost."""
        named = [r.measure for r in self.relations]
        named += [self.along, self.tuned_by, "" if self.cost in TRAINING else self.cost]
        return list(dict.fromkeys([self.measure, *filter(None, named)]))

    @property
    def weaker(self) -> list[str]:
        """The arms over which an effect is expected, each once (`claims.standard.weaker_side`)."""
        return list(dict.fromkeys(weaker_side(text, self.measure, self.design) for text in self.expected.relations))

    @property
    def sides(self) -> list[str]:
        """The arms between which an effect is expected, each once."""
        both = ((side.partition("@")[0] for side in (r.worse, r.better)) for r in self.expected.parsed)
        return list(dict.fromkeys(arm for of in both for arm in of))

    @property
    def sign(self) -> int:
        """By which a measure is multiplied, so that the highest is best."""
        return -1 if self.lower_is_better else 1

    @property
    def design(self) -> dict[str, Any]:
        """How it is held to be fair, as plain data: what is left at its default is left out."""
        data, plain = self.as_data(), type(self).model_fields
        return {name: data[name] for name in DESIGN if getattr(self, name) != plain[name].default}

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


def nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes by dotted setting as `Component.replace` takes them."""
    found: dict[str, Any] = {}
    for place, value in changes.items():
        *path, last = place.split(".")
        inside = found
        for key in path:
            inside = inside.setdefault(key, {})
        inside[last] = value
    return found


def setting(data: Mapping[str, Any], place: str) -> Any:
    """What stands at a dotted place of plain data, in a list by its number; None where there is no such place."""
    found: Any = data
    for key in place.split("."):
        if isinstance(found, list):
            found = dict(enumerate(found)).get(int(key)) if key.isdecimal() else None
        else:
            found = found.get(key) if isinstance(found, Mapping) else None
    return found


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
