"""Trials: several episodes of one task, one after the other under one context.

What always holds: an episode of a trial begins when the one before it has ended, and is given those that were played; a
trial that is over leaves its other episodes `unplayed`, so a plan is one trajectory still; what an episode may take is
at most what is left of the trial's own budget.
"""

from collections.abc import Sequence
from typing import Literal

from longstride.core.budget import Budget
from longstride.core.component import Component
from longstride.core.numbers import Count, Limit
from longstride.core.trajectory import Trajectory


class Trial(Component):
    """How many episodes follow one another, and what they may take together. A context policy shows the earlier ones
    (`rollout.context.TrialHistory`)."""

    episodes: Count = 1
    """Episodes of a trial."""
    start: Literal["same", "new"] = "same"
    """Whether each of them begins as the first one did, from one seed of the environment (one maze, one bandit), or
    from a seed of its own, so that the task alone is what they have in common."""
    until_success: bool = False
    """Whether a success ends the trial."""
    turns: Limit = None
    """Turns of all its episodes together; each has its own budget besides."""
    tokens: Limit = None
    """Sampled tokens of all its episodes together."""

    def left(self, budget: Budget, earlier: Sequence[Trajectory]) -> Budget | None:
        """What the episode after the earlier ones may take, of a budget of its own; None where the trial is over."""
        limits: dict[str, int] = {}
        if self.turns is not None:
            limits["turns"] = min(self.turns - sum(t.length for t in earlier), budget.turns)
        if self.tokens is not None:
            rest = self.tokens - sum(t.sampled_tokens for t in earlier)
            limits["tokens"] = rest if budget.tokens is None else min(rest, budget.tokens)
        if min(limits.values(), default=1) < 1 or (self.until_success and any(t.success for t in earlier)):
            return None
        return budget.model_copy(update=limits)
