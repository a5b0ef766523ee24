"""Context, batch and turns as one strategy (section 3): answers of some length, several at a time, of which a vote says
which one the next turn reads."""

from collections.abc import Sequence
from dataclasses import replace

from longstride.core.budget import Budget
from longstride.core.numbers import Count, Limit
from longstride.envs.base import Env
from longstride.rollout.episode import PastTurn, Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalEpisode, EvalPlan, Strategy, nth_plan
from longstride.strategies.best_of import Choice, Majority
from longstride.strategies.revise import Revise


class ThreeAxes(Strategy):
    """A task is answered in turns. In each of them several answers are sampled, of some length at most; a choice takes
    one, and the next turn reads what its environment makes of it and answers once more. The last one chosen counts; the
    tokens of all are counted."""

    context: Limit = None
    """Tokens of an answer, its thought among them, at which it is cut; as many as a turn may have, if left out."""
    batch: Count = 4
    """Answers of a turn."""
    turns: Count = 2
    by: Choice = Majority()
    """Which answer of a turn is taken."""
    asks: bool = True
    """Whether tasks are of a single turn, so that their page is shown again with what was taken, and `check again`. Else
    the environment goes on after an answer, as `Iterated` does with a summary of the thought."""

    @property
    def name(self) -> str:
        by = "" if self.by == Majority() else f"_by_{self.by.name}"
        by += "" if self.asks else "_of_the_task"
        return f"context_{self.context or 'free'}_batch_{self.batch}_turns_{self.turns}{by}"

    @property
    def _turns(self) -> Revise:
        """Who puts the page of another turn, and holds answers back until the last one."""
        return Revise(answers=self.turns)

    def budget(self, budget: Budget) -> Budget:
        """Raises: ConfigError where episodes have several turns and an only one would be asked again."""
        own = self._turns.budget(budget) if self.asks else budget.model_copy(update={"turns": self.turns})
        tokens = budget.turn_tokens if self.context is None else min(self.context, budget.turn_tokens)
        return own.model_copy(update={"turn_tokens": tokens})

    def wrap(self, env: Env) -> Env:
        return self._turns.wrap(env) if self.asks else env

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        self.by.check(player)
        free = [replace(p, task=p.task.model_copy(update={"horizon": None})) if p.task.horizon else p for p in plans]
        chosen: list[EvalEpisode] = []
        sampled, read = [0] * len(plans), [0] * len(plans)
        for turn in range(self.turns):
            drafts = [PastTurn.of(one.trajectory.turns) for one in chosen] or [()] * len(plans)
            came = yield [
                self._plan(plan, draft, turn, k)
                for plan, draft in zip(free, drafts, strict=True)
                for k in range(self.batch)
            ]
            chosen = self.by.choose([came[k : k + self.batch] for k in range(0, len(came), self.batch)], player)
            for n, one in enumerate(chosen):
                sampled[n] += one.spent_tokens
                read[n] += one.read_tokens
        return [
            EvalEpisode(t, further_tokens=sampled[n] - t.sampled_tokens, read_tokens=read[n])
            for n, t in enumerate(one.trajectory for one in chosen)
        ]

    def _plan(self, plan: Plan, draft: tuple[PastTurn, ...], turn: int, k: int) -> Plan:
        """Of an answer of a turn; the first of the first turn is the episode of `Direct`."""
        number = turn * self.batch + k
        budget = plan.budget.model_copy(update={"turns": turn + 1})
        return replace(nth_plan(plan, number), history=draft, budget=budget)
