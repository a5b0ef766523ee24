"""TextWorld's games (Côté et al., 2018, arXiv 1806.11532): rooms, things and a quest of so many commands.

What always holds: a task is a game made from its seed, whose quest is the goal, and whose goal distance is the quest's
length; what is seen is the room, what is carried and, where that is asked for, which commands can be given; a command
after which all of that is the same is explained by what the game said to it. Games are made by the library's own
compiler, a few seconds each, and are kept in the user's cache folder.
"""

import os
import random
import re
import threading
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from longstride.adapters.seeded import SEEDS, SUCCESS, SeededTasks
from longstride.core.errors import EnvFailure, require
from longstride.core.files import make_folder
from longstride.core.foreign import bounded, guarded
from longstride.core.numbers import Count, CountOrZero
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.text import MARK, said

HOW = f"End each turn with {MARK} and a command."
ATTEMPTS = 20
"""Games that are made for a seed, until one has a walkthrough of the length that was asked for."""
_MAKING = threading.Lock()
"""The library's compiler is asked for one game at a time."""
_PROMPT = re.compile(r"\n>\s.*\Z", re.S)
"""What the game puts behind its words: its prompt and a status line."""

Quest = Annotated[int, Field(ge=1, le=30)]


class Textworld(SeededTasks):
    """Games drawn from so many, and others to be held out. Their words are those of the library's grammar, so names of
    things in held-out games may occur in training too."""

    games: Count = 100
    """Different training games."""
    quest_length: tuple[Quest, Quest] = (2, 8)
    """Shortest and longest quest, in commands: the goal distance, all between them equally often."""
    rooms: Annotated[int, Field(ge=1, le=50)] = 4
    """Rooms of a game."""
    objects: CountOrZero = 8
    """Things in it: those that the quest does not need are distractors."""
    commands: bool = True
    """Whether the commands that can be given are listed."""

    @model_validator(mode="after")
    def _ascends(self) -> Self:
        if self.quest_length[0] > self.quest_length[1]:
            raise ValueError(f"quest_length is the shortest and the longest one, got {list(self.quest_length)}")
        return self

    @property
    def world(self) -> str:
        return f"{self.rooms}-{self.objects}"

    @property
    def at_once(self) -> int:
        return 64

    def goal_of(self, seed: int) -> str:
        return "Play TextWorld."

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return [self._task(rng.randrange(self.games), "train") for _ in range(n)]

    def held_out(self, n: int) -> list[Task]:
        return [self._task(SEEDS + k, "test") for k in range(n)]

    def env(self) -> "TextworldEnv":
        return TextworldEnv(self)

    def demonstrate(self, task: Task) -> list[str]:
        """The game's own walkthrough: `task.optimal` texts. Raises: EnvFailure where the game cannot be made."""
        env = TextworldEnv(self, solved=True)
        env.open(task)
        return [f"{MARK} {command}" for command in env.solution]

    def length(self, seed: int) -> int:
        """The length of the quest of a seed."""
        shortest, longest = self.quest_length
        return shortest + (seed % SEEDS) % (longest - shortest + 1)

    def game(self, seed: int) -> Path:
        """The file of the game of a seed, made where it is not there yet.

        Raises:
            EnvFailure: the library cannot make it.
            MissingExtra: textworld is not installed.
        """
        textworld, length = require("textworld", "textworld"), self.length(seed)
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "longstride" / "textworld"
        path = cache / textworld.__version__ / f"{length}-{self.world}-{seed}.z8"
        with _MAKING:
            if not path.exists():
                make_folder(path.parent)
                what = f"making a game of {length} commands with {self.rooms} rooms and {self.objects} things"
                with TemporaryDirectory(dir=path.parent) as folder, guarded(what):
                    made = Path(folder) / path.name
                    for attempt in range(ATTEMPTS):
                        options = textworld.GameOptions()
                        options.seeds = derive(0, "textworld", seed, attempt) % (1 << 31)
                        options.quest_length, options.nb_rooms, options.nb_objects = length, self.rooms, self.objects
                        options.path, options.force_recompile = str(made), True
                        textworld.make(options)
                        if _takes(made, length):
                            break
                    else:
                        raise EnvFailure(f"none of {ATTEMPTS} games has a walkthrough of {length} commands")
                    for suffix in (".json", ".z8"):  # the game's own file last: with it the game is there
                        os.replace(made.with_suffix(suffix), path.with_suffix(suffix))
        return path

    def _task(self, seed: int, split: Any) -> Task:
        return super()._task(seed, split).model_copy(update={"optimal": self.length(seed)})


