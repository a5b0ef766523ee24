"""Which of several strategies serves which tasks: chosen on one fold of the tasks, tested on the other.

What always holds: what counts on a fold was chosen by the other one alone; a task with all its attempts is in one
fold; a kind of tasks has nearly as many in both. All strategies are played on all tasks, with the same randomness; the
tokens of an episode are those of the strategy that counts, as if the choice had been made before, and `tried_tokens`
are those of all.
"""

from collections.abc import Generator, Sequence
from statistics import fmean
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from longstride.core.budget import Budget
from longstride.core.numbers import Count, Limit
from longstride.core.task import DIFFICULTIES
from longstride.core.trajectory import Trajectory
from longstride.rewards.scorers import Score
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import APART, EvalEpisode, EvalPlan, Strategy, further_plan
from longstride.strategies.searched import Guide

PROBE = APART // 2
"""Numbers of the answers that tell how hard a task is, among the further episodes of it."""


class Chosen(Strategy):
    """The strategy that did best on other tasks of the same difficulty, among those that kept to the budget there
    (Snell et al., 2024, arXiv 2408.03314, section 3.2). The difficulty is the task's own, or what a guide says of
    answers that are given for it."""

    strategies: Annotated[tuple[Strategy, ...], Field(min_length=2)]
    """What there is to choose from; the first of equals is chosen."""
    budget_tokens: Limit = None
    """Tokens (sampled, and read by a guide) that a strategy may take for a task in the mean; where none keeps to it,
    the thriftiest is chosen."""
    by_difficulty: bool = True
    """Whether each difficulty has a strategy of its own."""
    predicted_by: Guide | None = None
    """Says how hard a task is, by its mean score of answers; the tasks' own difficulties if left out."""
    probes: Count = 4
    """Answers to a task that are scored for it; their tokens are counted."""

    @model_validator(mode="after")
    def _alike(self) -> Self:
        probe = Budget(turns=7, tokens=77)  # which no strategy has by chance
        for s in self.strategies:
            own = any(getattr(type(s), name) is not getattr(Strategy, name) for name in ("wrap", "players"))
            if own or s.budget(probe) != probe:
                raise ValueError(f"{s.name} has a budget, an environment or players of its own; they cannot be mixed")
        return self

    @property
    def name(self) -> str:
        guide = f"_by_{self.probes}_of_{self.predicted_by.name}" if self.predicted_by else "_by_difficulty"
        budget = "" if self.budget_tokens is None else f"_within_{self.budget_tokens}"
        return f"chosen_of_{len(self.strategies)}" + (guide if self.by_difficulty else "_for_all") + budget

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        probed = yield from self._probed(plans, player)
        kinds = self._kinds(plans, probed)
        tried_S: list[list[EvalEpisode]] = []
        for strategy in self.strategies:
            tried_S.append((yield from strategy.run(plans, player)))
        folds = folded([plan.group for plan in plans], kinds)
        best_FK = self._best(tried_S, folds, kinds)
        return [
            self._counted([of[k] for of in tried_S], int(best_FK[folds[k], kinds[k]]), probe)
            for k, probe in enumerate(probed)
        ]

    def _counted(self, tried: Sequence[EvalEpisode], chosen: int, probe: "_Probed") -> EvalEpisode:
        """The episode of a task that counts, with what finding out how hard it is took."""
        counts = tried[chosen]
        measures = {
            "chosen": chosen,
            "tried_tokens": sum(e.total_tokens for e in tried) + probe.sampled + probe.read,
            "scored_tokens": (counts.measures.get("scored_tokens") or 0) + probe.scored,
        }
        further, read = counts.further_tokens + probe.sampled, counts.read_tokens + probe.read
        return EvalEpisode(counts.trajectory, measures, further, read)

    def _best(self, tried_S: Sequence[Sequence[EvalEpisode]], folds: Sequence[int], kinds: Sequence[int]) -> np.ndarray:
        """[F, K] which strategy is tested on each fold, for each kind: by tasks that failed under none of them."""
        won_FSK = np.zeros((2, len(tried_S), max(kinds) + 1))
        tokens_FSK, tasks_FK = np.zeros_like(won_FSK), np.zeros((2, max(kinds) + 1))
        for k, (fold, kind) in enumerate(zip(folds, kinds, strict=True)):
            if any(of[k].trajectory.stop.failed for of in tried_S):
                continue
            tasks_FK[fold, kind] += 1
            for s, of in enumerate(tried_S):
                won_FSK[fold, s, kind] += of[k].trajectory.success
                tokens_FSK[fold, s, kind] += of[k].total_tokens
        if self.budget_tokens is not None:
            if not self.by_difficulty:
                tokens_FSK[:], tasks_FK[:] = tokens_FSK.sum(2, keepdims=True), tasks_FK.sum(1, keepdims=True)
            mean_FSK = tokens_FSK / np.maximum(tasks_FK, 1)[:, None]
            allowed = np.maximum(self.budget_tokens, mean_FSK.min(1, keepdims=True))
            won_FSK = np.where(mean_FSK <= allowed, won_FSK, -1e9)
        return crossed(won_FSK, self.by_difficulty)

    def _kinds(self, plans: Sequence[Plan], probed: Sequence["_Probed"]) -> list[int]:
        """The difficulty of each plan's task, counted from 0: predicted ones are as many bins of as many tasks."""
        if self._probe is None:
            return [DIFFICULTIES.index(plan.task.difficulty) for plan in plans]
        of_task: dict[int, list[float]] = {}
        for plan, probe in zip(plans, probed, strict=True):
            of_task.setdefault(plan.group, []).append(probe.score)
        means = {group: fmean(scores) for group, scores in of_task.items()}
        edges = np.quantile(list(means.values()), np.arange(1, len(DIFFICULTIES)) / len(DIFFICULTIES))
        return [int(np.searchsorted(edges, means[plan.group])) for plan in plans]

    @property
    def _probe(self) -> Guide | None:
        return self.predicted_by if self.by_difficulty else None

    def _probed(
        self, plans: Sequence[Plan], player: Player
    ) -> Generator[Sequence[Plan], list[Trajectory], list["_Probed"]]:
        """What answers to each task look like to the guide; nothing where none is asked."""
        if self._probe is None:
            return [_Probed()] * len(plans)
        self._probe.check(player)
        n = self.probes
        came = yield [further_plan(p, PROBE + k) for p in plans for k in range(n)]
        scores = iter(self._probe([t for t in came if not t.stop.failed], player))
        of = [Score(0.0) if t.stop.failed else next(scores) for t in came]
        return [
            _Probed(
                fmean(score.value or 0.0 for score in of[k : k + n]),
                sum(t.sampled_tokens for t in came[k : k + n]) + sum(score.tokens for score in of[k : k + n]),
                sum(score.read for score in of[k : k + n]),
                sum(score.tokens + score.read for score in of[k : k + n]),
            )
            for k in range(0, len(came), n)
        ]


class _Probed(NamedTuple):
    """What finding out how hard a task is came to."""

    score: float = 0.0
    sampled: int = 0
    """Tokens, by the policy and the guide."""
    read: int = 0
    """By the guide."""
    scored: int = 0
    """Sampled and read by the guide."""


def folded(groups: Sequence[int], kinds: Sequence[int]) -> list[int]:
    """0 or 1 for each plan: the tasks (groups) of a kind by turns, in the order in which they come."""
    of_task: dict[int, int] = {}
    seen: dict[int, int] = {}
    for group, kind in zip(groups, kinds, strict=True):
        if group not in of_task:
            of_task[group] = seen.get(kind, 0) % 2
            seen[kind] = seen.get(kind, 0) + 1
    return [of_task[group] for group in groups]


def crossed(won_FSL: np.ndarray, by_level: bool) -> np.ndarray:
    """[F, L] the strategy that is tested on each of two folds at each level: the best on the other fold at this level,
    or over all levels; the first of equals."""
    seen = won_FSL[::-1]
    if not by_level:
        seen = np.broadcast_to(seen.sum(2, keepdims=True), seen.shape)
    return seen.argmax(1)
