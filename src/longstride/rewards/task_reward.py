"""What an episode earns: the family of rewards.

What always holds: a reward is a function of task, answer, final state and seed; evidence always holds the true verdict.
"""

from abc import abstractmethod
from collections.abc import Awaitable
from typing import Annotated, Any

from pydantic import Field

from longstride.core.component import Component
from longstride.core.seeds import stream
from longstride.core.task import Task
from longstride.rewards.evaluators import Verdict, judge

Rate = Annotated[float, Field(ge=0, le=1)]


class Reward(Component):
    """Family: the reward of an episode that infrastructure did not end."""

    @abstractmethod
    def __call__(
        self, task: Task, answer: str | None, state: dict[str, Any], seed: int
    ) -> Verdict | Awaitable[Verdict]:
        """Scores an episode: at once, or, where that takes waiting, by a coroutine. The episode awaits it beside the
        steps of all others and under their deadline.

        Args:
            task: the task.
            answer: what was answered, or None.
            state: the environment's final state.
            seed: the episode's seed; whatever is random derives from it.

        Raises:
            TaskError: the task's evaluator is malformed.
            JudgeFailure: whoever was to be asked gave no verdict; the trajectory is failed.
        """


class TaskReward(Reward):
    """The task's own evaluator, 0 or 1, and if wanted a judge that errs: the label noise of a learned judge (TTI's
    agrees with people in 88.9 % of cases) as a number that can be swept. With noise, evidence has the true reward as
    `true_reward`."""

    false_positive: Rate = 0.0
    """Share of failures that are rewarded."""
    false_negative: Rate = 0.0
    """Share of successes that are not."""

    def __call__(self, task: Task, answer: str | None, state: dict[str, Any], seed: int) -> Verdict:
        verdict = judge(task, answer, state)
        if not (self.false_positive or self.false_negative):
            return verdict
        rate = self.false_negative if verdict.reward else self.false_positive
        flipped = stream(seed, "label_noise").random() < rate
        reward = 1.0 - verdict.reward if flipped else verdict.reward
        return Verdict(reward, verdict.evidence | {"true_reward": verdict.reward})
