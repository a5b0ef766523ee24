"""What all puzzles share: the instance, the live game, the grammar, the environment and the task source.

What always holds: an instance (`Puzzle`) is data, it is all of a task's `meta`, and everything else follows from it:
goal, game, solver and split. Training and evaluation share no instance, because the split is a hash of the instance
itself. Whatever a policy says is one step; what had no effect is explained in the last line of the next observation.

Every puzzle is judged in one way: the final state is `{"verdict": "solved"}` or a verdict that says in words what is
wrong (`"3 + 4 is 7 , not 14"`), and the task's evaluator is a `state` evaluator that expects `solved`. So the verdict
is the evidence. A puzzle with many right answers needs this, and of one with a single right answer it says more.

The form of the texts is chosen for a small word-level model. A number is one token (all are below 100, and these tokens
are in every vocabulary), so that arithmetic is a table of facts and needs no carrying; steps are divided by `;`; what a
goal says stays in the prompt under every context policy, so the instance is in the goal and not in an observation.

| text | means |
|---|---|
| `Thought: 3 + 4 = 7 Action: answer 3 + 4` | the thought may be missing; the last `Action:` counts |
| `Action: put 2 3 4` | a verb and as many numbers as it takes |
"""

import random
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from longstride.core.errors import EnvFailure, TaskError
from longstride.core.seeds import derive, stream
from longstride.core.task import DIFFICULTIES, Difficulty, Task, instance_of
from longstride.envs.base import Mix, Observation, Step, TaskSource
from longstride.envs.text import MARK, THOUGHT
from longstride.envs.tools import Manual, Tool, arguments

