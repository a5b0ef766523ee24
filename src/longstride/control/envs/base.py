"""Environments of control: many copies of one world with real-valued observations and actions, stepped together.

What always holds: arrays are NumPy's, their first axis is the copy (`_B`); an episode ends by *termination* (the task
itself ended) or by *truncation* (its horizon ran out), never by both; a copy whose episode has ended stands still and
earns nothing until the next `reset`; everything follows from the seed of `reset` and the actions. Termination and
truncation are defined as in Gymnasium; automatic resets are hidden, so a step of one episode cannot be mistaken for a
step of the next. An action is A real numbers in [-1, 1], or one of A discrete actions as a row of zeros with a one.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from longstride.core.component import Component
from longstride.core.seeds import derive

Act = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""[B, A] actions for [B, O] observations, [B, G] goals and [B] whether an episode begins with this observation. What
acts may carry anything from one call to the next; where an episode begins, it forgets what it carries of that copy. If
it is `Told`, it hears what its actions earned."""


@runtime_checkable
class Told(Protocol):
    """What acts and learns from the episode that it acts in."""

    def earned(self, reward_B: np.ndarray) -> None:
        """Is told the [B] rewards of the actions that it has just given, before it is asked for the next ones."""
        ...


@dataclass(slots=True)
class ControlEpisode:
    """What happened between a reset and an end, T environment steps."""

    observation: np.ndarray
    """[T + 1, O]; no action was taken on the last one."""
    action: np.ndarray
    """[T, A]."""
    reward: np.ndarray
    """[T]."""
    terminated: bool
    """Whether the task itself ended; if not, the episode was truncated after T steps and its last state has a value."""
    goal: np.ndarray | None = None
    """[G] the goal of the episode, where it had one."""
    success: bool | None = None
    """Whether it was a success; None: if it terminated."""

    @property
    def solved(self) -> bool:
        """Whether it was a success."""
        return self.terminated if self.success is None else self.success

    @property
    def length(self) -> int:
        """T."""
        return len(self.action)


class ShortestWay(NamedTuple):
    """K states along a shortest way to a goal, and in each of them the action along it and the opposite one."""

    observation: np.ndarray
    """[K, O], in order; where the goal is reached is none of them."""
    goal: np.ndarray
    """[K, G] the same in all of them."""
    along: np.ndarray
    """[K, A]."""
    back: np.ndarray
    """[K, A]."""


class VectorStep(NamedTuple):
    """The result of one step in each copy."""

    observation: np.ndarray
    """[B, O]."""
    reward: np.ndarray
    """[B]."""
    terminated: np.ndarray
    """[B] True where the task has ended, in this step or before."""
    truncated: np.ndarray
    """[B] True where the horizon has run out before the task ended."""
    success: np.ndarray | None = None
    """[B] whether the episode was a success when it ended, or would be one now; None: it is one if it terminates."""


class VectorEnv(Protocol):
    """B copies of a world."""

    goal: np.ndarray
    """[B, G] the goal of each copy."""
    turns: int = 1
    """How many episodes each copy plays, one after the other."""

    def reset(self, seed: int) -> np.ndarray:
        """Starts B episodes, those of the next turn; returns their [B, O] observations."""
        ...

    def step(self, action_BA: np.ndarray) -> VectorStep:
        """Takes one step in each copy; actions are clamped to [-1, 1]."""
        ...

    def close(self) -> None:
        """Frees what the copies hold; they are not used again."""


@dataclass(slots=True)
class Spec:
    """Sizes that networks are made for."""

    observation: int
    """O."""
    action: int
    """A."""
    goal: tuple[int, ...]
    """The G columns of an observation that make a goal."""
    discrete: bool = False
    """Whether an action is one of A instead of A real numbers."""
    tasks: tuple[int, ...] = ()
    """The columns of an observation that say which of several environments it is of; none where there is one."""


class ControlTasks(Component):
    """Family: where environments, offline data and test tasks come from."""

    @property
    @abstractmethod
    def spec(self) -> Spec:
        """Sizes of observations, actions and goals."""

    @abstractmethod
    def dataset(self, seed: int) -> list[ControlEpisode]:
        """The offline data: the same for the same seed."""

    def demonstrated(self, seed: int) -> list[ControlEpisode]:
        """A few episodes of what is tested, beside the offline data: the same for the same seed; none here."""
        return []

    @abstractmethod
    def training(self, count: int, horizon: int) -> VectorEnv:
        """`count` copies for training episodes of at most `horizon` steps."""

    @abstractmethod
    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        """Copies for the test tasks, `count` of the first task, then `count` of the second and so on, and the name of
        each copy's task."""

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """[A] least and [A] greatest numbers that the environment takes; of discrete actions both are the first one."""
        one = np.ones(self.spec.action, np.float32)
        return (0 * one, 0 * one) if self.spec.discrete else (-one, one)

    def in_own_units(self, episode: ControlEpisode) -> ControlEpisode:
        """An episode as data sets have it: a discrete action is its number, any other as the environment takes it."""
        if not self.spec.discrete:
            return episode
        return replace(episode, action=episode.action.argmax(1)[:, None])

    def beside(self) -> str:
        """Tasks that answer the same can be played side by side: all sizes, copies and turns are the same."""
        return repr(self.as_data())

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        """What is measured of an episode beside its success, by name."""
        return {}

    def values(self, episode: ControlEpisode, discount: float) -> np.ndarray | None:
        """[T] what the state of each step is worth, where that is known; None here.

        Args:
            episode: of a test.
            discount: gamma, per step.
        """
        return None

    def way(self, episode: ControlEpisode) -> ShortestWay | None:
        """A shortest way from where a test episode begins to its goal, where that is known; None here."""
        return None


