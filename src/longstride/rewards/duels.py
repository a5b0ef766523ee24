"""Preferences: which of two answers to a task is better, and a reward that is made of nothing else. No torch.

What always holds: of a pair and the pair the other way round the chances add up to 1; what could not be judged is None
and no chance; whether a task was *done* is the task's own evaluator's to say, whatever is preferred.

| preference | chance that the first is preferred |
|---|---|
| `ByReward` | by the difference of what the evaluator gives: a verifier, noisy if wanted (Bradley and Terry, 1952) |
| `InTurn` | kinds of answers beat one another in a circle: intransitive by construction |
| `AskedPair` | what a judge says: a model over HTTP, or a run |
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import exp
from statistics import fmean
from typing import Annotated
from zlib import crc32

from pydantic import Field

from longstride.core.component import Component
from longstride.core.errors import JudgeFailure
from longstride.core.numbers import Positive, Share
from longstride.core.seeds import stream
from longstride.core.trajectory import DUELS, Trajectory, Usage
from longstride.rewards.evaluators import Verdict, normalise
from longstride.rewards.scorers import Answered, AnyJudge, Pairwise, Question, Scorer, score
from longstride.rewards.task_reward import TaskReward

Chance = float | None
DIGITS = 640
"""Of an answer that is read as a number, at most: Python never refuses so many."""


class Preference(Component):
    """Family: which of two episodes of a task is preferred."""

    @abstractmethod
    def __call__(self, pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Chance]:
        """The chance of each pair's first one to be preferred; None where that could not be judged."""

    def champions(self, played: Trajectory) -> list[Trajectory]:
        """Episodes of the same task, of which one beats a given policy as often as any answer can; none where that is
        not known. `played` is the best episode that the policy played."""
        return []


class ByReward(Preference):
    """The one that earned more. Rewards are those before any duel."""

    sharpness: Positive | None = None
    """The chance is the sigmoid of this times the difference; left out, more is always preferred."""
    noise: Annotated[float, Field(ge=0, lt=0.5)] = 0.0
    """Share of labels that are turned round."""

    def __call__(self, pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Chance]:
        return [self.noise + (1 - 2 * self.noise) * self._sure(a.reward - b.reward) for a, b in pairs]

    def _sure(self, ahead: float) -> float:
        if self.sharpness is None:
            return 0.5 + 0.5 * ((ahead > 0) - (ahead < 0))
        return 1 / (1 + exp(-min(max(self.sharpness * ahead, -700.0), 700.0)))

    def champions(self, played: Trajectory) -> list[Trajectory]:
        return [replace(played, reward=1.0, success=True)]


class InTurn(Preference):
    """Answers are of kinds, each of which beats the one before it, in a circle. The kind of an answer that is a number
    is its remainder, that of any other a checksum's; no answer at all loses to any."""

    kinds: Annotated[int, Field(ge=3)] = 3
    """How many."""
    sure: Annotated[float, Field(gt=0.5, le=1)] = 0.9
    """Chance of the kind that beats the other; kinds that are no neighbours, or equal, are even."""
    right: Share = 0.0
    """Weight of a verifier beside it: 1 is `ByReward`, and no circle is left."""

    def kind(self, answer: str) -> int:
        """Of an answer."""
        text = normalise(answer)
        number = text.isdecimal() and len(text) <= DIGITS
        return (int(text) if number else crc32(text.encode())) % self.kinds

    def __call__(self, pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Chance]:
        by_reward = ByReward()(pairs)
        return [
            self.right * (right or 0.0) + (1 - self.right) * self._in_turn(a.answer, b.answer)
            for right, (a, b) in zip(by_reward, pairs, strict=True)
        ]

    def _in_turn(self, first: str | None, second: str | None) -> float:
        if first is None or second is None:
            return 0.5 + 0.5 * ((second is None) - (first is None))
        ahead = (self.kind(first) - self.kind(second)) % self.kinds
        return {1: self.sure, self.kinds - 1: 1 - self.sure}.get(ahead, 0.5)

    def champions(self, played: Trajectory) -> list[Trajectory]:
        """Of each kind a wrong answer, for there always is one, and the right one, which is of one kind alone, where
        `played` is it. Where it is not, nothing says of which kind that would be, and each is taken for it."""
        known = played.reward >= 1.0
        kinds = [replace(played, answer=str(kind), reward=float(not known)) for kind in range(self.kinds)]
        return [*kinds, played] if known else kinds


