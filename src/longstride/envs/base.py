"""Environments: Gymnasium's meaning with language types, async.

What always holds: an environment is single-use (one `reset`, then steps until `terminated` or `truncated`);
`terminated` means the task itself ended, `truncated` that something outside ended it; an action that cannot be parsed
or has no effect costs a step and is explained in the next observation; infrastructure trouble raises `EnvFailure` and
is never a reward.
"""

import random
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from longstride.core.component import Component
from longstride.core.content import Content, joined, text_in
from longstride.core.errors import TaskError
from longstride.core.numbers import Weight
from longstride.core.task import Task
from longstride.envs.requests import ChatRequest
from longstride.envs.tools import Manual, Tool

HELD_ANSWER = "held_answer"
"""Key of `Step.info`: an answer that counts if the episode is cut before another one."""


@dataclass(slots=True)
class Observation:
    """What the agent sees."""

    content: Content
    """A text, or a tuple of texts and `Media` (images, data) in their order."""
    url: str = ""
    goal: str = ""
    """In the first observation of a world that makes up its goal itself: what the agent is to do."""
    speaker: str = ""
    """Whose turn is next, in a world with several speakers; empty where there is one."""
    manual: Manual | None = None
    """In the first observation: what the world says of itself and of what can be done in it."""
    tools: tuple[Tool, ...] = ()
    """In the first observation: what the agent acts with, where it calls tools (`envs.acting`)."""
    request: ChatRequest | None = None
    """What a program asks of the model, in an environment that is one; `content` is then its newest message."""

    def __post_init__(self) -> None:
        if isinstance(self.content, tuple):
            self.content = joined(self.content)

    @property
    def text(self) -> str:
        """Its text, without what is no text."""
        return text_in(self.content)


@dataclass(slots=True)
class Step:
    """What an action did."""

    observation: Observation
    reward: float = 0.0
    """Reward of the environment itself (0 where an evaluator judges the episode afterwards)."""
    terminated: bool = False
    truncated: bool = False
    action: str | None = None
    """The parsed action in canonical form; None when the text could not be parsed."""
    error: str | None = None
    """Why the action had no effect; it is part of the next observation's text too."""
    answer: str | None = None
    """Set when the action was an answer."""
    info: dict[str, Any] = field(default_factory=dict)


class Env(Protocol):
    """One episode's world."""

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode.

        Raises:
            EnvFailure: the world could not be set up.
        """
        ...

    async def step(self, text: str) -> Step:
        """Acts with the policy's raw text: the environment owns its action grammar.

        Raises:
            EnvFailure: infrastructure trouble.
        """
        ...

    async def final_state(self) -> dict[str, Any]:
        """The world's state for the evaluator (`{}` where nothing but the answer counts)."""
        ...

    async def close(self) -> None:
        """Frees what the episode held. May be called more than once."""
        ...


@runtime_checkable
class Counting(Protocol):
    """An environment that is told, before it is acted in, what was sampled."""

    def sampled(self, ids: list[int], logprobs: list[float], read: int, finish: str) -> None:
        """Ids and log-probabilities of the turn that comes, how many tokens were read, and why generation ended."""
        ...


@runtime_checkable
class AskingAgain(Protocol):
    """An environment that knows by itself which turns would end it, and asks again instead."""

    def ask_again(self, times: int, paragraph: str, keep: bool) -> None:
        """Has it hold back so many of them, each answered by a paragraph; `keep`: the last of them counts where a
        budget ends the episode (`HELD_ANSWER`). To be called before `reset`."""
        ...


@runtime_checkable
class Outlasting(Protocol):
    """An environment in which somebody may still answer when a limit has ended the episode."""

    async def outlasted(self) -> str | None:
        """Says that the episode is over, and waits a little; the answer that came, if any.

        Raises:
            EnvFailure: infrastructure trouble.
        """
        ...


@runtime_checkable
class Continuing(Protocol):
    """An environment that knows how an action goes on, so that several are one macro action."""

    def goes_on(self) -> str | None:
        """What would be said to go on as the last action did; None where it does not go on."""
        ...


@runtime_checkable
class Solver(Protocol):
    """A task source that knows solutions."""

    def demonstrate(self, task: Task) -> list[str]:
        """What a solver says, turn by turn."""
        ...


@runtime_checkable
class Noting(Solver, Protocol):
    """A solver that knows what of a solution is to be remembered."""

    def note(self, task: Task, turn: int) -> str:
        """What a solver would note in a turn of its solution, from 0, of all that it has seen by then."""
        ...


@runtime_checkable
class Hinting(Protocol):
    """A task source that knows what helps with a task."""

    def hint(self, task: Task) -> str:
        """What is told who failed at it, in words; empty where nothing helps."""
        ...


@runtime_checkable
class Varying(Protocol):
    """A task source that makes new tasks like others."""

    def vary(self, task: Task, rng: random.Random) -> Task | None:
        """A new training task like one that was played, which depends on `rng` and on nothing else; None where none was
        found."""
        ...


@runtime_checkable
class HasChoices(Protocol):
    """An environment that says what can be done in it, as learners need (`strategies.learners`)."""

    def choices(self) -> Sequence[str]:
        """All actions, as they are said; asked after `reset`."""
        ...


@runtime_checkable
class Knowing(Protocol):
    """An environment that knows what is best to do in it now."""

    def best(self) -> Sequence[str]:
        """The best of its choices, one or several."""
        ...


@runtime_checkable
class Describing(Protocol):
    """An environment that describes its choices by numbers."""

    def features(self) -> Sequence[Sequence[float]]:
        """Of each choice; empty where nothing is known of them."""
        ...


class Mix(Component):
    """Shares of the difficulties among training tasks (any scale)."""

    easy: Weight = 1.0
    medium: Weight = 1.0
    hard: Weight = 1.0


class TaskSource(Component):
    """Family: where tasks come from, and the world they are done in."""

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        """`n` training tasks, drawn with replacement.

        Raises:
            TaskError: there are none.
        """
        raise TaskError(f"{type(self).__name__} has no training tasks: it lacks `sample`")

    def held_out(self, n: int) -> list[Task]:
        """The first `n` of a fixed stream of evaluation tasks, disjoint from training in template, site and names:
        all of them where there are fewer.

        Raises:
            TaskError: there are none.
        """
        raise TaskError(f"{type(self).__name__} has no held-out tasks: it lacks `held_out`")

    @property
    def beside(self) -> "dict[str, TaskSource]":
        """Other held-out tasks, by name, on which the start and the last policy are evaluated too."""
        return {}

    @property
    def says_worth(self) -> bool:
        """Whether its environment says what a whole episode was worth, and its tasks have no evaluator;
        `reward.type=environment_reward` reads it."""
        return False

    @property
    def at_once(self) -> int:
        """Environments that may be live at the same time."""
        return 512

    @abstractmethod
    def env(self) -> Env:
        """A new single-use environment for one task of this source."""


class OtherTasks(TaskSource):
    """The tasks of another source, in an environment of its own, which may stand around that one's."""

    tasks: TaskSource
    """What is done."""

    @property
    def at_once(self) -> int:
        return self.tasks.at_once

    @property
    def beside(self) -> dict[str, TaskSource]:
        return {name: self.model_copy(update={"tasks": tasks}) for name, tasks in self.tasks.beside.items()}

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return self.tasks.sample(rng, n)

    def held_out(self, n: int) -> list[Task]:
        return self.tasks.held_out(n)
