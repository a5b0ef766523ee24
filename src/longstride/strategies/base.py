"""Strategies: what is done with a policy at test time.

What always holds: a strategy wraps the environment and leaves the policy and the budget alone, so what it costs is
counted in turns and tokens like everything else; its name tells apart whatever gives different results.
"""

from abc import abstractmethod

from longstride.core.component import Component
from longstride.envs.base import Env


class Strategy(Component):
    """Family: a way to use a policy."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What metrics rows call it."""

    @abstractmethod
    def wrap(self, env: Env) -> Env:
        """The environment of one episode as the policy meets it."""


class Direct(Strategy):
    """The first answer counts."""

    @property
    def name(self) -> str:
        return "direct"

    def wrap(self, env: Env) -> Env:
        return env
