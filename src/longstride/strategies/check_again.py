"""Check-again: an answer counts only when it has been given several times (TTI, "Thinking vs. Doing", min_try).

What always holds: an answer that is held back does not reach the environment, costs a turn of the one budget, and is
not recorded as the episode's answer; the last of `checks` answers is passed on as any other action is. Answers are
known by the grammar of web actions, or by the environment itself (`envs.base.AskingAgain`).
"""

from typing import Annotated, Any

from pydantic import Field

from longstride.core.budget import Budget
from longstride.core.content import with_lines
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.envs.base import HELD_ANSWER, AskingAgain, Env, Observation, Step
from longstride.envs.interface import ask
from longstride.envs.sites.actions import WebAction, parse
from longstride.strategies.base import Strategy, settings_in


class CheckAgain(Strategy):
    """The page comes back with a paragraph that asks to look again, until the last of `checks` answers."""

    checks: Annotated[int, Field(ge=1)] = 2
    """Answers until one counts: 1 is `Direct`, 2 to 4 are the paper's double, triple and fourth check."""
    keep_last_answer: bool = False
    """Whether an answer that was held back counts when a budget ends the episode before the last one; the paper
    discards it."""
    paragraph: str = "check again"
    """What is put behind the page. Short, for the tiny model knows few words."""

    @property
    def name(self) -> str:
        kept = "_keep" if self.keep_last_answer else ""
        return f"check_again_{self.checks}{kept}{settings_in(self, 'checks', 'keep_last_answer')}"

    def budget(self, budget: Budget) -> Budget:
        """Raises: ConfigError where no episode can give an answer that often."""
        if budget.turns < self.checks and not self.keep_last_answer:
            raise ConfigError(
                f"strategy {self.name} counts the answer that is given {self.checks} times, and episodes take "
                f"{budget.turns} turns at most, so none would count; take fewer checks, or a larger test_budget.turns"
            )
        return budget

    def wrap(self, env: Env) -> Env:
        if isinstance(env, AskingAgain):
            env.ask_again(self.checks - 1, self.paragraph, self.keep_last_answer)
            return env
        return _CheckAgainEnv(env, self)


class _CheckAgainEnv:
    """Holds answers back."""

    def __init__(self, env: Env, strategy: CheckAgain) -> None:
        self._env = env
        self._strategy = strategy
        self._tries = strategy.checks
        self._page = Observation("")

    async def reset(self, task: Task, seed: int) -> Observation:
        self._page = await ask(Observation, self._env, "reset", task, seed)
        return self._page

    async def step(self, text: str) -> Step:
        action = parse(text)
        if isinstance(action, WebAction) and action.verb == "answer":
            self._tries -= 1
            if self._tries > 0:
                info = {HELD_ANSWER: action.text} if self._strategy.keep_last_answer else {}
                page = Observation(with_lines(self._page.content, self._strategy.paragraph), self._page.url)
                return Step(page, action=str(action), info=info)
        step = await ask(Step, self._env, "step", text)
        self._page = step.observation
        return step

    async def final_state(self) -> dict[str, Any]:
        return await ask(dict, self._env, "final_state")

    async def close(self) -> None:
        await ask(object, self._env, "close")
