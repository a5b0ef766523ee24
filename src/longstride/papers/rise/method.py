"""Attempts after failed ones, credit for the best of a group, and what both are compared with."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean
from typing import Literal

from longstride.core.numbers import Count, Positive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory, by_group
from longstride.methods import Advantage, Credit
from longstride.rewards.attempts import check_attempts, scores
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.planning import Planner, Sampler, Stages
from longstride.rollout.players import Player
from longstride.rollout.summary import Measure
from longstride.strategies import EvalEpisode, EvalPlan, Strategy
from longstride.strategies.base import nth_plan


class Introspection(Sampler):
    """A group of attempts at each task; where its first member failed, another one that has this attempt as history.

    The first member is chosen without a look at the others, so a history is what the policy does by itself; the best of
    a group is for credit to find (`BestOfGroup`). The attempt is the last turn of its episode. For `rewards.Attempts`
    at tasks of one turn; of others a ConfigError says so, where a history ended the episode.
    """

    attempts: Count = 3
    """Most attempts at a task, one after the other."""

    def plan(self, planner: Planner) -> Stages:
        played: list[Trajectory] = []
        states: list[tuple[Task, Trajectory | None]] = [(task, None) for task in planner.tasks(planner.groups)]
        for number in range(1, self.attempts + 1):
            found = yield [
                plan
                for task, before in states
                for plan in self._after(planner, _limited(task, number), before, f"attempt_{number}")
            ]
            for t in found:
                check_attempts(t, number)
            played += found
            own = [group[0] for group in by_group(found)]
            states = [(t.task, t) for t in own if not t.success]
            if not states:
                break
        return played

    def _after(self, planner: Planner, task: Task, before: Trajectory | None, role: str) -> list[Plan]:
        history = PastTurn.of(before.turns) if before else ()
        return planner.group(task, history=history, role=role, like=before)


def _limited(task: Task, attempts: int) -> Task:
    """The task with so many attempts, of which the last one is judged."""
    return task.model_copy(update={"horizon": attempts})


class BestOfGroup(Credit):
    """Reward-weighted regression on the best attempt of each group (of several the first): each of its tokens weighs

        exp((r - m) / temperature) / |a|,  m = 0, or the mean reward of all attempts at the prompt (`centred`)

    With rewards 0 and 1, answers of one token, N attempts and m = 0 the expected gradient is that of the success p = 1 - q
    times exp(1 / temperature) (1 - q^N) / p - q^(N - 1): a state that is hardly ever solved weighs almost N times as much
    as one that always is.
    """

    temperature: Positive = 0.4
    """tau: the smaller, the less a failure is imitated."""
    centred: bool = False
    """Whether prompts that are solved anyway weigh less (as in the paper); the release does not do so."""

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        groups = by_group(played)
        best = {max(group, key=lambda t: t.reward).ordinal for group in groups}
        rewards: defaultdict[str, list[float]] = defaultdict(list)
        for t in played:
            rewards[t.task.id].append(t.reward)

        def weight(t: Trajectory) -> float:
            mean = fmean(rewards[t.task.id]) if self.centred else 0.0
            return exp((t.reward - mean) / self.temperature) / max(len(t.turns[-1].sampled_ids), 1)

        return [
            [None] * (t.length - 1) + [weight(t)] if t.turns and t.ordinal in best else [None] * t.length
            for t in played
        ]


class After(Measure):
    """Whether a task is solved after so many attempts, which go on after a success."""

    attempts: Count
    """Attempts that count, the first ones."""
    by: Literal["last", "majority", "any"]
    """By the last of them, by the answer that most of them gave (of several the newest; an attempt without an answer
    has no vote), or by any (an oracle)."""

    @property
    def name(self) -> str:
        return f"{self.by}_{self.attempts}"

    def __call__(self, trajectory: Trajectory) -> float:
        return self.of([(u.action, r) for u, r in zip(trajectory.turns, scores(trajectory), strict=True)])

    def of(self, attempts: Sequence[tuple[str | None, float]]) -> float:
        """The score of what counts, of answers (None where there was none) and their scores."""
        counted = attempts[: self.attempts]
        votes = Counter[str | None](answer for answer, _ in counted if answer is not None)
        rank = {"last": lambda k: k, "majority": lambda k: (votes[counted[k][0]], k), "any": lambda k: counted[k][1]}
        return counted[max(range(len(counted)), key=rank[self.by])][1] if counted else 0.0


ATTEMPTS = 5  # of a test
OUTCOMES = After(attempts=ATTEMPTS, by="majority"), After(attempts=ATTEMPTS, by="any")


class ParallelAttempts(Strategy):
    """Five first attempts alone, where `Direct` makes them one after the other, and `OUTCOMES` of them. The first counts."""

    @property
    def name(self) -> str:
        return "parallel"

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        once = [replace(plan, task=_limited(plan.task, 1)) for plan in plans]
        found = yield [nth_plan(p, k) for p in once for k in range(ATTEMPTS)]
        groups = [found[k : k + ATTEMPTS] for k in range(0, len(found), ATTEMPTS)]
        return [EvalEpisode(g[0], self.measures(g), sum(t.sampled_tokens for t in g[1:])) for g in groups]

    def measures(self, group: Sequence[Trajectory]) -> dict[str, float | None]:
        """`OUTCOMES` of a task's first attempts; None where one of them failed."""
        failed = any(t.stop.failed for t in group)
        attempts = [(turn.action, t.reward) for t in group for turn in t.turns[:1]]
        return {outcome.name: None if failed else outcome.of(attempts) for outcome in OUTCOMES}
