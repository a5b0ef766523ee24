"""Searches and guides by plain names: `--strategy beam n=8 width=4 --guide confidence`.

What always holds: a plain name says no more than a type and its settings do (`searched search.type=beam search.n=8`);
the names are known without loading what they mean. A setting is said without the part in which it stands.
"""

from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longstride.cli.common import RUN_FILE
from longstride.core.errors import ConfigError, unknown

if TYPE_CHECKING:
    from longstride.core.component import Component
    from longstride.strategies import Strategy
    from longstride.strategies.searched import Guide, Searched

SEARCHES: dict[str, dict[str, Any]] = {
    "beam": {"type": "beam"},
    "lookahead": {"type": "beam", "ahead": 1},
    "dvts": {"type": "beam", "diverse": True},
    "particles": {"type": "particles"},
    "best-first": {"type": "best_first"},
    "tree": {"type": "tree_search"},
}
"""By name, the search."""
GUIDES = {
    "confidence": "how likely the policy finds its own words",
    "oracle": "the truth with noise, on chains",
    "generative": "the policy itself is asked",
    "probe": "a head on hidden states: model=MODEL head=FILE",
    "taught_probe": "the same, fitted to labelled solutions: model=MODEL solutions.path=FILE",
    "judge": "a model over HTTP: url=URL model=NAME",
}
"""By name, what scores; a run folder is one too, whose model is asked."""


def search(name: str) -> "Searched":
    """The strategy of a plain name."""
    from longstride.core.component import build
    from longstride.strategies.searched import Searched

    return build(Searched, {"type": "searched", "search": SEARCHES[name]})


def guide(name: str, *settings: str) -> "Guide":
    """The guide of a plain name or a run folder, or one of the user's own (`module:Class`).

    Raises:
        ConfigError: there is none of that name, or a setting that it has not or that does not fit.
    """
    from longstride.core.component import member_of
    from longstride.core.config import resolve, unset
    from longstride.rewards import Scorer
    from longstride.rewards.scorers import Generative, Judge
    from longstride.strategies.searched import Asked, Guide

    def asked(**parts: "Component") -> Asked:
        return unset(Asked).model_copy(update={"scorer": Generative()} | parts)

    if name in ("confidence", "oracle") or ":" in name:
        base = unset(member_of(Guide, name))
    elif name == "generative":
        base = asked()
    elif name in ("probe", "taught_probe"):
        base = asked(scorer=unset(member_of(Scorer, name)))
    elif name == "judge":
        judge = member_of(Judge, "http_judge")
        base = asked(judge=unset(judge).model_copy(update={"judge": unset(_part(judge, "judge"))}))
    elif (Path(name) / RUN_FILE).is_file():
        base = asked(judge=unset(member_of(Judge, "run_judge")).model_copy(update={"run": name}))
    else:
        raise ConfigError(f"--guide: {unknown('guide', name, GUIDES)}, or a run folder, which {name} is not")
    try:
        return resolve(Guide, base, placed(base, settings, ("scorer", "judge", "judge.judge")))
    except ConfigError as e:
        raise ConfigError("\n".join(f"--guide {name}: {line}" for line in str(e).splitlines())) from None


def _part(cls: "type[Component]", field: str) -> "type[Component]":
    from longstride.core.component import component_in

    found = component_in(cls.model_fields[field].annotation)
    assert found is not None
    return found


def placed(base: "Component", settings: Sequence[str], parts: Sequence[str]) -> list[str]:
    """Settings at their dotted places: what `base` has not stands in the last of its parts that has it, and in the
    first of them where none has."""
    have = [(part, found) for part in parts if (found := _at(base, part)) is not None]

    def place(setting: str) -> str:
        key = setting.partition("=")[0].partition(".")[0]
        if key in type(base).model_fields or not have:
            return setting
        part = next((part for part, of in reversed(have) if key in type(of).model_fields), have[0][0])
        return f"{part}.{setting}"

    return [place(setting) for setting in settings]


def _at(base: "Component", place: str) -> "Component | None":
    try:
        return attrgetter(place)(base)
    except AttributeError:
        return None


def guided(strategies: "Sequence[Strategy]", guides: "Sequence[Guide]") -> "list[Strategy]":
    """Every strategy that goes by a guide under each of the guides, and all others as they are.

    Raises:
        ConfigError: there are guides, and no strategy goes by one.
    """
    led = ["guide" in type(strategy).model_fields for strategy in strategies]
    if guides and not any(led):
        raise ConfigError(
            f"--guide leads a search or delegate, and none is asked for: add --strategy {'|'.join(SEARCHES)}"
        )
    return [
        s.replace(guide=g) if g else s
        for s, by_guide in zip(strategies, led, strict=True)
        for g in (guides if by_guide and guides else (None,))
    ]
