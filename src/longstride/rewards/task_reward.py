"""What an episode earns: the family of rewards, and the task's own evaluator.

What always holds: every episode that infrastructure did not end is judged, also one that a limit cut; what a reward
says depends on the trajectory, the final state and the seed alone; it says whether the task was done (`success`) apart
from how much that earns.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Sequence
from typing import Any

from longstride.core.component import Component
from longstride.core.errors import ConfigError
from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.rewards.evaluators import Verdict, judge


class Reward(Component):
    """Family: the reward of an episode, beside what its environment gave turn by turn."""

    @abstractmethod
    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict | Awaitable[Verdict]:
        """Scores an episode: at once, or, where that takes waiting, by a coroutine. The episode awaits it beside the
        steps of all others and under their deadline.

        Args:
            trajectory: the episode, with `task`, `turns`, `answer` and why it stopped; `turn.reward` is what the
                environment gave.
            state: the environment's final state; `{}` where `needs_state` says that it is not needed.
            seed: the episode's seed; whatever is random derives from it.

        Raises:
            TaskError: the task's evaluator is malformed.
            ConfigError: it asks for what the environment does not say.
            JudgeFailure: whoever was to be asked gave no verdict; the trajectory is failed.
        """

    def needs_state(self, trajectory: Trajectory) -> bool:
        """Whether the final state is read, which may be costly to take."""
        return True

    def compare(self, group: Sequence[Trajectory]) -> Sequence[Verdict] | None:
        """New verdicts for the episodes of a group, in their order, once all of an iteration have ended; None leaves
        them as they are. What an environment gave turn by turn is added to each."""
        return None


class TaskReward(Reward):
    """The task's own evaluator, 0 or 1, and if wanted a judge that errs: the label noise of a learned judge (TTI's
    agrees with people in 88.9 % of cases) as a number that can be swept. With noise, evidence has the true reward as
    `true_reward`.

    An episode that a limit cut before an answer counted earns 0 (TTI). A task without an evaluator is one whose
    environment gives the reward: it is done where that is positive.
    """

    evidence: bool = False
    """Whether an answer must rest on what was seen (TTI's judge refuses answers that no screenshot shows): the reward
    is the product of two terms, `right` (the evaluator's) and `supported` (every one of the task's `pages` was seen).
    Without it lucky guesses are rewarded. What a program sees that plays through the gateway is not known here."""
    false_positive: Share = 0.0
    """Share of failures that are rewarded."""
    false_negative: Share = 0.0
    """Share of successes that are not."""

    def needs_state(self, trajectory: Trajectory) -> bool:
        return judged(trajectory)

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict:
        if not judged(trajectory):
            return unjudged(trajectory)
        verdict = judge(trajectory.task, trajectory.answer, state)
        if self.evidence:
            unseen = trajectory.unseen
            if unseen and not any(turn.url for turn in trajectory.turns):
                raise ConfigError(
                    "reward.evidence: expected an environment that says which page is seen, as that of "
                    f"{trajectory.task.source} does not; set reward.evidence=false"
                )
            terms = {"right": verdict.reward, "supported": float(not unseen)}
            evidence = verdict.evidence | ({"unseen": unseen} if unseen else {})
            verdict = Verdict(verdict.reward * terms["supported"], verdict.success and not unseen, terms, evidence)
        if not (self.false_positive or self.false_negative):
            return verdict
        rate = self.false_negative if verdict.reward else self.false_positive
        flipped = stream(seed, "label_noise").random() < rate
        reward = 1.0 - verdict.reward if flipped else verdict.reward
        return Verdict(reward, reward > 0, verdict.terms, verdict.evidence | {"true_reward": verdict.reward})


class EvaluatorFirst(Reward):
    """The task's own evaluator, exact, and another reward for tasks without one."""

    otherwise: Reward
    """Scores what no evaluator judges."""

    def needs_state(self, trajectory: Trajectory) -> bool:
        return self._for(trajectory).needs_state(trajectory)

    def __call__(self, trajectory: Trajectory, state: dict[str, Any], seed: int) -> Verdict | Awaitable[Verdict]:
        return self._for(trajectory)(trajectory, state, seed)

    def compare(self, group: Sequence[Trajectory]) -> Sequence[Verdict] | None:
        return self._for(group[0]).compare(group)

    def _for(self, trajectory: Trajectory) -> Reward:
        return TaskReward() if trajectory.task.evaluator else self.otherwise


def judged(trajectory: Trajectory) -> bool:
    """Whether there is something to judge: an evaluator, and an end that the task or an answer brought about."""
    return bool(trajectory.task.evaluator) and (trajectory.stop.terminated or trajectory.answer is not None)


def unjudged(trajectory: Trajectory) -> Verdict:
    """The verdict where there is nothing to judge: only what the environment gave counts."""
    return Verdict(0.0, not trajectory.task.evaluator and trajectory.earned > 0)
