"""What worlds with a hidden rule share: the rule, a life in it, the environment and the task source.

What always holds: a rule (`Rule`) is data, it is all of a task's `meta`, and neither goal nor observations say it;
training and evaluation share no rule, because the split is a hash of it; a choice is one word, and what is no choice
costs a turn and is explained; an episode's seed decides chance within it, and nothing else.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.numbers import Count
from longstride.core.seeds import derive, stream
from longstride.core.task import Task, instance_of
from longstride.core.trajectory import Trajectory
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.text import MARK
from longstride.envs.tools import Manual, Tool, arguments

ONE_IN = 4
"""One rule in so many is held out."""
DRAWS = 2000
"""Draws for one task before its settings are refused."""


class Life(ABC):
    """The live state of one episode."""

    choices: Sequence[str]
    """What can be done, a word each."""
    over: bool = False
    """Whether the world has ended it; read after every step."""

    @abstractmethod
    def look(self) -> str:
        """What is seen."""

    @abstractmethod
    def act(self, choice: str) -> float:
        """Does one of the choices; what it earned."""

    @abstractmethod
    def best(self) -> list[str]:
        """The choices that are best for who knows the rule, the first of which demonstrations take."""

    def features(self) -> Sequence[Sequence[float]]:
        """Numbers that describe each choice; none where nothing is known of them."""
        return ()


class Rule(BaseModel, ABC):
    """What is hidden. Its fields are untrusted data and are checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: Count
    """Of an episode."""

    @property
    @abstractmethod
    def goal(self) -> str:
        """What the agent reads."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What the split goes by: the same text for rules that are the same."""

    @property
    @abstractmethod
    def most(self) -> float:
        """What an episode earns in the mean if the rule is known."""

    @abstractmethod
    def start(self, rng: random.Random) -> Life:
        """A new episode."""

    def regret(self, played: Trajectory) -> float:
        """What an episode earned less than `most`."""
        return self.most - played.earned

    @property
    def split(self) -> Literal["train", "test"]:
        """Which tasks it is for."""
        return "train" if derive(0, "hidden", self.key) % ONE_IN else "test"


KINDS: dict[str, type[Rule]] = {}
"""By the `source` of tasks, what their rules are."""


def rule_of(task: Task) -> Rule | None:
    """The rule of a task; None for a task of another world.

    Raises:
        TaskError: its `meta` is no rule of its world.
    """
    kind = KINDS.get(task.source)
    return instance_of(task, kind) if kind else None


class HiddenEnv:
    """An `Env` for the tasks of one kind of world, which says what can be done (`envs.base.HasChoices`) and what is
    best (`envs.base.Knowing`)."""

    def __init__(self, kind: type[Rule]) -> None:
        self.kind = kind
        self._life: Life | None = None

    @property
    def life(self) -> Life:
        """The episode's state, between `reset` and `close`."""
        if self._life is None:
            raise RuntimeError("a HiddenEnv is used between reset and close")
        return self._life

    def choices(self) -> Sequence[str]:
        """What can be done."""
        return self.life.choices

    def best(self) -> Sequence[str]:
        """What is best to do now, if the rule is known."""
        return self.life.best()

    def features(self) -> Sequence[Sequence[float]]:
        """See `Life.features`."""
        return self.life.features()

    async def reset(self, task: Task, seed: int) -> Observation:
        """Begins an episode. Raises: EnvFailure when the task's `meta` is no rule of this world."""
        try:
            self._life = instance_of(task, self.kind).start(stream(seed, "life"))
        except TaskError as e:
            raise EnvFailure(str(e)) from e
        tool = Tool("act", arguments(action=[*self.life.choices]), "makes a move", "{action}")
        words = f"End each turn with {MARK} and one of {', '.join(self.life.choices)}."
        return Observation(self.life.look(), manual=Manual((tool,), words=words, needed=False))

    async def step(self, text: str) -> Step:
        """Does what the policy's text says."""
        said = text.rpartition(MARK)[2].strip().lower()
        if said not in self.life.choices:
            error = f"unknown action {said[:20]!r}; use one of {', '.join(self.life.choices)}"
            return Step(Observation(f"{self.life.look()}\nerror: {error}".strip()), error=error)
        reward = self.life.act(said)
        return Step(Observation(self.life.look()), reward, terminated=self.life.over, action=said)

    async def final_state(self) -> dict[str, Any]:
        """Nothing: what an episode earned, it was given turn by turn."""
        return {}

    async def close(self) -> None:
        """Forgets the episode."""
        self._life = None


class HiddenWorlds(TaskSource):
    """Family: worlds with rules drawn afresh for ever; one rule in four is held out."""

    kind: ClassVar[type[Rule]]

    @abstractmethod
    def make(self, rng: random.Random) -> Rule:
        """A rule of either split."""

    @property
    def source(self) -> str:
        """The `source` of its tasks."""
        return source_of(self.kind)

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._draw(rng, "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        rng = stream(0, "held-out", self.type_name())
        return [self._draw(rng, "test") for _ in range(n)]

    def env(self) -> HiddenEnv:
        return HiddenEnv(self.kind)

    def _draw(self, rng: random.Random, split: Literal["train", "test"]) -> Task:
        for _ in range(DRAWS):
            rule = self.make(rng)
            if rule.split == split:
                name = f"{self.source}/{derive(0, rule.model_dump_json()):016x}"
                return Task(
                    id=name,
                    source=self.source,
                    split=split,
                    goal=rule.goal,
                    start="start",
                    template_id=rule.key,
                    horizon=rule.turns,
                    meta=rule.model_dump(mode="json"),
                )
        raise TaskError(
            f"{self.type_name()}: no {split} task among {DRAWS} draws; with these settings there are too few different "
            "rules, so take a larger world"
        )


def source_of(kind: type[Rule]) -> str:
    """The `source` of tasks whose rules are of a kind."""
    name = f"hidden/{kind.__name__.lower()}"
    KINDS.setdefault(name, kind)
    return name