class OfOthers(ControlTasks):
    """Other tasks with changed data: a subclass says what the data are, and all else is theirs."""

    tasks: ControlTasks
    """Where walks and tests come from."""

    @property
    def spec(self) -> Spec:
        return self.tasks.spec

    def beside(self) -> str:
        return f"{self.type_name()} {self.tasks.beside()}"

    def training(self, count: int, horizon: int) -> VectorEnv:
        return self.tasks.training(count, horizon)

    def tests(self, count: int, horizon: int) -> tuple[VectorEnv, Sequence[str]]:
        return self.tasks.tests(count, horizon)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.tasks.bounds()

    def in_own_units(self, episode: ControlEpisode) -> ControlEpisode:
        return self.tasks.in_own_units(episode)

    def measures(self, episode: ControlEpisode) -> dict[str, float]:
        return self.tasks.measures(episode)

    def values(self, episode: ControlEpisode, discount: float) -> np.ndarray | None:
        return self.tasks.values(episode, discount)

    def way(self, episode: ControlEpisode) -> ShortestWay | None:
        return self.tasks.way(episode)


def play(
    env: VectorEnv, act: Act, seed: int, progress: Callable[[int], None] = lambda step: None
) -> list[ControlEpisode]:
    """Plays one episode in each copy in each turn; `progress` gets the number of steps of a turn taken so far."""
    return play_beside([env], act, [seed], progress)[0]


def play_beside(
    envs: Sequence[VectorEnv], act: Act, seeds: Sequence[int], progress: Callable[[int], None] = lambda step: None
) -> list[list[ControlEpisode]]:
    """As `play`, in several environments that are stepped together; each is reset by its own seed.

    Args:
        envs: of as many turns, and as many numbers an observation, an action and a goal.
        act: is given the copies of the first environment, then those of the second, and so on.
        seeds: of the environments.
        progress: gets the number of steps of a turn taken so far.

    Returns:
        The episodes of each environment.
    """
    turns = [
        _turn(envs, act, [derive(seed, "turn", turn) if turn else seed for seed in seeds], progress)
        for turn in range(envs[0].turns)
    ]
    return [[episode for turn in of_env for episode in turn] for of_env in zip(*turns, strict=True)]


def _turn(
    envs: Sequence[VectorEnv], act: Act, seeds: Sequence[int], progress: Callable[[int], None]
) -> list[list[ControlEpisode]]:
    """One episode in each copy of each environment."""
    first = [env.reset(seed) for env, seed in zip(envs, seeds, strict=True)]
    ends = np.cumsum([len(observation) for observation in first])
    observation_BO = np.concatenate(first)
    goal_BG = np.concatenate([env.goal for env in envs])
    count = len(observation_BO)
    observations, actions, rewards = [observation_BO], [], []
    length_B = np.zeros(count, dtype=int)
    terminated_B = ended_B = np.zeros(count, dtype=bool)
    success_B = None
    hears: object = act
    while not ended_B.all():
        action_BA = act(observations[-1], goal_BG, np.full(count, not actions))
        parts = np.split(action_BA, ends[:-1])
        step = _joined([env.step(part) for env, part in zip(envs, parts, strict=True)])
        observations.append(step.observation)
        actions.append(action_BA)
        rewards.append(step.reward)
        if isinstance(hears, Told):
            hears.earned(step.reward)
        length_B += ~ended_B
        terminated_B, success_B, ended_B = step.terminated, step.success, step.terminated | step.truncated
        progress(len(actions))
    observation_BTO, action_BTA, reward_BT = (
        np.stack(arrays, 1).astype(np.float32) for arrays in (observations, actions, rewards)
    )
    episodes = [
        ControlEpisode(
            observation_BTO[b, : t + 1],
            action_BTA[b, :t],
            reward_BT[b, :t],
            bool(terminated_B[b]),
            goal_BG[b].astype(np.float32) if goal_BG.shape[1] else None,
            None if success_B is None else bool(success_B[b]),
        )
        for b, t in enumerate(length_B)
    ]
    return [episodes[end - len(observation) : end] for end, observation in zip(ends, first, strict=True)]


def _joined(steps: Sequence[VectorStep]) -> VectorStep:
    """The steps of several environments as one."""
    if len(steps) == 1:
        return steps[0]
    observation, reward, terminated, truncated, success = zip(*steps, strict=True)
    arrays = [np.concatenate(of) for of in (observation, reward, terminated, truncated)]
    return VectorStep(*arrays, success=None if any(s is None for s in success) else np.concatenate(success))
