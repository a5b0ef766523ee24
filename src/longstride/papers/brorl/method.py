"""More rollouts a prompt for as many in all (`broadened`), and the update that the analysis is of (`DistinctMass`)."""

from collections.abc import Sequence
from math import exp, sqrt
from typing import TypeVar

import numpy as np

from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory, by_group
from longstride.methods import Advantage, Credit
from longstride.run.recipe import Recipe

T = TypeVar("T", float, np.ndarray)


def broadened(recipe: Recipe, rollouts: int) -> Recipe:
    """A recipe with so many rollouts of every prompt, and as many rollouts in all: an iteration has the same prompts and
    as many optimiser steps, these are on larger batches at a rate that grows by the square root, and there are fewer
    iterations.

    Raises:
        ConfigError: the rollouts of all iterations do not go into whole iterations of the new size.
    """
    size = recipe.group_size
    times = rollouts / size
    iterations, left = divmod(recipe.iterations * size, rollouts)
    episodes, over = divmod(recipe.episodes_per_iteration * rollouts, size)
    if iterations < 1 or left or over:
        raise ConfigError(
            f"{recipe.iterations} iterations of {recipe.group_size} rollouts a prompt make no whole iterations of "
            f"{rollouts}; take a multiple of {recipe.group_size} that goes into their product"
        )
    return recipe.replace(
        group_size=rollouts,
        episodes_per_iteration=episodes,
        iterations=iterations,
        learner={
            "lr": recipe.learner.lr * sqrt(times),
            "batch_samples": max(1, round(recipe.learner.batch_samples * times)),
        },
        evaluation={"every": max(1, round(recipe.evaluation.every / times))},
    )


def mass(rewards: T, chances: T) -> T:
    """What distinct answers weigh: a right one (1) or a wrong one (-1) by its chance."""
    return rewards * chances


class DistinctMass(Credit):
    """The one-step update of the analysis: ascent of the sum of R p over the *distinct* answers of a group, R 1 for a
    right and -1 for a wrong one, p its chance under the policy that sampled, which the sampled log-probabilities give.
    An answer that was given before in its group weighs nothing. The more answers, the nearer it is to the exact gradient
    of twice the success; it takes `Constant(per="episode")`.

    For answers that are short or sure: the chance of a long one is too small to weigh.
    """

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        found: dict[int, float] = {}
        for group in by_group(played):
            seen = set[tuple[int, ...]]()
            for t in group:
                answer = tuple(i for turn in t.turns for i in turn.sampled_ids)
                chance = exp(sum(x for turn in t.turns for x in turn.behaviour_logprobs))
                new = answer not in seen
                seen.add(answer)
                found[t.ordinal] = len(group) * mass(1.0 if t.success else -1.0, chance) * new
        return [[found[t.ordinal]] * t.length for t in played]
