"""Batches: what a level of an agent reads around the rows it was given.

What always holds: `discount_B` carries everything that is known of the future: gamma to the number of steps that were
taken where the episode went on or was truncated there, 0 where the task ended. So every target is
`reward_B + discount_B * value(next_state_BS)`, and truncation bootstraps while termination does not. Steps after the
end of an episode are never read.
"""

from abc import abstractmethod
from typing import Annotated, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

from longstride.control.data import TransitionStore
from longstride.control.envs.base import Spec
from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.models.mlp import Count

Share = Annotated[float, Field(ge=0, le=1)]
Discount = Annotated[float, Field(gt=0, lt=1)]


class Batch(NamedTuple):
    """B transitions of n steps each, or fewer where something ended."""

    state_BS: Tensor
    """The observation, and the goal where there is one."""
    action_BA: Tensor
    """What was done: an action, a chunk of actions, or the subgoal that was reached."""
    reward_B: Tensor
    """Discounted rewards of the steps."""
    discount_B: Tensor
    """Weight of the value of `next_state_BS`."""
    next_state_BS: Tensor
    return_B: Tensor
    """Discounted return to go in the data; NaN where it was not asked for, or goals are relabelled."""

    @staticmethod
    def join(batches: "list[Batch]") -> "Batch":
        """One batch after the other."""
        return Batch(*map(torch.cat, zip(*batches, strict=True))) if len(batches) > 1 else batches[0]

    def cut(self, parts: int) -> "list[Batch]":
        """Equal parts, in order."""
        return [Batch(*part) for part in zip(*(t.chunk(parts) for t in self), strict=True)]


class Goals(Component):
    """Family: what is asked for at a row."""

    @abstractmethod
    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """[B] rows whose observation is the goal; None where it is the goal that the episode was given."""


class Given(Goals):
    """The goal that the episode was given, with the rewards that it earned."""

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> None:
        """None.

        Raises:
            ConfigError: the episodes were given no goals.
        """
        if not store.goal.shape[1]:
            raise ConfigError("goals are `given`, but the episodes have none; relabel goals, or take data with goals")


