"""Agents as data: levels of (data, critic, policy, extraction), and the numbers of the optimisers.

What always holds: all levels of an agent learn from the same rows; the action of a level is the goal of the level below
it, and the last level acts in the environment.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from longstride.control.batches import Given, Goals, NStep
from longstride.control.critics import ControlCritic, TDCritic
from longstride.control.extraction import Extraction, Imitation
from longstride.control.policies import ControlPolicy, FlowPolicy, GaussianPolicy
from longstride.core.component import Component
from longstride.core.numbers import Count, Positive


class Level(Component):
    """One decision: the data it is learned from, its values, and the policy that makes it."""

    data: NStep = NStep()
    """What a transition is."""
    policy_goals: Goals | None = None
    """Goals that the policy is trained for; None: those of `data`."""
    critic: ControlCritic | None = None
    """How values are learned; None: not at all."""
    policy: ControlPolicy = FlowPolicy()
    """What acts."""
    extraction: Extraction = Imitation()
    """How values become actions."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        name = self.extraction.type_name()
        if self.extraction.needs_critic and self.critic is None:
            raise ValueError(f"extraction {name} needs a critic, and there is none")
        conservative = isinstance(self.critic, TDCritic) and self.critic.conservative is not None
        if (self.extraction.needs_density or conservative) and not isinstance(self.policy, GaussianPolicy):
            what = f"extraction {name}" if self.extraction.needs_density else "a conservative critic"
            raise ValueError(f"{what} needs densities: policy must be gaussian_policy, not {self.policy.type_name()}")
        if self.critic is None and self.policy_goals is not None:
            raise ValueError("policy_goals are for a policy beside a critic; without a critic, set data.goals")
        if self.policy_goals is not None and self.data.goals is None:
            raise ValueError("policy_goals are set, but data.goals are not: a state has no goal")
        if self.critic is not None and self.critic.needs_returns and not isinstance(self.data.goals, Given | None):
            raise ValueError("calibration needs the returns of the data: data.goals must be given or none")
        return self


class ControlAgent(Component):
    """What is trained, and the numbers of the optimisers."""

    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    """From the top down."""
    batch: Count = 256
    """Rows of an update."""
    slices: Count = 1
    """Equal parts of a batch. The critics take one step on each part, then the policies take one step on the entire
    batch (WSRL, arXiv 2412.07762: 4). A divisor of `batch`."""
    critic_lr: Positive = 3e-4
    """Learning rate of Adam for critics."""
    policy_lr: Positive = 3e-4
    """Learning rate of Adam for policies and temperatures."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch % self.slices:
            raise ValueError(f"batch ({self.batch}) must be a multiple of slices ({self.slices})")
        for above in self.levels[:-1]:
            if above.data.action != "subgoal":
                raise ValueError(f"a level above another decides subgoals, not {above.data.action!r}")
        for below in self.levels[1:]:
            if below.data.goals is None:
                raise ValueError("a level below another needs goals: what the level above decides")
        if self.levels[-1].data.action == "subgoal":
            raise ValueError("the last level acts: its data.action must be action or chunk")
        return self
