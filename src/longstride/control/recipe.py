"""Recipes of control as data: tasks, an agent, and the phases in which it collects and learns.

What always holds: two runs of one recipe give the same numbers.
"""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.control.agent import ControlAgent
from longstride.control.envs import ControlTasks
from longstride.control.meta import Reptile
from longstride.core.component import Component
from longstride.core.errors import unknown
from longstride.core.numbers import Count, CountOrZero, Share, Weight
from longstride.curriculum.schedules import Schedule
from longstride.run.experiment import Experiment


class TrainingPhase(Component):
    """Iterations that are alike. In each, episodes are collected first, then the learner is updated.

    | phase | episodes | updates | utd | retained |
    |---|---|---|---|---|
    | offline | 0 | some | 0 | 1 |
    | warm-up: the policy acts and nothing is learned (WSRL, arXiv 2412.07762) | some | 0 | 0 | - |
    | online, half of each batch offline data (RLPD, arXiv 2302.02948; Cal-QL) | some | 0 | some | 0.5 |
    | online without offline data (WSRL) | some | 0 | some | 0 |
    | cloning, before reinforcement learning | 0 | some | 0 | 1 |
    | values of states, before those of actions (V-PTR, arXiv 2309.13041) | 0 | some | 0 | 1, `learning` their name |
    | offline, with a few demonstrations (PTR, arXiv 2210.05178) | 0 | some | 0 | 1, `demonstrated` 0.1 |
    | online, in blocks on one source each (MOORL, arXiv 2506.09574) | some | 0 | some | 0.5, `reptile` |
    """

    iterations: Count
    """How many iterations."""
    updates: CountOrZero = 0
    """Updates of an iteration, whatever was collected."""
    episodes: CountOrZero = 0
    """Episodes collected in an iteration."""
    utd: Weight = 0.0
    """Updates per environment step of the iteration (update-to-data ratio); added to `updates`."""
    retained: Share = 1.0
    """Share of a batch that comes from the offline data; the rest comes from what was collected. What learns on-policy
    takes none of it."""
    demonstrated: Share = 0.0
    """Share of a batch that comes from demonstrations of what is tested, before the rest is shared out."""
    reptile: Reptile | None = None
    """Blocks of updates on one of the two sources each, with the chance `retained` on the offline data; a share of each
    block is kept. None: every batch mixes both."""
    conservative: bool = True
    """Whether conservative critics are conservative in this phase."""
    cloning: bool = False
    """Whether policies only imitate the data in this phase, whatever their extraction, and critics learn nothing."""
    learning: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Names of the critics that learn in this phase; policies learn where `critic` does, the first one of a level;
    None: all."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.updates and not self.episodes:
            raise ValueError("a phase collects or updates: set episodes, updates, or both")
        if self.utd and not self.episodes:
            raise ValueError(
                "utd counts updates for each step that is collected: set episodes, or updates in its place"
            )
        if self.reptile is not None and self.demonstrated:
            raise ValueError("a block of reptile is of one of two sources: leave out demonstrated, or reptile")
        return self


class ControlEvaluation(Component):
    """What is measured while a recipe runs; the same starts and goals every time."""

    episodes: Count = 10
    """Episodes of each test task."""
    every: Count = 10
    """Iterations between evaluations; the untrained agent and the last iteration are always evaluated."""


class ControlRecipe(Experiment):
    """A method of control, and its numbers. Iteration 0 is the untrained agent."""

    tasks: ControlTasks
    """Where offline data, training episodes and tests come from."""
    agent: ControlAgent
    """What is trained."""
    phases: tuple[TrainingPhase, ...] = Field(min_length=1)
    """When it collects and when it learns, in this order."""
    horizon: Schedule
    """Steps that a collected episode may take, by iteration."""
    test_horizon: Schedule
    """Steps that an evaluation episode may take: always those of iteration 1."""
    evaluation: ControlEvaluation = ControlEvaluation()
    """What is measured."""

    @model_validator(mode="after")
    def _collects(self) -> Self:
        if self.agent.on_policy and not all(phase.episodes for phase in self.phases):
            raise ValueError("an agent that learns on-policy collects in each iteration: set episodes of every phase")
        if self.agent.on_policy and any(phase.demonstrated for phase in self.phases):
            raise ValueError("an agent that learns on-policy learns from no demonstrations: leave out demonstrated")
        known = {name for level in self.agent.levels for name in level.critics}
        for name in {name for phase in self.phases for name in phase.learning or ()} - known:
            raise ValueError(f"phases.learning: {unknown('critic', name, known)}")
        return self

    @property
    def iterations(self) -> int:
        """Iterations of all phases."""
        return sum(phase.iterations for phase in self.phases)

    def phase(self, iteration: int) -> TrainingPhase:
        """The phase of an iteration."""
        return [phase for phase in self.phases for _ in range(phase.iterations)][iteration - 1]

    def beside(self) -> str | None:
        """Recipes that differ in name, seed and learning rates alone learn side by side, unless a part of the agent has
        to learn alone (`ControlAgent.alone`); tasks may differ where they say so (`ControlTasks.beside`)."""
        if self.agent.alone:
            return None
        data = {key: value for key, value in self.as_data().items() if key not in ("name", "seed", "tasks")}
        agent = {key: value for key, value in data.pop("agent").items() if key not in ("critic_lr", "policy_lr")}
        return repr((data, agent, self.tasks.beside()))

    def identity(self) -> dict[str, Any]:
        data = self.as_data()
        del data["phases"][-1]["iterations"]
        return data
