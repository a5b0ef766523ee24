"""A tournament of policies under a preference: how often each is preferred to each, and by how much each can be beaten
by the best of them, such as by its earlier selves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from longstride.core.errors import ConfigError
from longstride.core.trajectory import Trajectory
from longstride.rewards.duels import Preference

if TYPE_CHECKING:
    from longstride.run.recipe import Recipe


class Tournament(NamedTuple):
    """What a tournament of P policies came to."""

    wins: np.ndarray
    """[P, P] mean chance that an answer of the row's policy is preferred to one of the column's; 0.5 between equals."""

    @property
    def exploitability(self) -> np.ndarray:
        """[P] by how much the best response among these policies is preferred more often than in half of all cases."""
        return self.wins.max(0) - 0.5


def tournament(
    recipe: "Recipe", policies: Sequence[str], preference: Preference, tasks: int = 100, attempts: int = 8
) -> Tournament:
    """Every policy answers the same held-out tasks, and each answer of one is compared with each of another.

    Args:
        recipe: gives tasks, budget, context, sampling and reward.
        policies: run folders, model folders, or names.
        preference: says which answer is better.
        tasks: held-out tasks.
        attempts: answers of each policy to each of them.

    Raises:
        ConfigError: there are fewer than two policies, or two of them have no task that both have answered.
    """
    from longstride.run.evaluation import evaluate_policy
    from longstride.run.policies import load

    if len(policies) < 2:
        raise ConfigError(f"a tournament takes two policies or more, got {len(policies)}")
    tested = recipe.replace(evaluation={"attempts": attempts})
    held_out = recipe.tasks.held_out(tasks)
    answers: list[list[list[Trajectory]]] = []
    for name in policies:
        played = evaluate_policy(load(name), tested, held_out).trajectories
        answers.append([[t for t in played[k :: len(held_out)] if not t.stop.failed] for k in range(len(held_out))])
    wins = np.full((len(policies), len(policies)), 0.5)
    for i in range(len(policies)):
        for j in range(i):
            pairs = [(a, b) for mine, theirs in zip(answers[i], answers[j], strict=True) for a in mine for b in theirs]
            known = [chance for chance in preference(pairs) if chance is not None]
            if not known:
                raise ConfigError(f"no answer of {policies[i]} could be compared with one of {policies[j]}")
            wins[i, j] = np.mean(known)
            wins[j, i] = 1 - wins[i, j]
    return Tournament(wins)