class AskedPair(Preference):
    """What a judge says: a model behind a chat API, or a run that learned to judge. Who said nothing loses to whoever
    did, without a question. What the judge takes stands in the `judge_usage` of the first episode of all."""

    judge: AnyJudge
    """Who is asked; a text names a run that learned to judge."""
    scorer: Scorer = Pairwise(reasons=0)
    """How: which of the two is better, in both orders; or how good each one is (`Generative`), where a difference of 1
    is a chance of 1."""

    def __call__(self, pairs: Sequence[tuple[Trajectory, Trajectory]]) -> list[Chance]:
        shown = [(a.task.goal, [self._shown(a), self._shown(b)]) for a, b in pairs]
        asked = [each for each in shown if all(each[1])]
        found = iter(self._found(asked, pairs[0][0]) if asked else ())
        return [next(found) if all(said) else 0.5 + (bool(said[0]) - bool(said[1])) / 2 for _, said in shown]

    def _found(self, tasks: Sequence[tuple[str, list[str]]], payer: Trajectory) -> list[Chance]:
        requests = list[int]()

        def ask(questions: Sequence[Question]) -> Sequence[Answered]:
            requests.append(len(questions))
            return self.judge.ask(questions, payer.seed)

        found = score(self.scorer, tasks, ask)
        every = [of for pair in found for of in pair]
        taken = Usage(sum(requests), read=sum(of.read for of in every), sampled=sum(of.tokens for of in every))
        payer.judge_usage = taken.plus(payer.judge_usage or Usage())
        return [
            None if first.value is None or second.value is None else 0.5 + (first.value - second.value) / 2
            for first, second in found
        ]

    def _shown(self, t: Trajectory) -> str:
        return t.turns[-1].text if self.judge.reads == "turn" and t.turns else t.answer or ""


class Duels(TaskReward):
    """The share of its siblings that an episode is preferred to. What the evaluator gave is in `terms` as `task`, and
    each duel in the evidence (`DUELS`), where a credit of pairs reads it."""

    preference: Preference = ByReward()
    """Who says which is better."""
    labels: bool = True
    """Whether each duel is decided, once, by its chance, as people who are asked decide; else it is that chance."""

    def pairs(self, group: Sequence[Trajectory]) -> list[tuple[Trajectory, Trajectory]]:
        """Who is compared with whom."""
        return list(combinations(group, 2))

    def compare(self, group: Sequence[Trajectory]) -> list[Verdict]:
        """Raises: JudgeFailure where none of an episode's pairs could be judged: that is no reward."""
        pairs = self.pairs(group)
        won: dict[int, dict[str, float]] = {t.ordinal: {} for t in group}
        for (a, b), chance in zip(pairs, self.preference(pairs), strict=True):
            if chance is None:
                continue
            share = float(stream(a.seed, "duel", a.ordinal, b.ordinal).random() < chance) if self.labels else chance
            won[a.ordinal][str(b.ordinal)], won[b.ordinal][str(a.ordinal)] = share, 1 - share
        if unjudged := {t.ordinal for pair in pairs for t in pair if not won[t.ordinal]}:
            raise JudgeFailure(
                f"{self.preference.type_name()} judged no pair of {len(unjudged)} of the {len(group)} answers to task "
                f"{group[0].task.id}"
            )
        return [
            Verdict(
                (fmean(won[t.ordinal].values()) if won[t.ordinal] else 0.5) - t.earned,
                t.success,
                t.terms | {"task": t.reward},
                t.evidence | {DUELS: won[t.ordinal]},
            )
            for t in group
        ]


class AgainstRivals(Duels):
    """The share of its rivals that an episode is preferred to: of those of its group that a companion played, and which
    have a role (`rollout.WithRivals`). The policy's own are not compared with one another."""

    def pairs(self, group: Sequence[Trajectory]) -> list[tuple[Trajectory, Trajectory]]:
        return [(t, rival) for t in group if not t.role for rival in group if rival.role]
