"""Best of n: several episodes of a task, of which one counts.

What always holds: the first attempt is the episode of `Direct`, id for id, and the seed of the k-th depends on the task
and on k alone, so more attempts are the same ones and others besides; failed attempts are never chosen where there is
another; the tokens of all attempts are counted (`spent_tokens`).
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from math import inf
from statistics import fmean
from typing import Annotated

from pydantic import Field

from longstride.core.component import Component
from longstride.core.numbers import Share
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player, with_ids
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, further_plan


class Choice(Component):
    """Family: which of several episodes of a task counts."""

    @property
    def name(self) -> str:
        """What metrics rows call it: the class name in snake case, unless fields give different results."""
        return self.type_name()

    def check(self, player: Player) -> None:  # noqa: B027 (most need nothing)
        """Refuses, before anything is played, a player that does not have what it needs.

        Raises:
            ConfigError: it does not.
        """

    @abstractmethod
    def __call__(self, attempts: Sequence[Trajectory]) -> Trajectory:
        """The one that counts, of one or more that did not fail; the first of equals."""

    def choose(self, groups: Sequence[Sequence[Trajectory]], player: Player) -> list[EvalEpisode]:
        """Which attempt of each group counts, and what was sampled besides.

        Args:
            groups: the attempts of a task each, failed ones among them.
            player: who played them; nothing is open with it any more.
        """
        return [self._chosen(attempts) for attempts in groups]

    def _chosen(self, attempts: Sequence[Trajectory]) -> EvalEpisode:
        whole = [t for t in attempts if not t.stop.failed]
        chosen = self(whole) if whole else attempts[0]
        return EvalEpisode(chosen, further_tokens=sum(t.sampled_tokens for t in attempts if t is not chosen))


class Verifier(Choice):
    """The first that a verifier accepts, else the first. One that never errs knows the truth, so its success is the
    share of tasks that one of n attempts solves (pass@n): the best that any choice can do."""

    false_positive: Share = 0.0
    """Share of failures that it accepts."""
    false_negative: Share = 0.0
    """Share of successes that it does not (TTI's judge agrees with people in 88.9 % of cases)."""

    @property
    def name(self) -> str:
        errs = f"_{self.false_positive:g}_{self.false_negative:g}" if self.false_positive or self.false_negative else ""
        return f"verifier{errs}"

    def __call__(self, attempts: Sequence[Trajectory]) -> Trajectory:
        return next(filter(self._accepts, attempts), attempts[0])

    def _accepts(self, attempt: Trajectory) -> bool:
        errs = stream(attempt.seed, "verifier", attempt.ordinal).random()
        return errs >= self.false_negative if attempt.success else errs < self.false_positive


class Majority(Choice):
    """The first with the answer that most attempts give, case aside (self-consistency, Wang et al., arXiv 2203.11171);
    attempts without an answer have no vote."""

    def __call__(self, attempts: Sequence[Trajectory]) -> Trajectory:
        answers = [(t.answer or "").strip().lower() for t in attempts]
        if not (votes := Counter(answer for answer in answers if answer)):
            return attempts[0]
        return attempts[answers.index(votes.most_common(1)[0][0])]


class Likelihood(Choice):
    """The one whose sampled tokens the policy finds most likely in the mean; one without any comes last."""

    def check(self, player: Player) -> None:
        with_ids(player, "best_of by likelihood takes what a language model finds likeliest")

    def __call__(self, attempts: Sequence[Trajectory]) -> Trajectory:
        return max(attempts, key=lambda t: fmean([x for turn in t.turns for x in turn.behaviour_logprobs] or [-inf]))


class BestOf(Strategy):
    """Plays a task several times; a choice says which episode counts."""

    attempts: Annotated[int, Field(ge=2)] = 4
    """Episodes of a task."""
    by: Choice = Majority()
    """Which of them counts."""

    @property
    def name(self) -> str:
        return f"best_of_{self.attempts}_by_{self.by.name}"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        n = self.attempts
        self.by.check(player)
        found = yield [plan for first in plans for plan in (first, *self.further(first))]
        return self.by.choose([found[k : k + n] for k in range(0, len(found), n)], player)

    def further(self, first: Plan) -> list[Plan]:
        return [further_plan(first, k) for k in range(1, self.attempts)]
