"""Kimi k1.5: the loss of online mirror descent (`MirrorDescent`), a reward for short answers (`LengthReward`), draws of
tasks that are solved seldom (`Prioritised`), groups of answers in pieces (`WholeGroups`), and what makes a long
thinker a short one (`ShortestRight`, `ShorterPairs`; weights are merged by `models.merge`)."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from longstride.core.experience import Experience
from longstride.core.numbers import Count, CountOrZero, Positive, Weight
from longstride.core.task import Task
from longstride.core.trajectory import PIECE, EpisodeRecord, TaskKey, Trajectory, by_group
from longstride.curriculum.tasks import TaskCurriculum, Tasks
from longstride.methods import Advantage, Credit, OnPolicy, Reinforce, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR
from longstride.methods.losses import LossTerms
from longstride.methods.pairs import Pair, PairCredit
from longstride.methods.replay import without_replacement
from longstride.methods.tokens import Tokens, sequence_sums
from longstride.rewards import Reward, TaskReward, Verdict

if TYPE_CHECKING:
    from torch import Tensor


TAU = "mirror_coefficient"
"""Stream of tau, times the share of the aggregation."""


class MirrorDescent(Reinforce):
    """-A log pi + tau / 2 (log pi / old)^2 of a sequence, whose tokens share the square equally.

    Its gradient is that of (A - tau log pi / old)^2 / (2 tau), the paper's objective, up to what does not depend on the
    policy. At the sampling policy it is that of `Reinforce`.
    """

    tau: Weight = 0.5
    """What it costs to leave the policy that sampled."""
    reads_sampler = True

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        return super().coefficients(samples) | {TAU: [self.tau] * len(samples)}

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        number_P, log_ratio_P = tokens.sequence_P, logp_P - tokens.streams[BEHAVIOUR]
        length_P = sequence_sums(logp_P.new_ones(len(logp_P)), number_P)
        square_P = sequence_sums(log_ratio_P, number_P).square() / length_P
        return LossTerms(-tokens.streams[ADVANTAGES] * logp_P + tokens.streams[TAU] / 2 * square_P)


def said(t: Trajectory) -> int:
    """How many tokens an episode has, those that it began with included."""
    return sum(len(turn.ids) for turn in t.turns)


class LengthReward(TaskReward):
    """From some iteration on an answer earns beside its reward `weight` times 1/2 - (length - least) / (most - least),
    by the lengths of its group in tokens, least 1/2 for the shortest and -1/2 for the longest; a wrong one never earns
    by it, and loses where it is longer than the middle (section 2.3.3)."""

    after: CountOrZero = 0
    """The last iteration without it: shortness that is paid from the beginning slows learning down."""
    weight: Weight = 0.5
    """Of the length; the paper has one and does not say which."""

    def compare(self, group: Sequence[Trajectory]) -> list[Verdict] | None:
        lengths = [said(t) for t in group]
        least, most = min(lengths), max(lengths)
        if group[0].iteration <= self.after or least == most:
            return None
        verdicts = []
        for t, length in zip(group, lengths, strict=True):
            place = 0.5 - (length - least) / (most - least)
            bonus = self.weight * (place if t.success else min(0.0, place))
            verdicts.append(Verdict(t.reward - t.earned + bonus, t.success, t.terms | {"length": bonus}, t.evidence))
        return verdicts


class Prioritised(TaskCurriculum):
    """Tasks with chances in proportion to 1 - success, of `pool` times as many candidates; what was never played has
    success 0 (section 2.3.4). A piece of an answer that goes on is neither a success nor a failure."""

    by: Literal["task", "template", "difficulty"] = "task"
    """Whose success: that of the task, where there are finitely many; or of all of its template, or of its difficulty
    and source, where tasks are made anew."""
    pool: Count = 4
    """Candidates for each task that is drawn."""

    def draw(self, source: Tasks, n: int, rng: random.Random, experience: Experience) -> list[Task]:
        played, solved = Counter[object](), Counter[object]()
        for record in experience.records:
            if not record.stop.failed and record.role != PIECE:
                played[self._key(record.task)] += 1
                solved[self._key(record.task)] += record.success
        candidates = source.sample(rng, n * self.pool)
        fails = [1 - solved[key] / max(played[key], 1) for key in map(self._key, candidates)]
        return [candidates[k] for k in without_replacement(fails, n, rng)]

    def _key(self, task: Task | TaskKey) -> object:
        of = {"task": task.id, "template": task.template_id, "difficulty": (task.source, task.difficulty)}
        return of[self.by]


class WholeGroups(OnPolicy):
    """Groups whose last answer has ended in this iteration: an answer is compared with all of its group, whenever they
    ended. What was sampled in earlier iterations is read and not trained."""

    reward: Reward | None = None
    """Compares them, such as by their lengths, where the recipe's own reward cannot: in the iteration of one its
    siblings may not have ended. What is stored keeps what each one earned alone."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return episode.role != PIECE

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        groups: defaultdict[int, list[EpisodeRecord]] = defaultdict(list)
        for record in experience.records:
            groups[record.group].append(record)
        now = experience.records[-1].iteration if experience.records else 0
        whole = {g for g, of in groups.items() if of[-1].iteration == now and _has_ended(of)}
        found = [episode for episode in kept if episode.group in whole]
        chosen = {group[0].group for group in by_group(found) if self.teaches(group)}
        return [episode for episode in found if episode.group in chosen]

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        if self.reward is None:
            return drawn
        from longstride.run.loop import compare

        compared = [replace(t) for t in drawn]
        compare(self.reward, compared)
        return [t for t in compared if not t.stop.failed]


def _has_ended(group: Sequence[EpisodeRecord]) -> bool:
    """Whether as many answers of a group have ended as were begun."""
    begun = sum(record.iteration == group[0].iteration for record in group)
    return sum(record.role != PIECE for record in group) == begun


class ShortestRight(Credit):
    """Of each group the shortest right answer is imitated, and nothing else (shortest rejection sampling, section
    2.4)."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        chosen = {id(min(right, key=said)) for group in by_group(played) if (right := [t for t in group if t.success])}
        return [[1.0 if id(t) in chosen else None] * t.length for t in played]


class ShorterPairs(PairCredit):
    """Pairs for a loss of preferences: of each group the shortest right answer, against each wrong one and each right
    one that is `times` as long or longer (section 2.4)."""

    times: Positive = 1.5
    """How much longer a right answer is that is not preferred."""

    def pairs(self, group: Sequence[Trajectory]) -> list[Pair]:
        if not (right := [t for t in group if t.success]):
            return []
        best = min(right, key=said)
        return [(best, t) for t in group if t is not best and (not t.success or said(t) >= self.times * said(best) > 0)]
