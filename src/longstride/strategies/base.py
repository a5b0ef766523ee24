"""Strategies: what is done with a policy at test time.

What always holds: a strategy wraps the environment and leaves the policy alone, so what it costs is counted in turns
and tokens like everything else; its name tells apart whatever gives different results.
"""

from abc import abstractmethod

from longstride.core.budget import Budget, Limit
from longstride.core.component import Component
from longstride.envs.base import Env


class Strategy(Component):
    """Family: a way to use a policy."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What metrics rows call it."""

    def budget(self, budget: Budget) -> Budget:
        """The budget of an episode, where it is not that of other evaluations."""
        return budget

    @abstractmethod
    def wrap(self, env: Env) -> Env:
        """The environment of one episode as the policy meets it."""


class Direct(Strategy):
    """The first answer counts. With limits, of its own budget: how success scales with what an episode may take."""

    turns: Limit = None
    """Turns of an episode, in place of the test horizon."""
    tokens: Limit = None
    """Sampled tokens of an episode."""

    @property
    def name(self) -> str:
        limits = [f"_{n}_{what}" for what in ("turns", "tokens") if (n := getattr(self, what)) is not None]
        return "direct" + "".join(limits)

    def budget(self, budget: Budget) -> Budget:
        return budget.model_copy(
            update={what: n for what in ("turns", "tokens") if (n := getattr(self, what)) is not None}
        )

    def wrap(self, env: Env) -> Env:
        return env
