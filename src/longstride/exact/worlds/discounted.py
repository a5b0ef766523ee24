"""Random worlds without an end: tables of transitions and rewards, whose values are known. NumPy only.

What always holds: a world is discounted, every state is as likely to be the first, and a value of 0 is the uniform
policy's, of 1 the best one's, where it is normalised. Episodes with an end and a horizon: `exact.worlds.tabular`.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class DiscountedWorld:
    """Args:
    transitions: [S, A, S] probability of the next state.
    rewards: [S, A] mean reward of an action.
    discount: in [0, 1).
    """

    transitions: np.ndarray
    rewards: np.ndarray
    discount: float

    def backup(self, value_S: np.ndarray) -> np.ndarray:
        """[S, A] reward and discounted value of the next state."""
        return self.rewards + self.discount * self.transitions @ value_S

    @cached_property
    def optimal(self) -> np.ndarray:
        """[S, A] values of the best policy, to 1e-9 of the largest reward."""
        q = np.zeros_like(self.rewards)
        for _ in range(int(np.ceil(np.log(1e-9 * (1 - self.discount)) / np.log(max(self.discount, 0.1))))):
            q = self.backup(q.max(1))
        return q

    def values(self, policy: np.ndarray) -> np.ndarray:
        """[S] values of a policy [S, A]."""
        moves = np.einsum("sa,sak->sk", policy, self.transitions)
        return np.linalg.solve(np.eye(len(moves)) - self.discount * moves, (policy * self.rewards).sum(1))

    def normalised(self, policy: np.ndarray) -> float:
        """The mean value of a policy [S, A]: 0 is the uniform policy's, 1 the best one's."""
        uniform = self.values(np.full_like(self.rewards, 1 / self.rewards.shape[1])).mean()
        return float((self.values(policy).mean() - uniform) / (self.optimal.max(1).mean() - uniform))


def random_world(
    rng: np.random.Generator, states: int, actions: int, discount: float, successors: int = 3
) -> DiscountedWorld:
    """Every action leads to `successors` random states with Dirichlet(1) probabilities; mean rewards are uniform in
    [0, 1], so values lie between 0 and 1 / (1 - discount)."""
    p = np.zeros((states, actions, states))
    for s, a in np.ndindex(states, actions):
        p[s, a, rng.choice(states, successors, replace=False)] = rng.dirichlet(np.ones(successors))
    return DiscountedWorld(p, rng.random((states, actions)), discount)
