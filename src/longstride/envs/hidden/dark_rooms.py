"""Dark rooms: a grid whose goal is not seen (AD, arXiv 2210.14215; DPT, arXiv 2306.14892).

An observation is the agent's cell, `3 7`. Five actions: four steps, and staying. What always holds: whatever is done
at a wall, the agent stays in the room; an episode ends with its turns alone.

| as in | settings |
|---|---|
| AD, dark room | `size=9, turns=20` |
| DPT, dark room | `size=10, turns=100, begins="corner"` |
| DPT, permuted actions | the same, `hidden="actions"` |
| AD, key and door | `size=9, turns=50, hidden="key"` |
"""

import itertools
import random
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from longstride.core.numbers import Count
from longstride.envs.hidden.base import HiddenWorlds, Life, Rule, source_of

STEPS = {"east": (1, 0), "west": (-1, 0), "north": (0, 1), "south": (0, -1), "stay": (0, 0)}
"""What actions do, unless they are permuted."""
ORDERS = list(itertools.permutations(range(len(STEPS))))
Coordinate = Annotated[int, Field(ge=0, le=99)]
Cell = tuple[Coordinate, Coordinate]


class DarkRoom(Rule):
    """Where the goal is, and whatever else is hidden."""

    size: Annotated[int, Field(ge=2, le=100)]
    begin: Cell
    target: Cell
    """Where each turn earns 1; with a key, the door, which earns 1 once."""
    key_cell: Cell | None = None
    """Where the key is, which earns 1 once and is needed for the door."""
    order: Annotated[int, Field(ge=0, lt=len(ORDERS))] = 0
    """Which permutation of the steps the actions are."""

    @model_validator(mode="after")
    def _inside(self) -> "DarkRoom":
        if max(*self.begin, *self.target, *(self.key_cell or (0, 0))) >= self.size:
            raise ValueError(f"expected cells of a room of size {self.size}")
        return self

    @property
    def goal(self) -> str:
        return "find key and door" if self.key_cell else "find the goal"

    @property
    def key(self) -> str:
        return f"{self.target} {self.key_cell} {self.order}"

    @property
    def most(self) -> float:
        if self.key_cell:
            key = distance(self.begin, self.key_cell)
            return float(
                (self.turns >= max(key, 1)) + (self.turns >= max(key, 1) + distance(self.key_cell, self.target))
            )
        return float(max(0, self.turns + 1 - max(1, distance(self.begin, self.target))))

    def start(self, rng: random.Random) -> Life:
        return Groping(self)


class Groping(Life):
    """Steps in a dark room."""

    choices = tuple(STEPS)

    def __init__(self, room: DarkRoom) -> None:
        self._room, self._at = room, room.begin
        self._has_key = room.key_cell is None
        self._open = False
        steps = list(STEPS.values())
        self._does = {name: steps[k] for name, k in zip(STEPS, ORDERS[room.order], strict=True)}

    def look(self) -> str:
        return f"{self._at[0]} {self._at[1]}"

    def act(self, choice: str) -> float:
        most = self._room.size - 1
        x, y = (min(max(a + d, 0), most) for a, d in zip(self._at, self._does[choice], strict=True))
        self._at = x, y
        if not self._has_key:
            self._has_key = self._at == self._room.key_cell
            return float(self._has_key)
        arrived = self._at == self._room.target and not self._open
        self._open = arrived and self._room.key_cell is not None or self._open
        return float(arrived)

    def best(self) -> list[str]:
        to = self._room.target if self._has_key or self._room.key_cell is None else self._room.key_cell
        now = distance(self._at, to)
        closer = [a for a, (x, y) in self._does.items() if distance((self._at[0] + x, self._at[1] + y), to) < now]
        return closer or [a for a, step in self._does.items() if step == (0, 0)]


def distance(a: Cell, b: Cell) -> int:
    """Steps from one cell to another."""
    return abs(a[0] - b[0]) + abs(a[1] - b[1])


class DarkRooms(HiddenWorlds):
    """Dark rooms of one size."""

    kind: ClassVar[type[Rule]] = DarkRoom
    size: Annotated[int, Field(ge=2, le=100)] = 9
    """Cells of a side."""
    turns: Count = 20
    """Of an episode."""
    begins: Literal["centre", "corner"] = "centre"
    """Where episodes begin."""
    hidden: Literal["goal", "actions", "key"] = "goal"
    """What is: the goal; what each action does, the goal being the last corner; or key and door."""

    def make(self, rng: random.Random) -> DarkRoom:
        half = self.size // 2 if self.begins == "centre" else 0
        begin = half, half
        cells = rng.sample([(x, y) for x in range(self.size) for y in range(self.size) if (x, y) != begin], 2)
        if self.hidden == "actions":
            last = self.size - 1, self.size - 1
            return DarkRoom(
                turns=self.turns, size=self.size, begin=begin, target=last, order=rng.randrange(len(ORDERS))
            )
        key = cells[1] if self.hidden == "key" else None
        return DarkRoom(turns=self.turns, size=self.size, begin=begin, target=cells[0], key_cell=key)


source_of(DarkRoom)
