"""The transition store: episodes as flat arrays, read by row number.

What always holds: a row is an observation with the action taken on it; the last row of an episode is its last
observation, without an action, so the observation after row i is row i + 1 and no observation is stored twice; a *step*
is a row with an action; nothing reads across the end of an episode. An episode that did not terminate was truncated.
What is drawn depends on the store and on the generator alone.

Nothing is evicted: a store grows with what is collected.
"""

from collections.abc import Sequence

import numpy as np

from longstride.control.envs.base import ControlEpisode
from longstride.core.errors import RunError

FIELDS = ("observation", "action", "reward", "last", "terminated", "goal")
"""The arrays that make up a store, as a checkpoint names them."""


class TransitionStore:
    """Episodes, appended and never changed. R rows, E episodes, N = R - E steps.

    Args:
        observation: size O of an observation.
        action: size A of an action.
        goal: size G of an episode's goal; 0 where episodes have none.
    """

    def __init__(self, observation: int, action: int, goal: int = 0) -> None:
        self.episodes = self.rows = 0
        self._observation = np.zeros((0, observation), np.float32)
        self._action = np.zeros((0, action), np.float32)
        self._reward = np.zeros(0, np.float32)
        self._last = np.zeros(0, np.int64)
        self._terminated = np.zeros(0, bool)
        self._goal = np.zeros((0, goal), np.float32)
        self._returns: dict[tuple[float, float, float], np.ndarray] = {}
        self._starts: dict[int, np.ndarray] = {}

    @classmethod
    def of(cls, episodes: Sequence[ControlEpisode]) -> "TransitionStore":
        """A store with the sizes of the first episode, holding all of them; errors are those of `extend`."""
        first = episodes[0]
        goal = 0 if first.goal is None else len(first.goal)
        store = cls(first.observation.shape[1], first.action.shape[1], goal)
        store.extend(episodes)
        return store

    def __len__(self) -> int:
        """N, the number of steps."""
        return self.rows - self.episodes

    @property
    def observation(self) -> np.ndarray:
        """[R, O]."""
        return self._observation[: self.rows]

    @property
    def action(self) -> np.ndarray:
        """[R, A]; zeros in the last row of an episode."""
        return self._action[: self.rows]

    @property
    def reward(self) -> np.ndarray:
        """[R]; zero in the last row of an episode."""
        return self._reward[: self.rows]

    @property
    def last(self) -> np.ndarray:
        """[E] last row of each episode."""
        return self._last[: self.episodes]

    @property
    def first(self) -> np.ndarray:
        """[E] first row of each episode."""
        return np.concatenate(([0], self.last + 1))[:-1]

    @property
    def terminated(self) -> np.ndarray:
        """[E] whether the task itself ended each episode; if not, it was truncated."""
        return self._terminated[: self.episodes]

    @property
    def goal(self) -> np.ndarray:
        """[E, G] the goal of each episode."""
        return self._goal[: self.episodes]

    def extend(self, episodes: Sequence[ControlEpisode]) -> None:
        """Appends episodes; the first call allocates exactly what they need.

        Raises:
            ValueError: an episode without steps, or of other sizes than the store's.
        """
        for e in episodes:
            self._check(e)
        rows = sum(e.length + 1 for e in episodes)
        for name in ("_observation", "_action", "_reward"):
            setattr(self, name, _grown(getattr(self, name), self.rows, rows))
        for name in ("_last", "_terminated", "_goal"):
            setattr(self, name, _grown(getattr(self, name), self.episodes, len(episodes)))
        for e in episodes:
            first, end = self.rows, self.rows + e.length
            self._observation[first : end + 1] = e.observation
            self._action[first:end] = e.action
            self._reward[first:end] = e.reward
            self._last[self.episodes], self._terminated[self.episodes] = end, e.terminated
            if self._goal.shape[1]:
                self._goal[self.episodes] = e.goal
            self.rows, self.episodes = end + 1, self.episodes + 1
        self._returns.clear()
        self._starts.clear()

    def _check(self, e: ControlEpisode) -> None:
        sizes = (self._observation.shape[1], self._action.shape[1], self._goal.shape[1])
        goal = 0 if e.goal is None or not sizes[2] else len(e.goal)
        theirs = (e.observation.shape[1], e.action.shape[1], goal)
        if theirs != sizes or not len(e.observation) == e.length + 1 == len(e.reward) + 1 or e.length < 1:
            raise ValueError(
                f"expected an episode of at least one step with one observation more than actions and sizes "
                f"(observation, action, goal) {sizes}; got {len(e.observation)} observations, {e.length} actions, "
                f"{len(e.reward)} rewards and sizes {theirs}"
            )

    def all_episodes(self) -> list[ControlEpisode]:
        """All of them, in order; whether one was a success is no part of a store."""
        return [
            ControlEpisode(
                self.observation[a : b + 1],
                self.action[a:b],
                self.reward[a:b],
                bool(ended),
                goal if goal.size else None,
            )
            for a, b, ended, goal in zip(self.first, self.last, self.terminated, self.goal, strict=True)
        ]

    def episode_of(self, row_B: np.ndarray) -> np.ndarray:
        """[B] number of each row's episode."""
        return np.searchsorted(self.last, row_B)

    @property
    def earned(self) -> np.ndarray:
        """[E] the sum of the rewards of each episode."""
        return np.add.reduceat(self.reward, self.first, dtype=float)

    def draw(
        self, count: int, rng: np.random.Generator, steps: int = 1, weight_E: np.ndarray | None = None
    ) -> np.ndarray:
        """[count] rows, drawn with replacement from all rows with at least `steps` steps of their episode ahead.

        Args:
            count: how many.
            rng: draws them.
            steps: see above.
            weight_E: [E] how much each row of an episode weighs, at least 0; None: all alike.

        Raises:
            RunError: there are none.
        """
        starts_E = self._starts.get(steps)
        if starts_E is None:
            length_E = np.diff(self.last, prepend=-1) - 1
            starts_E = self._starts[steps] = np.cumsum(np.maximum(length_E - steps + 1, 0))
        if not len(starts_E) or starts_E[-1] == 0:
            longest = np.diff(self.last, prepend=-1).max(initial=1) - 1
            raise RunError(
                f"of {self.episodes} episodes none has {steps} steps, the longest has {longest}: set data.steps to "
                "fewer, or add longer ones"
            )
        if weight_E is None:
            number_B = rng.integers(starts_E[-1], size=count)
        else:
            length_E = np.diff(starts_E, prepend=0)
            weight_E = np.cumsum(weight_E * length_E)
            drawn_B = np.searchsorted(weight_E, rng.random(count) * weight_E[-1], side="right")
            number_B = starts_E[drawn_B] - 1 - np.floor(rng.random(count) * length_E[drawn_B]).astype(int)
        episode_B = np.searchsorted(starts_E, number_B, side="right")
        # the rows of an episode that can be drawn are its first ones
        before_B = np.where(episode_B > 0, starts_E[episode_B - 1], 0)
        first_B = np.where(episode_B > 0, self.last[episode_B - 1] + 1, 0)
        return first_B + number_B - before_B

    def returns(self, discount: float, scale: float = 1.0, shift: float = 0.0) -> np.ndarray:
        """[R] discounted return to go of each step, with rewards `scale * r + shift`.

        After a truncation the least reward of the episode repeats forever where it is a cost; where it is none, nothing
        more is earned, for the task may end then: who reads returns takes them for what can be had at least. Where all
        steps of a task cost the same until it is solved, the return of a failure is r / (1 - discount) (Cal-QL's rule
        for sparse rewards, arXiv 2303.05479). Released code does so only where all rewards of an episode are equal, and
        adds nothing after other truncations; `NStep.finite` never adds anything.
        """
        key = (discount, scale, shift)
        if key not in self._returns:
            reward = scale * self.reward.astype(float) + shift
            to_go, length_E = np.zeros(self.rows), np.diff(self.last, prepend=-1) - 1
            least_E = np.minimum.reduceat(reward, np.stack((self.first, self.last), 1).ravel())[::2]
            later_E = np.where(self.terminated, 0.0, np.minimum(least_E, 0.0) / (1 - discount))
            for back in range(1, int(length_E.max(initial=0)) + 1):
                here_E = length_E >= back
                row = self.last[here_E] - back
                to_go[row] = later_E[here_E] = reward[row] + discount * later_E[here_E]
            self._returns[key] = to_go.astype(np.float32)
        return self._returns[key]

    def lambda_returns(
        self, value_R: np.ndarray, discount: float, lam: float, scale: float = 1.0, shift: float = 0.0
    ) -> np.ndarray:
        """[R] G = r + discount * ((1 - lam) V(s') + lam G') of each step, with rewards `scale * r + shift`; after a
        truncation G' = V(s'), after a termination both are 0. G - V is generalised advantage estimation (arXiv
        1506.02438).

        Args:
            value_R: [R] V of each row's observation.
        """
        reward, value = scale * self.reward.astype(float) + shift, value_R.astype(float)
        value[self.last[self.terminated]] = 0
        to_go, length_E = value.copy(), np.diff(self.last, prepend=-1) - 1
        for back in range(1, int(length_E.max(initial=0)) + 1):
            row = self.last[length_E >= back] - back
            to_go[row] = reward[row] + discount * ((1 - lam) * value[row + 1] + lam * to_go[row + 1])
        return to_go.astype(np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that make up the store, by the names in `FIELDS`."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "TransitionStore":
        """The store with these `arrays`."""
        store = cls(arrays["observation"].shape[1], arrays["action"].shape[1], arrays["goal"].shape[1])
        store.rows, store.episodes = len(arrays["observation"]), len(arrays["last"])
        for name in FIELDS:
            setattr(store, f"_{name}", np.ascontiguousarray(arrays[name]))
        return store


def _grown(array: np.ndarray, used: int, more: int) -> np.ndarray:
    """The array with space for `more` after its first `used` rows; an array that grows again at least doubles."""
    if used + more <= len(array):
        return array
    grown = np.zeros((max(used + more, 2 * used), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown
