"""Control: many copies of a world with real-valued observations and actions, stepped together.

What always holds: NumPy arrays, the copy first (`_B`); an episode ends by *termination* (the task itself ended) or by
*truncation* (its horizon ran out), never by both; a copy whose episode has ended stands still and earns nothing until
the next `reset`; everything follows from the seed of `reset` and the actions. Gymnasium's meaning without its types
and without automatic resets, so that no step of one episode can be taken for one of the next.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from longstride.core.component import Component

Act = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""[B, A] actions for [B, O] observations and [B, G] goals."""


@dataclass(slots=True)
class Episode:
    """What happened between a reset and an end."""

    observation: np.ndarray
    """[T + 1, O]; the last one was seen and not acted on."""
    action: np.ndarray
    """[T, A]."""
    reward: np.ndarray
    """[T]."""
    terminated: bool
    """Whether the task itself ended; if not, the episode was truncated after T steps and its last state has a value."""
    goal: np.ndarray | None = None
    """[G] what the agent was asked to reach, where it was asked for one thing."""

    @property
    def length(self) -> int:
        """T, in environment steps."""
        return len(self.action)


class Moved(NamedTuple):
    """What a step did."""

    observation: np.ndarray
    """[B, O]."""
    reward: np.ndarray
    """[B]."""
    terminated: np.ndarray
    """[B] True where the task has ended, now or before."""
    truncated: np.ndarray
    """[B] True where the horizon has run out before the task ended."""


class VectorEnv(Protocol):
    """B copies of a world."""

    goal: np.ndarray
    """[B, G] what each copy is asked to reach."""

    def reset(self, seed: int) -> np.ndarray:
        """Starts B episodes; returns their [B, O] observations."""
        ...

    def step(self, action_BA: np.ndarray) -> Moved:
        """Takes one step in each copy; actions outside of [-1, 1] are cut."""
        ...


@dataclass(slots=True)
class Spec:
    """Sizes that networks are made for."""

    observation: int
    """O."""
    action: int
    """A."""
    goal: tuple[int, ...]
    """The G columns of an observation that make a goal."""


class ControlTasks(Component):
    """Family: where environments, data and test tasks come from."""

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Sizes of observations, actions and goals."""

    @abstractmethod
    def dataset(self, seed: int) -> list[Episode]:
        """The offline data: the same for the same seed."""

    @abstractmethod
    def training(self, count: int, horizon: int) -> VectorEnv:
        """`count` copies that start training episodes of at most `horizon` steps."""

    @abstractmethod
    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        """Copies that start the test tasks, `count` episodes of each, and the task's name for each copy."""


def play(env: VectorEnv, act: Act, seed: int, progress: Callable[[int], None] = lambda step: None) -> list[Episode]:
    """Plays one episode in each copy until all have ended; `progress` is told how many steps were taken."""
    observation_BO = env.reset(seed)
    goal_BG = env.goal.copy()
    seen, taken, earned = [observation_BO], [], []
    length_B = np.zeros(len(observation_BO), dtype=int)
    terminated_B = ended_B = np.zeros(len(observation_BO), dtype=bool)
    while not ended_B.all():
        action_BA = act(seen[-1], goal_BG)
        observation_BO, reward_B, terminated_B, truncated_B = env.step(action_BA)
        seen.append(observation_BO)
        taken.append(action_BA)
        earned.append(reward_B)
        length_B += ~ended_B
        ended_B = terminated_B | truncated_B
        progress(len(taken))
    seen_BTO, taken_BTA, earned_BT = (
        np.stack(arrays, 1).astype(np.float32) for arrays in (seen, taken, earned)
    )  # fmt: skip
    return [
        Episode(
            seen_BTO[b, : t + 1],
            taken_BTA[b, :t],
            earned_BT[b, :t],
            bool(terminated_B[b]),
            goal_BG[b].astype(np.float32),
        )
        for b, t in enumerate(length_B)
    ]
