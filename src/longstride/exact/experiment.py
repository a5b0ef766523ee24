"""Experiments whose answer is known: a problem, a method, exact measures as rows. No model, no episodes.

What always holds: iteration i depends on the recipe and the state after i - 1 alone, so a resumed run gives the numbers
of one that was not stopped; measures are computed, not sampled, unless a problem says otherwise.

A paper about an update brings its `ExactMethod` beside its recipe, and its `ExactProblem` too unless one of
`exact.worlds` serves. Run folder, report, resume and claims are those of every experiment; a run takes seconds, so a
claim can have fifty seeds.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import numpy as np
from pydantic import model_validator

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.run.experiment import Experiment

State = dict[str, np.ndarray]
"""Everything that a method keeps between iterations, by name."""


class ExactProblem(Component):
    """Family: a problem in which the quality of a solution can be computed."""

    @abstractmethod
    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """What a claim compares, by name: regret, duality gap, distance to the known answer, ..."""


P = TypeVar("P", bound=ExactProblem)


class ExactMethod(Component, Generic[P]):
    """Family: a method that solves problems of a type P, or of types below it."""

    @classmethod
    def solves(cls) -> type[ExactProblem]:
        """The P of the class: `Walk` of a `Walked(ExactMethod[Walk])`."""
        arguments = (
            base.__pydantic_generic_metadata__["args"] for base in cls.__mro__ if issubclass(base, ExactMethod)
        )
        found = next((args[0] for args in arguments if args), ExactProblem)
        return getattr(found, "__bound__", found)  # a type parameter is solved as far as it is bounded

    @abstractmethod
    def start(self, problem: P, rng: np.random.Generator) -> State:
        """The state before the first iteration.

        Raises:
            ConfigError: the method's settings do not fit the problem.
        """

    @abstractmethod
    def step(self, problem: P, state: State, rng: np.random.Generator) -> State:
        """The state after one more iteration; the given one is not changed."""

    def spent(self, problem: P, state: State) -> Mapping[str, float]:
        """What has been spent until a state, by name, beside iterations: measures that a claim may name as its cost."""
        return {}

    def solution(self, problem: P, state: State) -> Mapping[str, np.ndarray]:
        """What the problem measures: the state itself unless a method says otherwise."""
        return state


class ExactRecipe(Experiment):
    """A method on a problem whose answer is known. Iteration 0 is the start."""

    problem: ExactProblem
    """What is solved."""
    method: ExactMethod
    """How."""
    iterations: Count
    """Steps of the method."""
    every: Count = 1
    """Iterations between measurements, and between checkpoints; the start and the last iteration are always
    measured."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if not isinstance(self.problem, expected := self.method.solves()):
            raise ValueError(
                f"{self.method.type_name()} solves problems of type {expected.type_name()}, got "
                f"{self.problem.type_name()}"
            )
        try:
            self.method.start(self.problem, np.random.default_rng(0))
        except ConfigError as e:
            raise ValueError(str(e)) from e
        return self

    def identity(self) -> dict[str, Any]:
        data = self.as_data()
        del data["iterations"]
        return data


def recipe(name: str, problem: ExactProblem, method: ExactMethod, iterations: int, evaluations: int = 1) -> ExactRecipe:
    """A recipe that is measured at its start and, evenly, so many times after that."""
    every = max(1, iterations // evaluations)
    return ExactRecipe(name=name, problem=problem, method=method, iterations=iterations, every=every)
