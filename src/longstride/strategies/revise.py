"""Revisions: the policy answers, is shown the task and its own answer again, and answers once more, one after the other
(Snell et al., 2024, arXiv 2408.03314, section 6; the page that asks is that of `rewards.attempts`).

What always holds: an answer that is held back does not reach the environment, and nothing says whether it was right;
each answer may take what an only one may; all answers are turns of the one episode that counts, so their tokens are
its own. For tasks of a single turn; `check_again` revises answers of longer episodes.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from longstride.core.budget import Budget
from longstride.core.content import with_lines
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.core.task import Task
from longstride.envs.base import HELD_ANSWER, Env, Observation, Step
from longstride.envs.interface import ask
from longstride.envs.text import AGAIN, said
from longstride.rollout.episode import Plan
from longstride.rollout.players import Player
from longstride.strategies.base import EvalPlan
from longstride.strategies.best_of import BestOf


class Revise(BestOf):
    """Chains of answers; one answer of each chain counts, and a choice takes one of the chains. Sequential and parallel
    answers are in the ratio of `answers` to `attempts`. What a policy sees of its answers is up to its context: under
    `latest_observation` it sees that it is asked again, and no more."""

    answers: Count = 2
    """Of a chain, one after the other."""
    attempts: Count = 1
    """Chains of a task."""
    counts: Literal["last", "votes"] = "last"
    """Which answer of a chain: the last, or the most frequent, of equals the first."""
    paragraph: str = AGAIN
    """What is put behind the page."""

    @property
    def name(self) -> str:
        words = ("" if self.counts == "last" else "_votes") + ("" if self.paragraph == AGAIN else f"_{self.paragraph}")
        chains = f"_best_of_{self.attempts}_by_{self.by.name}" if self.attempts > 1 else ""
        return f"revise_{self.answers}{words}{chains}"

    def budget(self, budget: Budget) -> Budget:
        """Raises: ConfigError where episodes have several turns."""
        if budget.turns > 1:
            raise ConfigError(
                f"strategy {self.name} asks for an only turn again, and episodes may take {budget.turns}; take tasks "
                "of a single turn, with test_budget.turns=1, or check_again"
            )
        tokens = None if budget.tokens is None else budget.tokens * self.answers
        return budget.model_copy(update={"turns": self.answers, "tokens": tokens})

    def run(self, plans: Sequence[Plan], player: Player) -> EvalPlan:
        free = [replace(p, task=p.task.model_copy(update={"horizon": None})) if p.task.horizon else p for p in plans]
        return super().run(free, player)  # a task's own limit of one turn is for one answer

    def wrap(self, env: Env) -> Env:
        return _RevisedEnv(env, self)


class _RevisedEnv:
    """Holds all answers but the last back."""

    def __init__(self, env: Env, strategy: Revise) -> None:
        self._env = env
        self._strategy = strategy
        self._page = Observation("")
        self._given: list[str] = []

    async def reset(self, task: Task, seed: int) -> Observation:
        self._page = await ask(Observation, self._env, "reset", task, seed)
        return self._page

    async def step(self, text: str) -> Step:
        self._given.append(text)
        if len(self._given) < self._strategy.answers:
            page = Observation(with_lines(self._page.content, self._strategy.paragraph), self._page.url)
            return Step(page, action=said(text), info={HELD_ANSWER: said(text).removeprefix("answer ")})
        return await ask(Step, self._env, "step", self._counts())

    def _counts(self) -> str:
        if self._strategy.counts == "last":
            return self._given[-1]
        answers = [" ".join(said(text).lower().split()) for text in self._given]
        return self._given[answers.index(Counter(answers).most_common(1)[0][0])]

    async def final_state(self) -> dict[str, Any]:
        return await ask(dict, self._env, "final_state")

    async def close(self) -> None:
        await ask(object, self._env, "close")
