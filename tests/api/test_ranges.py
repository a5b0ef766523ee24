"""Ranges of the numbers in components: none takes what is no number, and none below zero that does not say so."""

import importlib
import pkgutil
import re
import typing
from collections.abc import Iterator
from inspect import isabstract
from typing import Any

import pytest
from pydantic import ValidationError

import longstride
from longstride.core.component import Component
from longstride.core.config import resolve
from longstride.core.errors import ConfigError
from longstride.engines.base import Sampling

SIGNED = {
    "EnvironmentReward.success_above": "a reward",
    "FurtherCritic.weight": "what it values may be a cost",
    "GymnasiumTasks.success_above": "a return",
    "NStep.reward_shift": "added to rewards",
    "SAC.target_entropy": "of a density",
    "GaussianPolicy.log_std_min": "a logarithm",
    "GaussianPolicy.log_std_max": "a logarithm",
    "NormalPolicy.log_std_min": "a logarithm",
    "COM.tau": "a difference of values",
    "Designs.optimum": "a value",
    "Model.skill": "a log-odds",
    "TurnValue.low": "a return",
    "TurnValue.high": "a return",
    "HLGauss.low": "a return",
    "HLGauss.high": "a return",
    "ExpertIteration.known": "a logit",
    "ExpertIteration.odd": "a logit",
    "Skills.level": "a log-odds",
    "Power.limit": "of a measure",
    "TDCritic.target_range": "returns",
    "DesignedQ.target_range": "returns",
    "Between.low": "of any number",
    "Between.high": "of any number",
    "Claim.scale": "of a measure",
    "BestFirst.accepted": "a score",
    "Belief.scale": "a fitted slope",
    "Belief.shift": "a log-odds",
    "QLearning.optimism": "a return",
    "GaussianThompson.mean": "of rewards",
    "ConservativeModel.limit": "of a score",
    "Reweighted.exponents": "logarithms",
    "Atoms.low": "returns",
    "Atoms.high": "returns",
    "CoordinateQ.least": "returns",
    "LatentSAC.target_entropy": "an entropy",
    "ByTask.favour": "an exponent",
    "TaskCurve.favour": "an exponent",
}
"""Fields that may be below zero, and what they are."""
SKIPPED = re.compile(r"longstride\.(bench|web\.browsergym)|\.test_|__main__")


def components() -> list[type[Component]]:
    """All that the package brings."""
    for module in pkgutil.walk_packages(longstride.__path__, "longstride."):
        if not SKIPPED.search(module.name):
            importlib.import_module(module.name)
    ours = (c for c in below(Component) if c.__module__.startswith("longstride.") and ".test_" not in c.__module__)
    return [c for c in ours if not isabstract(c)]


def below(cls: type[Component]) -> Iterator[type[Component]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from below(sub)


def forms(annotation: Any, value: float) -> list[Any]:
    """Data for a field with the value in the place of its floats."""
    parts = typing.get_args(annotation)
    if annotation is float:
        return [value]
    if typing.get_origin(annotation) is tuple:
        inside = [forms(part, value) for part in parts if part is not ...]
        return [[of[0] for of in inside]] if all(inside) else []
    if typing.get_origin(annotation) is dict:
        return [{"k": v} for v in forms(parts[1], value)]
    return [v for part in parts for v in forms(part, value)]


def refuses(cls: type[Component], name: str, value: Any) -> bool:
    """Whether the value itself is refused, not a rule that takes in other fields."""
    try:
        cls.__pydantic_validator__.validate_assignment(cls.model_construct(), name, value)
    except ValidationError as e:
        return any(error["loc"][:1] == (name,) for error in e.errors())
    except AttributeError:  # it fits, and a rule asks for the other fields, which are not there
        return False
    return False


def test_no_float_of_a_component_is_infinite_or_no_number_and_below_zero_are_those_that_are_listed() -> None:
    accepted, signed = [], set()
    for cls in components():
        for name, field in cls.model_fields.items():
            owner = next(c for c in reversed(cls.__mro__) if name in getattr(c, "__annotations__", ()))
            place = f"{owner.__name__}.{name}"
            accepted += [
                f"{place}={v}"
                for number in map(float, ("nan", "inf", "-inf"))
                for v in forms(field.annotation, number)
                if not refuses(cls, name, v)
            ]
            if any(not refuses(cls, name, v) for v in forms(field.annotation, -1.0)):
                signed.add(place)
    assert not accepted
    assert signed == set(SIGNED)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e-30", "101"])
def test_a_temperature_that_no_token_can_be_drawn_with_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="temperature"):
        resolve(Sampling, Sampling(), [f"temperature={value}"])


@pytest.mark.parametrize("value", ["0", "-1", "7", "nan"])
def test_a_nucleus_is_a_share_above_zero(value: str) -> None:
    with pytest.raises(ConfigError, match="top_p"):
        resolve(Sampling, Sampling(), [f"top_p={value}"])
