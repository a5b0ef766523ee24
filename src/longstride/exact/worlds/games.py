"""Preference games small enough to be solved: two policies each give an answer, and one of the two is preferred.

A game has a chance of being preferred for every pair of answers, which need not come from a reward: preferences may go
round in a circle. Policies are vectors [V] of log-probabilities over the answers. In the regularised game each player
also pays `strength` times its KL divergence from the reference, so there is exactly one equilibrium, the fixed point of
`response` (Munos et al., arXiv 2312.00886, section 4). What always holds: gaps and the equilibrium are computed, not
sampled. No torch.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_softmax

from longstride.core.errors import ConfigError


def divergence(p: np.ndarray, q: np.ndarray) -> float:
    """KL(p || q) of log-probabilities [V], precise also where they nearly agree: no term is negative."""
    ratio = q - p
    return float(np.exp(p) @ (np.expm1(ratio) - ratio))


@dataclass(frozen=True, eq=False)
class PreferenceGame:
    """A symmetric two-player game of preferences.

    Args:
        preferences: [V, V] chance that the answer of the row is preferred to that of the column.
        reference: [V] log-probabilities of the policy that both players are held to.
        strength: weight of that hold, more than 0: tau or beta of the papers.

    Raises:
        ConfigError: shapes do not fit, or the chances of a pair do not sum to 1.
    """

    preferences: np.ndarray
    reference: np.ndarray
    strength: float

    def __post_init__(self) -> None:
        v = len(self.reference)
        if self.preferences.shape != (v, v) or not np.allclose(self.preferences + self.preferences.T, 1):
            raise ConfigError(f"preferences must be [{v}, {v}], and those of (a, b) and (b, a) must sum to 1")
        if self.strength <= 0:
            raise ConfigError(f"strength must be more than 0, got {self.strength}")

    def wins(self, policy: np.ndarray) -> np.ndarray:
        """[V] chance of each answer to be preferred to one of the policy."""
        return self.preferences @ np.exp(policy)

    def response(self, policy: np.ndarray) -> np.ndarray:
        """The best regularised answer to a policy."""
        return log_softmax(self.reference + self.wins(policy) / self.strength)

    def duality_gap(self, policy: np.ndarray) -> float:
        """What both players together could still gain in the regularised game if both play the policy; 0 at the
        equilibrium alone: max_p J(p, policy) - min_p J(policy, p) with J(p, q) = P(p > q) - strength KL(p || reference)
        + strength KL(q || reference)."""
        best, own = self.response(policy), self.strength * divergence(policy, self.reference)
        return 2 * float(
            np.exp(best) @ self.wins(policy) - 0.5 - self.strength * divergence(best, self.reference) + own
        )

    def exploitability(self, policy: np.ndarray) -> float:
        """By how much the answer that beats the policy most often does so more often than in half of all cases."""
        return float(self.wins(policy).max() - 0.5)

    def equilibrium(self) -> np.ndarray:
        """The regularised equilibrium, by Newton's method on log p = log response(p), from a strength so large that the
        reference nearly solves it down to that of the game.

        Raises:
            ConfigError: rounding keeps it from a fixed point to 1e-9; the strength is too small.
        """
        v = len(self.reference)
        found = _equilibrium(
            self.preferences.astype(float).tobytes(), self.reference.astype(float).tobytes(), v, self.strength
        )
        return found.copy()


@lru_cache(maxsize=64)
def _equilibrium(preferences: bytes, reference: bytes, answers: int, strength: float) -> np.ndarray:
    """That of the game of these arrays. It is kept, since all arms of a seed start from the same game."""
    drawn, held = np.frombuffer(preferences).reshape(answers, answers), np.frombuffer(reference)
    policy, eye = held, np.eye(answers)
    for hold in np.geomspace(max(strength, 1.0), strength, 120):
        game = PreferenceGame(drawn, held, float(hold))
        for _ in range(6):
            best, p = game.response(policy), np.exp(policy)
            slope = drawn * p / hold  # d (wins / strength) / d log p
            jacobian = eye - slope + np.exp(best) @ slope
            policy = log_softmax(policy - np.linalg.solve(jacobian, policy - best))
    last = PreferenceGame(drawn, held, strength)
    if (error := float(np.abs(policy - last.response(policy)).max())) > 1e-9:
        raise ConfigError(f"no equilibrium found for strength {strength} (off by {error:.1e}); take a larger one")
    return policy


def cyclic(rng: np.random.Generator, answers: int, noise: float, lead: float = 0.9) -> np.ndarray:
    """[V, V] preferences of three kinds of answers, each of which mostly beats the next: `lead` between kinds, 0.5 within
    one, plus or minus at most `noise`."""
    kind = np.arange(answers) % 3
    turn = (kind[None] - kind[:, None]) % 3
    mean = np.array([0.5, lead, 1 - lead])[turn]
    upper = np.triu(rng.uniform(-noise, noise, (answers, answers)), 1)
    return mean + upper - upper.T


def transitive(rng: np.random.Generator, answers: int, spread: float) -> np.ndarray:
    """[V, V] preferences by a normal reward of deviation `spread` (Bradley and Terry, 1952)."""
    reward = spread * rng.normal(size=answers)
    return 1 / (1 + np.exp(reward[None] - reward[:, None]))