SOLVED = "solved"
"""The verdict that earns the reward."""
ONE_IN = 4
"""One instance in so many is held out."""
TRIES = 2000
"""Draws for one task before its settings are refused: with a quarter held out, chance alone never needs so many."""
_NUMBER = re.compile("[0-9]{1,4}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Action:
    """A parsed action: a verb with its numbers or, for a verb that takes words, its text as it came."""

    verb: str
    numbers: tuple[int, ...] = ()
    text: str = ""

    def __str__(self) -> str:
        return " ".join([self.verb, *map(str, self.numbers), *self.text.split()])


def parse(text: str, verbs: Mapping[str, int | None]) -> Action | str:
    """The action in a policy's text, or one sentence that says what is wrong with it. Never raises.

    Args:
        text: what the policy wrote.
        verbs: how many numbers follow each verb; None where words do.
    """
    parts = text.rpartition(MARK)[2].split(maxsplit=1)
    verb, rest = parts[0].lower() if parts else "", parts[1].strip() if len(parts) > 1 else ""
    if verb not in verbs:
        return f"unknown action {verb[:20]!r}; use one of {', '.join(verbs)}" if verb else "no action was given"
    takes = verbs[verb]
    if takes is None:
        return Action(verb, text=rest) if rest else f"{verb} needs words"
    words = rest.split()
    if len(words) != takes or not all(map(_NUMBER.fullmatch, words)):
        return f"{verb} takes {takes} numbers"
    return Action(verb, tuple(map(int, words)))


def manual(verbs: Mapping[str, int | None]) -> Manual:
    """What an agent reads that does not know the grammar; `verbs` as in `parse`."""

    def tool(verb: str, takes: int | None) -> Tool:
        if takes is None:
            return Tool(verb, arguments(text="string"), form=f"{verb} {{text}}")
        places = [f"number_{k}" for k in range(1, takes + 1)]
        form = " ".join([verb, *(f"{{{place}}}" for place in places)])
        return Tool(verb, arguments(**dict.fromkeys(places, "integer")), form=form)

    return Manual(tuple(tool(*verb) for verb in verbs.items()), needed=False)


def answered(steps: list[str], answer: str) -> str:
    """The text of an answer with the steps that lead to it."""
    thought = f"{THOUGHT} {' ; '.join(steps)} " if steps else ""
    return f"{thought}{MARK} answer {answer}"


def short(text: str) -> str:
    """The text in one line of at most 60 characters: what a verdict quotes."""
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def yes(right: bool) -> str:
    """How a line of a review ends."""
    return "yes" if right else "no"


class Game(ABC):
    """The live state of one episode."""

    verbs: Mapping[str, int | None]
    """What can be done, and how many numbers follow; None where words do."""
    over: bool = False
    """Whether the puzzle has ended; read after every step."""

    @abstractmethod
    def look(self) -> str:
        """What the agent sees."""

    @abstractmethod
    def act(self, action: Action) -> str | None:
        """Does an action with one of `verbs`; why it had no effect, or None."""

    @abstractmethod
    def verdict(self) -> str:
        """`solved`, or in words what is missing or wrong."""


class OneAnswer(Game):
    """A single-turn game: there is nothing to see but the goal, and the first turn ends it."""

    verbs: ClassVar[Mapping[str, int | None]] = {"answer": None}
    over = True

    def __init__(self, check: Callable[[str], str]) -> None:
        """`check`: an answer's verdict."""
        self._check = check
        self._verdict = "no answer"

    def look(self) -> str:
        return ""

    def act(self, action: Action) -> str | None:
        self._verdict = self._check(action.text)

    def verdict(self) -> str:
        return self._verdict


class Puzzle(BaseModel, ABC):
    """An instance. Its fields are untrusted data and are checked when it is built."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of(cls, task: Task) -> Self:
        """The instance that a task's `meta` holds.

        Raises:
            TaskError: `meta` is no instance of this puzzle (the field, what was expected and what came are named).
        """
        return instance_of(task, cls)

    @property
    @abstractmethod
    def goal(self) -> str:
        """What the agent reads."""

    @property
    @abstractmethod
    def key(self) -> str:
        """What the split goes by: the same text for instances that are the same puzzle."""

    @abstractmethod
    def start(self) -> Game:
        """A new game."""

    @abstractmethod
    def steps(self) -> list[str]:
        """The steps of a shortest solution; their number is the task's `facts`."""

    @abstractmethod
    def demonstration(self) -> list[str]:
        """What the scripted solver says, turn by turn; it knows the instance, hidden parts too."""

    def review(self, text: str) -> list[str] | None:
        """What a judge writes who goes through a response line by line, the answer last: each line begins with its
        number and ends with `yes` or `no`, and the first `no` ends them. None where lines have no labels."""
        return None

    def complaint(self, text: str) -> str:
        """What a verifier says is wrong with a response that failed: the verdict, unless a puzzle says it without
        giving the answer away."""
        game = self.start()
        action = parse(text, game.verbs)
        return (game.act(action) or game.verdict()) if isinstance(action, Action) else action

    def rest(self, text: str) -> "Puzzle | None":
        """What a response that failed leaves to be done, as a puzzle of its own; None where nothing was done, or where
        that is not known."""
        return None

    @property
    def split(self) -> Literal["train", "test"]:
        return "train" if derive(0, "split", self.key) % ONE_IN else "test"


class PuzzleEnv:
    """An `Env` for the tasks of one kind of puzzle; the episode's seed has no use here."""

    def __init__(self, kind: type[Puzzle]) -> None:
        self.kind = kind
        self._game: Game | None = None

    @property
    def game(self) -> Game:
        """The episode's game, between `reset` and `close`."""
        if self._game is None:
            raise RuntimeError("a PuzzleEnv is used between reset and close")
        return self._game

    async def reset(self, task: Task, seed: int) -> Observation:
        """Sets the puzzle up. Raises: EnvFailure when the task's `meta` is no instance of it."""
        try:
            self._game = self.kind.of(task).start()
        except TaskError as e:
            raise EnvFailure(str(e)) from e
        return Observation(self.game.look(), manual=manual(self.game.verbs))

    async def step(self, text: str) -> Step:
        """Does what the policy's text says."""
        action = parse(text, self.game.verbs)
        parsed = isinstance(action, Action)
        error = self.game.act(action) if parsed else action
        lines = [self.game.look(), f"error: {error}" if error else ""]
        return Step(
            Observation("\n".join(filter(None, lines))),
            terminated=self.game.over,
            action=str(action) if parsed else None,
            error=error,
            answer=action.text if parsed and action.verb == "answer" else None,
        )

    async def final_state(self) -> dict[str, Any]:
        """`{"verdict": ...}`."""
        return {"verdict": self.game.verdict()}

    async def close(self) -> None:
        """Forgets the game."""
        self._game = None


class PuzzleSource(TaskSource):
    """Family: puzzles drawn afresh for ever; one instance in four is held out."""

    kind: ClassVar[type[Puzzle]]
    mix: Mix = Mix()
    """Shares of difficulties in training. Evaluation has the same number of each."""

    @property
    def source(self) -> str:
        """The `source` of its tasks."""
        return f"puzzles/{self.type_name()}"

    @abstractmethod
    def make(self, rng: random.Random, difficulty: Difficulty) -> Puzzle:
        """An instance of either split."""

    def demonstrate(self, task: Task) -> list[str]:
        """What the scripted solver of a task of this source says, turn by turn: `task.optimal` texts.

        Raises:
            TaskError: the task is not of this source.
        """
        return self.kind.of(task).demonstration()

    def hint(self, task: Task) -> str:
        """The first step of a shortest solution (see `envs.base.Hinting`); empty where there is no other step.

        Raises:
            TaskError: the task is not of this source.
        """
        first, *more = self.kind.of(task).steps() or [""]
        return first if more else ""

    def review(self, task: Task, text: str) -> list[str] | None:
        """See `Puzzle.review`.

        Raises:
            TaskError: the task is not of this source.
        """
        return self.kind.of(task).review(text)

    def subgoal(self, task: Task, text: str) -> Task | None:
        """A training task of what a response that failed leaves to be done (see `Puzzle.rest`), if there is one."""
        rest = self.kind.of(task).rest(text)
        return self._task(rest, task.difficulty) if rest is not None and rest.split == "train" else None

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        weights = [self.mix.easy, self.mix.medium, self.mix.hard]
        wanted = rng.choices(DIFFICULTIES, weights if any(weights) else None, k=n)
        return [self._draw(rng, difficulty, "train") for difficulty in wanted]

    def held_out(self, n: int) -> list[Task]:
        rng = stream(0, "held-out", self.type_name())
        return [self._draw(rng, DIFFICULTIES[i % len(DIFFICULTIES)], "test") for i in range(n)]

    def env(self) -> PuzzleEnv:
        return PuzzleEnv(self.kind)

    def _draw(self, rng: random.Random, difficulty: Difficulty, split: Literal["train", "test"]) -> Task:
        for _ in range(TRIES):
            puzzle = self.make(rng, difficulty)
            if puzzle.split == split:
                return self._task(puzzle, difficulty)
        raise TaskError(
            f"{self.type_name()}: no {difficulty} {split} task among {TRIES} draws; "
            "with these settings there are too few different puzzles, so take larger ones"
        )

    def _task(self, puzzle: Puzzle, difficulty: Difficulty) -> Task:
        return Task(
            id=f"{self.source}/{derive(0, puzzle.model_dump_json()):016x}",
            source=self.source,
            split=puzzle.split,
            goal=puzzle.goal,
            start="start",
            difficulty=difficulty,
            facts=max(1, len(puzzle.steps())),
            template_id=puzzle.key,
            evaluator={"type": "state", "expected": {"verdict": SOLVED}},
            optimal=len(puzzle.demonstration()),
            meta=puzzle.model_dump(mode="json"),
        )


def at(levels: tuple[T, T, T], difficulty: Difficulty) -> T:
    """The setting for a difficulty, of one for easy, medium and hard."""
    return levels[DIFFICULTIES.index(difficulty)]
