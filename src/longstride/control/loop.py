"""The loop of control: offline, warm-up and online phases over one learner.

What always holds: iteration i depends on the configuration, the seed, the weights and what was collected so far, so a
loop that was saved and loaded gives the numbers of one that was not; episodes are collected whole, before the updates
of their iteration; every evaluation of one seed plays the same episodes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from longstride.control.agent import Agent, ControlLearner, Source
from longstride.control.batches import Share
from longstride.control.data import FIELDS, TransitionStore
from longstride.control.envs.base import ControlTasks, Episode, play
from longstride.core.component import Component
from longstride.core.errors import RunError
from longstride.core.seeds import derive
from longstride.models.mlp import Count


class Phase(Component):
    """Iterations that are alike. In each, episodes are collected first and the learner is updated then.

    | phase | episodes | updates | utd | retained |
    |---|---|---|---|---|
    | offline | 0 | some | 0 | 1 |
    | warm-up: the policy acts and nothing is learnt (WSRL, arXiv 2412.07762) | some | 0 | 0 | - |
    | online, half of each batch offline data (RLPD, arXiv 2302.02948; Cal-QL) | some | 0 | some | 0.5 |
    | online without offline data (WSRL) | some | 0 | some | 0 |
    """

    iterations: Count
    """How many."""
    updates: int = Field(default=0, ge=0)
    """Updates of an iteration, whatever was collected."""
    episodes: int = Field(default=0, ge=0)
    """Episodes collected in an iteration."""
    utd: float = Field(default=0.0, ge=0)
    """Updates for each environment step of the iteration (update-to-data ratio); added to `updates`."""
    retained: Share = 1.0
    """Share of a batch that comes from the offline data; the rest comes from what was collected."""
    conservative: bool = True
    """Whether conservative critics stay it."""

    @model_validator(mode="after")
    def _does_something(self) -> Self:
        if not self.updates and not self.episodes:
            raise ValueError("a phase collects or updates: give episodes, updates, or both")
        return self


class Tested(NamedTuple):
    """An evaluation."""

    episodes: list[Episode]
    """Those of the first task, then those of the second, and so on."""
    names: Sequence[str]
    """Task of each episode."""

    @property
    def outcomes(self) -> list[float]:
        """1 for each episode that was a success, else 0: what paired comparisons are made of."""
        return [float(e.terminated) for e in self.episodes]

    @property
    def success(self) -> float:
        """Share of all episodes."""
        return float(np.mean(self.outcomes))

    def by_task(self) -> dict[str, list[Episode]]:
        """The episodes of each task."""
        return {
            name: [e for e, n in zip(self.episodes, self.names, strict=True) if n == name]
            for name in dict.fromkeys(self.names)
        }


def evaluate(
    tasks: ControlTasks,
    learner: ControlLearner,
    seed: int,
    episodes: int,
    horizon: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tested:
    """Plays the test tasks, `episodes` times each: the same starts, goals and noise whenever one seed is asked for.
    `progress` is told how many of the `horizon` steps were taken."""
    env, names = tasks.tests(episodes, horizon)
    actor = learner.actor(derive(seed, "eval", "noise"), explore=False)
    return Tested(play(env, actor, derive(seed, "eval"), lambda step: progress(step, horizon)), names)


class ControlLoop:
    """A learner, its data, and where both are in their phases. Iterations count from 1.

    Args:
        tasks: where data, training episodes and tests come from.
        agent: what is trained.
        phases: in their order.
        seed: of everything.
    """

    def __init__(self, tasks: ControlTasks, agent: Agent, phases: Sequence[Phase], seed: int) -> None:
        self.tasks, self.agent, self.phases, self.seed = tasks, agent, phases, seed
        self.learner = ControlLearner(agent, tasks.spec, seed)
        offline = tasks.dataset(derive(seed, "dataset"))
        goal = len(tasks.spec.goal)
        self.offline = TransitionStore(tasks.spec.observation, tasks.spec.action, goal * (offline[0].goal is not None))
        self.offline.extend(offline)
        self.collected = TransitionStore(tasks.spec.observation, tasks.spec.action, goal)
        self.fresh: list[Episode] = []
        """What the last iteration has collected."""
        self.updates = 0
        """Updates so far."""

    @property
    def iterations(self) -> int:
        """Of all phases."""
        return sum(phase.iterations for phase in self.phases)

    def phase(self, iteration: int) -> Phase:
        """The phase that an iteration is of."""
        ends = np.cumsum([phase.iterations for phase in self.phases])
        return self.phases[int(np.searchsorted(ends, iteration))]

    def update(
        self, iteration: int, horizon: int, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> dict[str, Any]:
        """Collects and updates.

        Args:
            iteration: from 1.
            horizon: most steps of an episode.
            progress: told how many of the iteration's updates are done.

        Returns:
            `collected` (episodes), `env_steps`, `updates`, and the means of the learner's metrics over the updates.
        """
        phase = self.phase(iteration)
        self.fresh = self._collect(phase.episodes, iteration, horizon) if phase.episodes else []
        self.collected.extend(self.fresh)
        steps = sum(e.length for e in self.fresh)
        sources = self._sources(phase)
        totals: dict[str, Tensor] = {}
        updates = phase.updates + round(phase.utd * steps)
        for done in range(1, updates + 1):
            found = self.learner.update(self.updates, sources, phase.conservative)
            totals = {key: totals[key] + value if totals else value for key, value in found.items()}
            self.updates += 1
            progress(done, updates)
        return {
            "collected": len(self.fresh),
            "env_steps": steps,
            "updates": updates,
            **{key: float(total) / updates for key, total in totals.items()},
        }

    def _collect(self, count: int, iteration: int, horizon: int) -> list[Episode]:
        actor = self.learner.actor(derive(self.seed, "explore", iteration), explore=True)
        return play(self.tasks.training(count, horizon), actor, derive(self.seed, "episodes", iteration))

    def _sources(self, phase: Phase) -> list[Source]:
        """Where a batch comes from; all of it from what there is, where one of the two is empty."""
        kept = round(phase.retained * self.agent.batch) if len(self.collected) else self.agent.batch
        return [(self.offline, kept), (self.collected, self.agent.batch - kept)]

    def evaluate(
        self, episodes: int, horizon: int, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Tested:
        """See `evaluate`."""
        return evaluate(self.tasks, self.learner, self.seed, episodes, horizon, progress)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and numbers of a checkpoint made now. The offline data is not in it: it is made again."""
        data = {f"collected.{n}": torch.from_numpy(a.copy()) for n, a in self.collected.arrays().items()}
        return self.learner.state() | data, {"updates": self.updates}

    def load_state(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Goes on from what `state` gave.

        Raises:
            RunError: it is of another agent, or damaged.
        """
        self.learner.load_state({k: t for k, t in tensors.items() if not k.startswith("collected.")})
        try:
            self.collected = TransitionStore.of({n: tensors[f"collected.{n}"].numpy() for n in FIELDS})
            self.updates = int(numbers["updates"])
        except (KeyError, TypeError, ValueError) as e:
            raise RunError(f"the checkpoint is damaged: {type(e).__name__}: {e}") from e
