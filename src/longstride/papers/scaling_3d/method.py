"""Context, batch and turns as one strategy (section 3): thoughts of a length, several at a time, of which a vote says
which one the next turn reads."""

from collections.abc import Generator, Sequence
from dataclasses import replace

from longstride.core.budget import Budget
from longstride.core.numbers import Count, Limit
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Env
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import Player
from longstride.strategies.base import APART, EvalEpisode, EvalPlan, Strategy
from longstride.strategies.best_of import Choice, Majority
from longstride.strategies.revise import Revise
from longstride.strategies.think_on import ThinkOn

OWN = APART // 2
"""Numbers of the episodes that are played besides, from here on: those below are the stages of a thought."""


class ThreeAxes(Strategy):
    """A task is answered in turns. In each of them several answers are sampled, each after a thought of some length; a
    choice takes one, and the next turn reads it under the task and answers once more. The last one chosen counts; the
    tokens of all are counted. For tasks of a single turn."""

    context: Limit = None
    """Tokens of a thought: one that ends earlier is made to go on, one that is longer is ended. As long as the policy
    likes, if left out."""
    batch: Count = 4
    """Answers of a turn."""
    turns: Count = 2
    by: Choice = Majority()
    """Which answer of a turn is taken."""

    @property
    def name(self) -> str:
        by = "" if self.by == Majority() else f"_by_{self.by.name}"
        return f"context_{self.context or 'free'}_batch_{self.batch}_turns_{self.turns}{by}"

    @property
    def _turns(self) -> Revise:
        """Who puts the page of another turn, and holds answers back until the last one."""
        return Revise(answers=self.turns)

    def budget(self, budget: Budget) -> Budget:
        """Raises: ConfigError where episodes have several turns."""
        return self._turns.budget(budget)

    def wrap(self, env: Env) -> Env:
        return self._turns.wrap(env)

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        """Raises: ConfigError where no language model plays, or a turn has no room for such thoughts."""
        self.by.check(player)
        free = [replace(p, task=p.task.model_copy(update={"horizon": None})) if p.task.horizon else p for p in plans]
        taken: list[Trajectory | None] = [None] * len(plans)
        sampled, read = [0] * len(plans), [0] * len(plans)
        for turn in range(self.turns):
            stage = [
                self._plan(plan, draft, turn, k)
                for plan, draft in zip(free, taken, strict=True)
                for k in range(self.batch)
            ]
            came = yield from self._thought(stage, player)
            groups = [came[k : k + self.batch] for k in range(0, len(came), self.batch)]
            chosen = self.by.choose([[e.trajectory for e in group] for group in groups], player)
            for n, (group, one) in enumerate(zip(groups, chosen, strict=True)):
                sampled[n] += one.spent_tokens + sum(e.further_tokens for e in group)
                read[n] += one.read_tokens
                taken[n] = one.trajectory
        return [
            EvalEpisode(t, further_tokens=sampled[n] - t.sampled_tokens, read_tokens=read[n])
            for n, t in enumerate(t for t in taken if t is not None)
        ]

    def _plan(self, plan: Plan, draft: Trajectory | None, turn: int, k: int) -> Plan:
        """Of an answer of a turn; the first of the first turn is the episode of `Direct`."""
        number = turn * self.batch + k
        ordinal = (plan.ordinal + 1) * APART + OWN + number if number else plan.ordinal
        history = PastTurn.of(draft.turns) if draft else ()
        return replace(
            plan, ordinal=ordinal, history=history, budget=plan.budget.model_copy(update={"turns": turn + 1})
        )

    def _thought(
        self, stage: Sequence[Plan], player: Player
    ) -> Generator[Sequence[Plan], list[Trajectory], list[EvalEpisode]]:
        if self.context is None:
            return [EvalEpisode(t) for t in (yield stage)]
        return (yield from ThinkOn(most=self.context).run(stage, player))
