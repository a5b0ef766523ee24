"""Placement: where the parts of a run are: in this process, unless something else is asked for.

What always holds: placement is no part of a recipe, and the numbers of a run do not depend on it but for rounding; a
run may be resumed with another one.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from torch import nn

from longstride.engines.base import Engine
from longstride.learner.learner import Learner
from longstride.models.load import Policy
from longstride.rollout.players import Player
from longstride.rollout.pool import Pool
from longstride.run.recipe import Recipe


class Placed(Protocol):
    """The places of one run."""

    def engine(self, policy: Policy, version: int) -> Engine:
        """An engine for the policy, whose weights are number `version`."""
        ...

    def learner(self, policy: Policy, reference: nn.Module | None) -> Learner:
        """The learner of the policy; see `Learner` for its reference."""
        ...

    def pool(self, player: Player) -> AbstractContextManager[Any]:
        """A pool of training episodes, whose tokens come from the engine."""
        ...


class Placement(Protocol):
    """Where a run goes."""

    def place(self, recipe: Recipe) -> AbstractContextManager[Placed]:
        """Opens the places of a run.

        Raises:
            ConfigError: the recipe cannot run there.
        """
        ...


class ThisProcess:
    """Everything in this process (each process of several under torchrun)."""

    def place(self, recipe: Recipe) -> AbstractContextManager[Placed]:
        return nullcontext(_ThisProcess(recipe))


class _ThisProcess:
    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe

    def engine(self, policy: Policy, version: int) -> Engine:
        r = self.recipe
        samplings = list(dict.fromkeys([r.sampling, r.evaluation.sampling or r.sampling]))
        return r.engine.make(policy, version, samplings, shared=r.pool.staleness == 0)

    def learner(self, policy: Policy, reference: nn.Module | None) -> Learner:
        r = self.recipe
        return Learner(policy.model, r.learner, r.loss, reference, r.needs, r.seed)

    def pool(self, player: Player) -> Pool:
        r = self.recipe
        return Pool(player, r.env, r.reward, r.tasks.at_once, r.pool)
