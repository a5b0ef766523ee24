"""Sources that are drawn by how much they help with a target (`WeightedSources`)."""

import random
from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

import numpy as np

from longstride.core.errors import ConfigError, RunError
from longstride.core.numbers import Count, Positive, Share
from longstride.core.task import Task
from longstride.envs.levels import Environments
from longstride.methods.base import demonstration
from longstride.rollout.planning import Planner, Sampler, Stages

MOST = 2.0
"""Deviations that a gain counts at most, so that a single one decides nothing."""


class WeightedSources(Sampler):
    """An iteration trains on one source of tasks. Which one is drawn by preferences that learn how much lower the loss on
    a few solved target tasks was after training on a source (a gradient bandit: REINFORCE with one preference a source).

    The gain of an iteration is the loss before it less the one after, the mean over tokens of -log p of the first turn of
    each target task's solution. Less the mean of earlier gains and divided by their deviation it is A, and the preference
    of source s moves by `rate` A (1[s was drawn] - p_s). For tasks that are `Environments`, whose target is one of them
    and demonstrates.
    """

    target: str
    """Name of the environment whose tasks are wanted. It is never trained on."""
    examples: Count = 16
    """Solved target tasks, the same ones throughout."""
    rate: Positive = 0.3
    """Of the preferences."""
    floor: Share = 0.1
    """Share of iterations that draw any source alike; 1 draws all of them so."""

    def plan(self, planner: Planner) -> Stages:
        source = planner.source
        if not isinstance(source, Environments) or self.target not in source.levels or len(source.levels) < 2:
            known = ", ".join(source.levels) if isinstance(source, Environments) else type(source).__name__
            raise ConfigError(
                f"sampler.target is the name of one of several environments, the others being sources; got {self.target!r} "
                f"and tasks {known}; take tasks.type=environments with a ladder of that name"
            )
        names = [name for name in source.levels if name != self.target]
        memory = planner.experience.memory(self)
        if not memory:
            memory |= {"preferences": dict.fromkeys(names, 0.0), "gains": [], "drawn": "", "loss": 0.0}
            memory["examples"] = [
                task.model_dump(mode="json") for task in self._drawn(source, self.target, self.examples, planner.rng)
            ]
        loss = self._loss(planner, source, [Task(**task) for task in memory["examples"]])
        if memory["drawn"]:
            self.learn(memory, memory["loss"] - loss)
        chances = self.chances(memory["preferences"])
        (name,) = planner.rng.choices(list(chances), list(chances.values()))
        memory |= {"loss": loss, "drawn": name}
        return (
            yield [
                plan for task in self._drawn(source, name, planner.groups, planner.rng) for plan in planner.group(task)
            ]
        )

    def chances(self, preferences: Mapping[str, float]) -> dict[str, float]:
        """With which probability each source is drawn."""
        weights = np.exp(np.array(list(preferences.values())) - max(preferences.values()))
        p = self.floor / len(weights) + (1 - self.floor) * weights / weights.sum()
        return dict(zip(preferences, p.tolist(), strict=True))

    def learn(self, memory: dict[str, Any], gain: float) -> None:
        """Takes in by how much the loss fell after the source that was drawn; the first two gains tell what is usual."""
        gains: list[float] = memory["gains"]
        if len(gains) >= 2 and (deviation := pstdev(gains)) > 0:
            advantage = float(np.clip((gain - fmean(gains)) / deviation, -MOST, MOST))
            chances = self.chances(memory["preferences"])
            for name, p in chances.items():
                memory["preferences"][name] += self.rate * advantage * ((name == memory["drawn"]) - p)
        gains.append(gain)

    def _drawn(self, source: Environments, name: str, n: int, rng: random.Random) -> list[Task]:
        """Training tasks of an environment, of all its levels alike."""
        return [source.at(name, rng.randrange(len(source.levels[name])), rng) for _ in range(n)]

    def _loss(self, planner: Planner, source: Environments, tasks: Sequence[Task]) -> float:
        """Mean over tokens of -log p of the first turns of solutions, as the policy is now."""
        opened = planner.experience.openings(tasks)
        samples = [
            demonstration(turn.prompt_ids, planner.chat.encode(source.demonstrate(task)[0]), media=turn.media)
            for task, t in zip(tasks, opened, strict=True)
            for turn in t.turns[:1]
        ]
        if not samples:
            raise RunError(
                f"none of the {len(tasks)} tasks of {self.target!r} could be opened, the last because of: "
                f"{opened[-1].evidence.get('failure', 'no reason given')}"
            )
        return -fmean(x for logprobs in planner.experience.logprobs(samples) for x in logprobs)