class TextworldEnv:
    """One game."""

    def __init__(self, source: Textworld, solved: bool = False) -> None:
        """`solved`: whether `solution` is known, which makes steps slower."""
        self._source, self._solved = source, solved
        self._game: Any = None
        self._state: Any = None
        self._won = False

    @property
    def solution(self) -> list[str]:
        """Commands that do the quest from here on."""
        return list(self._state.policy_commands or ())

    @property
    def admissible(self) -> list[str]:
        """Commands that can be given."""
        return list(self._state.admissible_commands)

    def open(self, task: Task) -> None:
        """Begins the game of a task. Raises: EnvFailure where it cannot be made or begun."""
        path, textworld = self._source.game(int(task.meta["seed"])), require("textworld", "textworld")
        wanted = dict.fromkeys(
            ("admissible_commands", "won", "objective", "description", "inventory", "feedback"), True
        )
        with guarded(f"beginning {path.name}"):
            self._game = _begin(path, textworld.EnvInfos(**wanted, lost=True, policy_commands=self._solved))
            self._state = self._game.reset()

    async def reset(self, task: Task, seed: int) -> Observation:
        """Begins the game of the task's seed, which may have to be made first. Raises: EnvFailure when that fails."""
        self.open(task)
        return Observation(self._seen(), goal=f"{_line(self._state.objective)}\n{HOW}")

    async def step(self, text: str) -> Step:
        """Gives the game the command in the policy's text. Raises: EnvFailure when the game raises."""
        command, before = " ".join(bounded(said(text)).split()), self._seen()
        if not command:
            return Step(Observation(f"{before}\nerror: no command was given"), error="no command was given")
        with guarded(f"TextWorld's step({command[:60]!r})"):
            self._state, _, done = self._game.step(command)
        self._won = bool(self._state.won)
        seen, told = self._seen(), _line(_PROMPT.sub("", str(self._state.feedback)))
        error = (told or "nothing happened") if seen == before and not done else None
        return Step(
            Observation(f"{seen}\nerror: {error}" if error else seen),
            reward=float(self._won),
            terminated=bool(done),
            action=command,
            error=error,
        )

    async def final_state(self) -> dict[str, Any]:
        """`{"success": ...}`: whether the quest was done."""
        return {SUCCESS: self._won}

    async def close(self) -> None:
        """Ends the game."""
        if self._game is not None:
            game, self._game = self._game, None
            with guarded("closing a game of TextWorld"):
                game.close()

    def _seen(self) -> str:
        state = self._state
        lines = [_line(state.description), _line(state.inventory)]
        if self._source.commands:
            lines += self.admissible
        return bounded("\n".join(filter(None, lines)))


def _begin(path: Path, infos: Any) -> Any:
    """The library's environment of a game."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Game .* is not fully supported")  # the interpreter's own scores, not ours
        return require("textworld", "textworld").start(str(path), infos)


def _takes(path: Path, length: int) -> bool:
    """Whether a game's walkthrough does its quest in so many commands. One in some fifteen does not: it eats what a
    quest ends with a command early, or the game takes one of its names for another."""
    game = _begin(path, require("textworld", "textworld").EnvInfos(policy_commands=True, won=True))
    won = [game.step(command)[0].won for command in list(game.reset().policy_commands or ())]
    game.close()
    return won == [False] * (length - 1) + [True]


def _line(text: Any) -> str:
    """A text of the game in one line."""
    return " ".join(str(text or "").replace("-=", " ").replace("=-", " ").split())
