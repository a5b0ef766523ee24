"""Decision problems small enough to be enumerated: the ground truth that estimators are tested against.

A policy is a table of logits [S, A] under a softmax. What always holds: `gradient` is the exact gradient of
`expected_return` in the logits, with no sampling anywhere; probabilities of `trajectories` sum to 1, and
an expectation over them is exact too. An episode ends in a terminal state or after `horizon` steps, so episodes of one
problem differ in length, which is where normalised estimators go wrong. A softmax bandit is the case of one state and
one step. NumPy only.

Formulas: the policy gradient theorem for a finite horizon (Sutton et al. 2000, "Policy Gradient Methods for
Reinforcement Learning with Function Approximation", theorem 1), states weighted by the discounted probability of being
in them at each step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from longstride.core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Path:
    """One trajectory: `states[t]` was answered by `actions[t]` and earned `rewards[t]`."""

    states: tuple[int, ...]
    actions: tuple[int, ...]
    rewards: tuple[float, ...]
    probability: float
    """Under the policy and the transitions; paths that differ only in the state after the last action are one."""


@dataclass(frozen=True, eq=False)
class EnumerableMDP:
    """A finite decision problem with a finite horizon.

    Args:
        transitions: [S, A, S] probability of the next state; rows sum to 1.
        rewards: [S, A] reward of an action.
        start: [S] probability of the first state; no terminal state.
        terminal: [S] True where the episode ends on arrival.
        horizon: most actions of an episode, at least 1.
        discount: weight of the reward one step later, in (0, 1].

    Raises:
        ConfigError: shapes or probabilities do not fit.
    """

    transitions: np.ndarray
    rewards: np.ndarray
    start: np.ndarray
    terminal: np.ndarray
    horizon: int
    discount: float = 1.0

    def __post_init__(self) -> None:
        s, a = self.rewards.shape
        shapes = (self.transitions.shape, self.start.shape, self.terminal.shape)
        if shapes != ((s, a, s), (s,), (s,)):
            raise ConfigError(
                f"rewards [{s}, {a}] want transitions, start, terminal of {s, a, s}, {(s,)}, {(s,)}; got {shapes}"
            )
        for name, p in (("transitions", self.transitions), ("start", self.start)):
            if (p < 0).any() or not np.allclose(p.sum(-1), 1):
                raise ConfigError(
                    f"{name} must be probabilities that sum to 1 along the last axis; got sums {p.sum(-1)}"
                )
        if self.start[self.terminal].any() or self.horizon < 1 or not 0 < self.discount <= 1:
            raise ConfigError(
                "an episode starts in a state that is not terminal, has 1 step or more, discount in (0, 1]"
            )

    def policy(self, logits: np.ndarray) -> np.ndarray:
        """[S, A] probabilities of the actions."""
        p = np.exp(logits - logits.max(1, keepdims=True))
        return p / p.sum(1, keepdims=True)

    def action_values(self, logits: np.ndarray) -> np.ndarray:
        """[H, S, A] expected discounted return from each step, state and action on (0 in terminal states)."""
        policy = self.policy(logits)
        q = np.zeros((self.horizon, *self.rewards.shape))
        value = np.zeros(len(self.start))
        for t in reversed(range(self.horizon)):
            q[t] = np.where(self.terminal[:, None], 0.0, self.rewards + self.discount * self.transitions @ value)
            value = (policy * q[t]).sum(1)
        return q

    def expected_return(self, logits: np.ndarray) -> float:
        """The exact expected discounted return of the policy: what `gradient` is the gradient of."""
        return float(self.start @ (self.policy(logits) * self.action_values(logits)[0]).sum(1))

    def gradient(self, logits: np.ndarray) -> np.ndarray:
        """[S, A] exact gradient of the expected return in the logits."""
        policy, q = self.policy(logits), self.action_values(logits)
        advantages = q - (policy * q).sum(2, keepdims=True)
        total, here = np.zeros_like(logits, dtype=float), self.start
        for t in range(self.horizon):
            total += here[:, None] * policy * advantages[t]
            here = self.discount * np.einsum(
                "s,sa,sak->k", np.where(self.terminal, 0.0, here), policy, self.transitions
            )
        return total

    def trajectories(self, logits: np.ndarray) -> Iterator[Path]:
        """Every trajectory that has a positive probability, once."""
        policy = self.policy(logits)

        def extend(path: Path, states: np.ndarray) -> Iterator[Path]:
            """Extends a path that is in state s with probability states[s], given the path."""
            over = 1.0 if len(path.actions) == self.horizon else float(states[self.terminal].sum())
            if over > 0:
                yield Path(path.states, path.actions, path.rewards, path.probability * over)
            if len(path.actions) == self.horizon:
                return
            for s in np.flatnonzero((states > 0) & ~self.terminal):
                for a in np.flatnonzero(policy[s] > 0):
                    grown = Path(
                        (*path.states, int(s)),
                        (*path.actions, int(a)),
                        (*path.rewards, float(self.rewards[s, a])),
                        path.probability * float(states[s] * policy[s, a]),
                    )
                    yield from extend(grown, self.transitions[s, a])

        return extend(Path((), (), (), 1.0), self.start)

    def sample(self, logits: np.ndarray, rng: np.random.Generator, n: int) -> list[Path]:
        """`n` independent trajectories of the policy."""
        paths = list(self.trajectories(logits))
        p = np.array([path.probability for path in paths])
        return [paths[i] for i in rng.choice(len(paths), size=n, p=p / p.sum())]

    def discounted(self, path: Path) -> float:
        """The discounted return of a path."""
        return sum(self.discount**t * r for t, r in enumerate(path.rewards))

    def score(self, logits: np.ndarray, path: Path) -> np.ndarray:
        """[S, A] gradient of the log-probability of the path's actions: REINFORCE is its product with the return
        (Williams 1992)."""
        policy, total = self.policy(logits), np.zeros_like(logits, dtype=float)
        for s, a in zip(path.states, path.actions, strict=True):
            total[s] -= policy[s]
            total[s, a] += 1
        return total


def bandit(rewards: Sequence[float]) -> EnumerableMDP:
    """A bandit with an arm for each reward: one state, one step. Its logits are [1, V]."""
    arms = np.asarray(rewards, dtype=float)[None]
    return EnumerableMDP(np.ones((1, arms.shape[1], 1)), arms, np.ones(1), np.zeros(1, dtype=bool), horizon=1)


def random_mdp(
    rng: np.random.Generator, states: int, actions: int, horizon: int, stochastic: bool, discount: float = 1.0
) -> EnumerableMDP:
    """A random problem: normal rewards, a first state drawn from all but the last, which is terminal.

    Args:
        rng: the stream that it is drawn from.
        states: at least 2, the terminal one included.
        actions: at least 1.
        horizon: most actions of an episode.
        stochastic: whether an action leads to random states (Dirichlet(1) probabilities) or to one.
        discount: in (0, 1].
    """
    if stochastic:
        transitions = rng.dirichlet(np.ones(states), size=(states, actions))
    else:
        transitions = np.eye(states)[rng.integers(states, size=(states, actions))]
    start = np.append(rng.dirichlet(np.ones(states - 1)), 0.0)
    terminal = np.arange(states) == states - 1
    return EnumerableMDP(transitions, rng.normal(size=(states, actions)), start, terminal, horizon, discount)
