"""Batches: the transitions that a level of an agent learns from, made around given rows of a store.

What always holds: `discount_B` carries everything that is known about the future: gamma to the number of steps taken
where the episode continued or was truncated after them, 0 where the task ended. So every target is
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
from longstride.core.numbers import Count, Positive, Share

Discount = Annotated[float, Field(gt=0, lt=1)]


class Batch(NamedTuple):
    """B transitions of n steps each, or fewer where something ended. Where runs learn side by side, every tensor has an
    axis of runs before B: what reads a batch counts its axes from the end, and gives one loss a run."""

    state_BS: Tensor
    """The observation, followed by the goal where there is one."""
    action_BA: Tensor
    """An action, a chunk of actions, or the subgoal that was reached."""
    reward_B: Tensor
    """Discounted sum of the rewards of the steps."""
    discount_B: Tensor
    """Factor of the value of `next_state_BS`."""
    next_state_BS: Tensor
    return_B: Tensor
    """Discounted return to go in the data, or what else a critic asks of a row (`ControlCritic.returns`); NaN unless it
    was requested, and with relabelled goals."""


class Goals(Component):
    """Family: which goal a row is given."""

    @abstractmethod
    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
        """[B] rows whose observation is the goal; None where the goal is the episode's own."""


class Given(Goals):
    """The goal of the episode, with the rewards of the data."""

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> None:
        """None.

        Raises:
            ConfigError: the episodes have no goals.
        """
        if not store.goal.shape[1]:
            raise ConfigError("goals are `given`, but the episodes have none; relabel goals, or use data with goals")