class Relabelled(Goals):
    """Hindsight: an observation as goal, a success where it is the current one (HER, arXiv 1707.01495). What is left of
    the shares is any step of the data."""

    current: Share = 0.0
    """Share of goals that are reached already."""
    future: Share = 1.0
    """Share of goals that the same episode reaches later."""
    geometric: Discount | None = None
    """How far ahead: k steps with probability (1 - p) p^(k - 1) for this p, at most to the end of the episode; None:
    equally all the way to the end."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.current + self.future > 1:
            raise ValueError(f"current and future are shares of one: {self.current} + {self.future} is more")
        return self

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        last_B = store.last[store.episode_of(row_B)]
        if self.geometric is None:
            future_B = row_B + 1 + np.floor(rng.random(len(row_B)) * (last_B - row_B)).astype(np.int64)
        else:
            future_B = np.minimum(row_B + rng.geometric(1 - self.geometric, len(row_B)), last_B)
        random_B = store.draw(len(row_B), rng)
        u_B = rng.random(len(row_B))
        return np.where(u_B < self.current, row_B, np.where(u_B < self.current + self.future, future_B, random_B))


class Ahead(Goals):
    """What the episode reaches `steps` later, or its last observation: what a lower level is asked for."""

    steps: Count

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.minimum(row_B + self.steps, store.last[store.episode_of(row_B)])


class Gather(Component):
    """How many steps are one transition, and what counts as its action.

    With relabelled goals the n-step transition of row i toward the goal in row g is that of SHARSA (arXiv 2506.04168):
    h = g - i where 0 <= g - i < n, else min(n, steps to the end); reward gamma^h and discount 0 in the first case,
    else reward 0 and discount gamma^h. A goal exactly n steps ahead is not a success yet; its value is bootstrapped.
    A relabelled task ends at its goal and nowhere else, so what ended the episode does not count.
    """

    goals: Goals | None = None
    """What is asked for; None: nothing, a state is an observation."""
    action: Literal["action", "chunk", "subgoal"] = "action"
    """The first action; all n of them, one after the other; or the goal columns of where they led to."""
    steps: Count = 1
    """n."""
    discount: Discount = 0.99
    """gamma, of one step."""
    scale: float = 1.0
    """Factor of the rewards of the data."""
    shift: float = 0.0
    """What is added to them: -1 makes success a matter of time."""
    end_is_success: bool = False
    """Whether the end of an episode within n steps counts as reaching a relabelled goal, whatever the goal is: so it
    is in SHARSA's released code, for about n / T of all other goals."""

    @property
    def room(self) -> int:
        """Steps that an episode must still have."""
        return self.steps if self.action == "chunk" else 1

    def sizes(self, spec: Spec) -> tuple[int, int]:
        """Sizes of a state and of an action."""
        actions = {"action": spec.action, "chunk": self.steps * spec.action, "subgoal": len(spec.goal)}
        return spec.observation + (len(spec.goal) if self.goals is not None else 0), actions[self.action]

    def __call__(
        self, store: TransitionStore, spec: Spec, row_B: np.ndarray, rng: np.random.Generator, returns: bool = False
    ) -> Batch:
        """The transitions from given rows.

        Args:
            store: the data.
            spec: which columns make a goal.
            row_B: rows with `room` steps of their episode ahead.
            rng: what goals are drawn with.
            returns: whether `return_B` is wanted.
        """
        episode_B = store.episode_of(row_B)
        ahead_B = np.minimum(self.steps, store.last[episode_B] - row_B)
        goal_B = None if self.goals is None else self.goals.rows(store, row_B, rng)
        if goal_B is not None:
            to_goal_B = goal_B - row_B
            ahead_B = np.where((to_goal_B >= 0) & (to_goal_B < ahead_B), to_goal_B, ahead_B)
            reached_B = ((to_goal_B == ahead_B) | self.end_is_success) & (ahead_B < self.steps)
            weight_B = self.discount**ahead_B
            reward_B, discount_B = np.where(reached_B, weight_B, 0.0), np.where(reached_B, 0.0, weight_B)
            goals_BG = store.observation[goal_B][:, list(spec.goal)]
        else:
            reward_B, discount_B = self._earned(store, row_B, ahead_B, episode_B)
            goals_BG = store.goal[episode_B]
        known = returns and goal_B is None
        return_B = store.returns(self.discount, self.scale, self.shift)[row_B] if known else np.full(len(row_B), np.nan)
        next_B = row_B + ahead_B
        parts = [] if self.goals is None else [goals_BG]
        state_BS, next_BS = (
            np.concatenate([store.observation[rows], *parts], 1) for rows in (row_B, next_B)
        )  # fmt: skip
        action_BA = self._action(store, spec, row_B, next_B)
        arrays = (state_BS, action_BA, reward_B, discount_B, next_BS, return_B)
        return Batch(*(torch.from_numpy(np.asarray(a, np.float32)) for a in arrays))

    def _earned(
        self, store: TransitionStore, row_B: np.ndarray, ahead_B: np.ndarray, episode_B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Discounted rewards of the data, and the weight of the value after them."""
        k_N = np.arange(self.steps)
        inside_BN = k_N < ahead_B[:, None]
        rows_BN = np.where(inside_BN, row_B[:, None] + k_N, row_B[:, None])
        earned_BN = (self.scale * store.reward[rows_BN] + self.shift) * inside_BN
        over_B = store.terminated[episode_B] & (row_B + ahead_B == store.last[episode_B])
        return earned_BN @ self.discount**k_N, np.where(over_B, 0.0, self.discount**ahead_B)

    def _action(self, store: TransitionStore, spec: Spec, row_B: np.ndarray, next_B: np.ndarray) -> np.ndarray:
        if self.action == "subgoal":
            return store.observation[next_B][:, list(spec.goal)]
        if self.action == "chunk":
            return store.action[row_B[:, None] + np.arange(self.steps)].reshape(len(row_B), -1)
        return store.action[row_B]
