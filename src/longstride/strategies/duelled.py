"""Duelled: how far a policy can be beaten, by the preference that it is trained for.

What always holds: the first answer counts, as in `Direct`, and is the same; the others measure it, and their tokens are
counted (`spent_tokens`).
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Annotated

from pydantic import Field

from longstride.core.trajectory import Trajectory, Usage, usages
from longstride.rewards.duels import ByReward, Preference
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.best_of import BestOf


class Duelled(Strategy):
    """`exploitability` of a task: by how much the best response to the policy is preferred to its answers more often
    than in half of all cases. The best response is looked for among the preference's champions, where it is made so
    that they are known, and among the policy's own answers. As the best is chosen by the same answers that it is
    measured by, it is too high by what is chance: compare policies at one number of answers."""

    attempts: Annotated[int, Field(ge=2)] = 16
    """Answers to each task."""
    preference: Preference = ByReward()
    """Who says which is better."""

    @property
    def name(self) -> str:
        return f"duelled_{self.attempts}_by_{self.preference.type_name()}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        n, further = self.attempts, BestOf(attempts=self.attempts)
        found = yield [plan for first in plans for plan in (first, *further.further(first))]
        return [self._measured(found[k : k + n]) for k in range(0, len(found), n)]

    def _measured(self, answers: Sequence[Trajectory]) -> EvalEpisode:
        """What the answers to a task came to, with what a judge took."""
        before = usages(answers).get("judge_usage", Usage())
        measures = {"exploitability": self.exploitability([t for t in answers if not t.stop.failed])}
        after = usages(answers).get("judge_usage", Usage())
        further = sum(t.sampled_tokens for t in answers[1:]) + after.sampled - before.sampled
        return EvalEpisode(answers[0], measures, further, after.read - before.read)

    def exploitability(self, played: Sequence[Trajectory]) -> float | None:
        """Of the policy that gave these answers to a task; None without any, or where nothing could be judged."""
        if not played:
            return None
        best = max(played, key=lambda t: t.reward)  # a right answer says of which kind right ones are
        rivals = [*self.preference.champions(best), *played]
        chances = self.preference([(rival, t) for rival in rivals for t in played])
        rows = [chances[k : k + len(played)] for k in range(0, len(chances), len(played))]
        wins = [fmean(known) for row in rows if (known := [c for c in row if c is not None])]
        return max(wins) - 0.5 if wins else None