class Relabelled(Goals):
    """Hindsight: an observation of the data becomes the goal, and being there a success (HER, arXiv 1707.01495). The
    shares that `current` and `future` leave go to any step of the data."""

    current: Share = 0.0
    """Share of goals that are reached already; of single steps none but these earn anything."""
    future: Share = 1.0
    """Share of goals that the same episode reaches later."""
    geometric: Discount | None = None
    """How far ahead a future goal is: k steps with probability (1 - p) p^(k - 1) for this p, at most to the end of the
    episode; None: uniform over the rest of the episode."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.current + self.future > 1:
            raise ValueError(f"current and future are shares of 1: {self.current} + {self.future} is more")
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
    """What the episode reaches some steps later, or its last observation: the goals that a level above sets."""

    steps: Count
    """How far ahead, in environment steps."""

    def rows(self, store: TransitionStore, row_B: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.minimum(row_B + self.steps, store.last[store.episode_of(row_B)])


class NStep(Component):
    """How many steps make one transition, and what counts as its action.

    With relabelled goals the n-step transition of row i toward the goal in row g is that of SHARSA (arXiv 2506.04168):
    h = g - i where 0 <= g - i < n, else min(n, steps to the end); in the first case the reward is gamma^h and the
    discount 0, else the reward is 0 and the discount gamma^h. A goal exactly n steps ahead is not a success yet: its
    value is bootstrapped. A relabelled task ends at its goal and nowhere else, so it does not matter what ended the
    episode.
    """

    goals: Goals | None = None
    """The goal of a transition; None: there is none, and a state is an observation."""
    action: Literal["action", "chunk", "subgoal"] = "action"
    """The first action; all n actions as one; or the goal columns of the state that they led to."""
    steps: Count = 1
    """n."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.99
    """gamma, per environment step; 1, no discount, goes with `finite` alone."""
    discount_per: Literal["transition"] | None = None
    """`transition`: gamma counts once for the n steps, as if they were an option (OTA, arXiv 2505.12737), and reaching
    a relabelled goal within them earns 1. None: per step."""
    reward_scale: Positive = 1.0
    """Factor of the rewards of the data."""
    reward_shift: float = 0.0
    """Added to the scaled rewards: -1 makes every step cost."""
    finite: bool = False
    """Whether a limit of steps ends the task, so that nothing is worth anything after it: problems of a finite horizon,
    whose observations say the step."""
    end_is_success: bool = False
    """Whether an episode that ends within n steps counts as reaching a relabelled goal, whatever the goal is. It does
    in SHARSA's released code, where this affects about n / T of all other goals."""

    @model_validator(mode="after")
    def _relabelled(self) -> Self:
        if self.discount_per and isinstance(self.goals, Given | None):
            raise ValueError("discount_per=transition goes with relabelled goals, not with rewards of the data")
        if self.finite and not isinstance(self.goals, Given | None):
            raise ValueError("finite goes with rewards of the data: relabelled tasks end at their goals alone")
        if self.discount == 1 and not self.finite:
            raise ValueError("a discount of 1 needs finite=true: without an end sums of rewards have no bound")
        return self

    @property
    def steps_ahead(self) -> int:
        """How many steps of its episode a row must have ahead to be drawn."""
        return self.steps if self.action == "chunk" else 1

    def sizes(self, spec: Spec) -> tuple[int, int]:
        """Sizes of a state and of an action."""
        actions = {"action": spec.action, "chunk": self.steps * spec.action, "subgoal": len(spec.goal)}
        return spec.observation + (len(spec.goal) if self.goals is not None else 0), actions[self.action]

    def __call__(
        self,
        store: TransitionStore,
        spec: Spec,
        row_B: np.ndarray,
        rng: np.random.Generator,
        return_R: np.ndarray | None = None,
    ) -> Batch:
        """The transitions that begin in given rows.

        Args:
            store: the data.
            spec: which columns make a goal.
            row_B: rows with `steps_ahead` steps of their episode ahead.
            rng: draws the goals.
            return_R: what `return_B` is made of, a return for each row of the store; None: it is not needed.
        """
        episode_B = store.episode_of(row_B)
        ahead_B = np.minimum(self.steps, store.last[episode_B] - row_B)
        goal_B = None if self.goals is None else self.goals.rows(store, row_B, rng)
        if goal_B is None:
            goal_BG = store.goal[episode_B]
            reward_B, discount_B = self._earned(store, row_B, ahead_B, episode_B)
        else:
            goal_BG = store.observation[goal_B][:, list(spec.goal)]
            to_goal_B = goal_B - row_B
            ahead_B = np.where((to_goal_B >= 0) & (to_goal_B < ahead_B), to_goal_B, ahead_B)
            reached_B = ((to_goal_B == ahead_B) | self.end_is_success) & (ahead_B < self.steps)
            passed_B = ahead_B if self.discount_per is None else np.where(reached_B, 0, 1)
            weight_B = self.discount**passed_B
            reward_B, discount_B = np.where(reached_B, weight_B, 0.0), np.where(reached_B, 0.0, weight_B)
        return_B = np.full(len(row_B), np.nan) if return_R is None or goal_B is not None else return_R[row_B]
        next_B = row_B + ahead_B
        state_BS, next_state_BS = (self.states(store, rows_B, goal_BG) for rows_B in (row_B, next_B))
        action_BA = self._action(store, spec, row_B, next_B)
        arrays = (state_BS, action_BA, reward_B, discount_B, next_state_BS, return_B)
        return Batch(*(torch.from_numpy(np.asarray(a, np.float32)) for a in arrays))

    def states(self, store: TransitionStore, row_B: np.ndarray, goal_BG: np.ndarray) -> np.ndarray:
        """[B, S] the states in given rows."""
        return np.concatenate([store.observation[row_B], *([] if self.goals is None else [goal_BG])], 1)

    def returns(self, store: TransitionStore) -> np.ndarray:
        """[R] returns to go in the data (see `TransitionStore.returns`), where `finite` the sums of what there is."""
        if self.finite:
            return store.lambda_returns(np.zeros(store.rows), self.discount, 1.0, self.reward_scale, self.reward_shift)
        return store.returns(self.discount, self.reward_scale, self.reward_shift)

    def _earned(
        self, store: TransitionStore, row_B: np.ndarray, ahead_B: np.ndarray, episode_B: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Discounted sums of the rewards of the data, and the factors of the values after them."""
        k_N = np.arange(self.steps)
        inside_BN = k_N < ahead_B[:, None]
        rows_BN = np.where(inside_BN, row_B[:, None] + k_N, row_B[:, None])
        reward_BN = (self.reward_scale * store.reward[rows_BN] + self.reward_shift) * inside_BN
        over_B = (store.terminated[episode_B] | self.finite) & (row_B + ahead_B == store.last[episode_B])
        return reward_BN @ self.discount**k_N, np.where(over_B, 0.0, self.discount**ahead_B)

    def _action(self, store: TransitionStore, spec: Spec, row_B: np.ndarray, next_B: np.ndarray) -> np.ndarray:
        if self.action == "subgoal":
            return store.observation[next_B][:, list(spec.goal)]
        if self.action == "chunk":
            return store.action[row_B[:, None] + np.arange(self.steps)].reshape(len(row_B), -1)
        return store.action[row_B]
