"""Vaults: a key lies in a vault that other keys open, which lie in vaults of their own.

The goal is `find 37`, the first observation `37 : 12 45`, the keys that this vault takes; `37 :` takes none.
`pull 12` takes a key out of its vault, or shows what that takes. What always holds: the keys are a tree, and each is
needed once; alone one needs a turn for each key, and more; a part of the tree is a puzzle of its own (`Vault.part`), so
it can be left to somebody else, whose key is handed over (`VaultEnv.receive`). It is what crafting is in TextCraft
(Prasad et al., arXiv 2311.05772), with numbers for things.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.errors import TaskError
from longstride.core.task import Difficulty, Task
from longstride.envs.base import Observation
from longstride.envs.puzzles.base import SOLVED, Action, Game, Puzzle, PuzzleEnv, PuzzleSource, at

Key = Annotated[int, Field(ge=0, le=99)]
Depth = Annotated[int, Field(ge=0, le=5)]


class Vault(Puzzle):
    """A key to be found, and what the vaults take."""

    wanted: Key
    takes: Mapping[Key, tuple[Key, ...]] = Field(max_length=100)
    """By key, the keys that its vault takes."""

    @model_validator(mode="after")
    def _is_a_tree(self) -> "Vault":
        needed = [key for keys in self.takes.values() for key in keys]
        if sorted([self.wanted, *needed]) != sorted(self.takes):
            raise ValueError(
                "expected is a tree of keys: each but the wanted one is taken by one vault, and has its own"
            )
        if len([*self.below(self.wanted)]) != len(self.takes):
            raise ValueError("expected is a tree of keys: all of them are needed for the wanted one")
        return self

    @property
    def goal(self) -> str:
        return f"find {self.wanted}"

    @property
    def key(self) -> str:
        return f"{self.wanted} {sorted(self.takes.items())}"

    def below(self, key: int) -> Iterator[int]:
        """A key and all that it needs."""
        waiting, found = [key], set[int]()
        while waiting:
            if (k := waiting.pop()) in found:  # no tree
                return
            found.add(k)
            yield k
            waiting += self.takes.get(k, ())

    def part(self, key: int) -> "Vault":
        """The puzzle of one of the keys. Raises: TaskError: there is no such key."""
        if key not in self.takes:
            raise TaskError(f"there is no key {key}; there are {', '.join(map(str, sorted(self.takes)))}")
        return Vault(wanted=key, takes={k: self.takes[k] for k in self.below(key)})

    def shown(self, key: int) -> str:
        """What is seen of a vault."""
        return " ".join([str(key), ":", *map(str, self.takes[key])])

    def start(self) -> "Opening":
        return Opening(self)

    def steps(self) -> list[str]:
        """All of it alone, depth first. Each vault is looked at before it can be opened, but for the first one."""

        def alone(key: int) -> Iterator[str]:
            if self.takes[key] and key != self.wanted:
                yield f"pull {key}"
            for k in self.takes[key]:
                yield from alone(k)
            yield f"pull {key}"

        return [*alone(self.wanted)]

    def demonstration(self) -> list[str]:
        return self.steps()


class Opening(Game):
    """Vaults of which some are open."""

    verbs: ClassVar[Mapping[str, int | None]] = {"pull": 1}

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._held: set[int] = set()
        self._page = vault.shown(vault.wanted)

    def look(self) -> str:
        return self._page

    def act(self, action: Action) -> str | None:
        (key,) = action.numbers
        if key not in self._vault.takes:
            return f"there is no key {key}"
        if key in self._held or not self._held.issuperset(self._vault.takes[key]):
            self._page = self._vault.shown(key)
        else:
            self.receive(key)
            self.over = key == self._vault.wanted
        return None

    def receive(self, key: int) -> None:
        """Takes a key."""
        self._held.add(key)
        self._page = f"key {key}"

    def verdict(self) -> str:
        return SOLVED if self.over else f"key {self._vault.wanted} was not found"


class VaultEnv(PuzzleEnv):
    """An `Env` in which keys may be handed over."""

    def receive(self, task: Task) -> Observation:
        """What is seen once somebody else has found the key of a part of the task."""
        game = self.game
        assert isinstance(game, Opening)
        game.receive(Vault.of(task).wanted)
        return Observation(game.look())


class Vaults(PuzzleSource):
    """Trees of keys, multi-turn."""

    kind: ClassVar[type[Puzzle]] = Vault
    depths: tuple[Depth, Depth, Depth] = (1, 2, 3)
    """Of easy, medium and hard tasks: how many vaults lie behind one another, the first one not counted."""
    width: Annotated[int, Field(ge=1, le=3)] = 2
    """Keys that a vault takes that takes any."""

    @model_validator(mode="after")
    def _fits(self) -> "Vaults":
        if sum(self.width**level for level in range(max(self.depths) + 1)) > 100:
            raise ValueError(f"width={self.width} and depths={self.depths} are more than 100 keys; take fewer")
        return self

    def make(self, rng: random.Random, difficulty: Difficulty) -> Vault:
        names, takes = iter(rng.sample(range(100), 100)), dict[int, tuple[int, ...]]()

        def grow(depth: int) -> int:
            key = next(names)
            # one branch is as deep as the task, and the others end anywhere
            below = [depth - 1, *(rng.randrange(depth) for _ in range(self.width - 1))] if depth else []
            rng.shuffle(below)
            takes[key] = tuple(grow(d) for d in below)
            return key

        return Vault(wanted=grow(at(self.depths, difficulty)), takes=takes)

    def env(self) -> VaultEnv:
        return VaultEnv(self.kind)

    def part(self, task: Task, key: int) -> Task:
        """The task of finding one of the keys that a task of this source takes.

        Raises:
            TaskError: there is no such key, or the task is of another source.
        """
        return self._task(Vault.of(task).part(key), task.difficulty).model_copy(update={"split": task.split})
