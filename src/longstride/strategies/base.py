"""Strategies: what is done with a policy at test time.

What always holds: a strategy wraps the environment, or plays in stages, and leaves the policy alone, so what an episode
costs is counted in turns and tokens like everything else; every plan of an evaluation comes to one episode that counts;
its name is different wherever results may be.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.numbers import Limit
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player

if TYPE_CHECKING:  # torch
    from longstride.models.load import Policy

APART = 2**32
"""Between the ordinals of what two episodes of an evaluation play besides: more than one ever does, or there are
episodes."""


def further_plan(plan: Plan, number: int) -> Plan:
    """The plan of what an episode plays besides, by a number that is used once."""
    return replace(plan, ordinal=(plan.ordinal + 1) * APART + number)


def nth_plan(plan: Plan, number: int) -> Plan:
    """Of several plans of an episode, of which the first, 0, is its own."""
    return further_plan(plan, number) if number else plan


class EvalEpisode(NamedTuple):
    """What one plan of an evaluation came to."""

    trajectory: Trajectory
    """The episode that counts."""
    measures: Mapping[str, float | None] = MappingProxyType({})
    """What the strategy measured beside `rollout.summary.MEASURES`, by name; None where something failed."""
    further_tokens: int = 0
    """Tokens sampled for it that are not in `trajectory`: other attempts, probes, earlier stages."""

    read_tokens: int = 0
    """Tokens that a scorer or guide read for it."""

    @property
    def spent_tokens(self) -> int:
        """All tokens that were sampled for it."""
        return self.trajectory.sampled_tokens + self.further_tokens

    @property
    def total_tokens(self) -> int:
        """The same, and what a scorer or guide read."""
        return self.spent_tokens + self.read_tokens


EvalPlan = Generator[Sequence[Plan], list[Trajectory], list[EvalEpisode]]
"""Yields the plans of a stage, is sent their trajectories in their order, and returns what each plan of the evaluation
came to."""


Load = Callable[[str], "Policy"]
"""Gives the policy that a run folder, a model's folder or a name says."""


def settings_in(component: Component, *known: str) -> str:
    """How a name goes on with the fields that are not what they are by default, such as `_9_bonus`; but for those that
    are `known` from what stands before it."""
    said = ""
    for name, field in type(component).model_fields.items():
        value = getattr(component, name)
        if name not in known and value != field.get_default(call_default_factory=True):
            told = f"{value:g}" if isinstance(value, int | float) else value
            said += f"_{name}" if value is True else f"_{told}_{name}"
    return said


class Strategy(Component):
    """Family: a way to use a policy."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What metrics rows call it."""

    def budget(self, budget: Budget) -> Budget:
        """The budget of an episode, where it is not that of other evaluations."""
        return budget

    def wrap(self, env: Env) -> Env:
        """The environment of one episode as the policy meets it."""
        return env

    def players(self, player: Player, load: Load) -> Player:
        """Who plays, given the policy's player and a way to load other policies."""
        return player

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """How the plans of an evaluation are played: all of them at once, and nothing else.

        Args:
            plans: their seeds are those of the tasks; whatever is added takes its own from them.
            player: who plays.
        """
        return [EvalEpisode(t) for t in (yield plans)]


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
