"""Corridors: rooms in a row, each with doors of which one leads on; a wrong door ends the episode.

The goal names the rooms and the doors, an observation the room: `attic`. What always holds: which doors lead on is the
same in all episodes of a trial; only the end earns something, 1. So the way is found room by room, one wrong door an
episode, by who remembers. In a house (`Corridors.house`) it is the same in all tasks, and can be learned; by chance a
corridor of five rooms with four doors is done once in a thousand times.
"""

import random
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.numbers import CountOrZero
from longstride.core.seeds import stream
from longstride.core.task import Task, instance_of
from longstride.envs.hidden.base import HiddenWorlds, Life, Rule, source_of

ROOMS = ("attic", "cellar", "hall", "kitchen", "library", "parlour", "pantry", "study", "tower", "vault")
COLOURS = ("amber", "blue", "green", "grey", "pink", "red", "violet", "white")
END, WRONG = "garden", "wall"
"""What is seen behind the last door, and behind a wrong one."""


class Corridor(Rule):
    """Which door of each room leads on."""

    rooms: tuple[str, ...] = Field(min_length=1)
    doors: tuple[str, ...] = Field(min_length=2)
    """Colours that each room has."""
    way: tuple[Annotated[int, Field(ge=0)], ...]
    """Of each room, which of its doors leads on."""

    @model_validator(mode="after")
    def _fits(self) -> "Corridor":
        if len(self.way) != len(self.rooms) or max(self.way) >= len(self.doors):
            raise ValueError(f"expected a door for each of {len(self.rooms)} rooms, below {len(self.doors)}")
        return self

    @property
    def goal(self) -> str:
        return f"reach the {END} : {' , '.join(self.rooms)} ; doors {' , '.join(self.doors)}"

    @property
    def key(self) -> str:
        return " ".join(f"{room} {self.doors[door]}" for room, door in zip(self.rooms, self.way, strict=True))

    @property
    def most(self) -> float:
        return float(self.turns >= len(self.rooms))

    def start(self, rng: random.Random) -> Life:
        return Walking(self)


class Walking(Life):
    """A walk along a corridor."""

    def __init__(self, corridor: Corridor) -> None:
        self._corridor, self._at = corridor, 0
        self.choices = corridor.doors

    def look(self) -> str:
        if self.over:
            return END if self._at == len(self._corridor.rooms) else WRONG
        return self._corridor.rooms[self._at]

    def act(self, choice: str) -> float:
        right = choice == self.best()[0]
        self._at += right
        done = self._at == len(self._corridor.rooms)
        self.over = done or not right
        return float(done)

    def best(self) -> list[str]:
        return [self.choices[self._corridor.way[self._at]]]


class Corridors(HiddenWorlds):
    """Corridors whose rooms, doors and ways are drawn."""

    kind: ClassVar[type[Rule]] = Corridor
    rooms: Annotated[int, Field(ge=1, le=len(ROOMS))] = 3
    """Rooms of a corridor."""
    doors: Annotated[int, Field(ge=2, le=len(COLOURS))] = 3
    """Doors of a room."""
    house: CountOrZero | None = None
    """The number of a house that all corridors are in: all tasks have the same doors, and of a room the same one leads
    on. Left out, each task has doors and a way of its own."""

    def make(self, rng: random.Random) -> Corridor:
        rooms = tuple(rng.sample(ROOMS, self.rooms))
        plan = rng if self.house is None else stream(self.house, "house")
        doors = tuple(plan.sample(COLOURS, self.doors))
        leads = {room: plan.randrange(self.doors) for room in (rooms if self.house is None else ROOMS)}
        return Corridor(turns=self.rooms, rooms=rooms, doors=doors, way=tuple(leads[room] for room in rooms))

    def demonstrate(self, task: Task) -> list[str]:
        """The doors that lead on. Raises: TaskError where the task is no corridor."""
        corridor = instance_of(task, Corridor)
        return [corridor.doors[door] for door in corridor.way]

    def hint(self, task: Task) -> str:
        """Which door leads on, room by room: `attic amber , hall blue` (see `envs.base.Hinting`). Raises: TaskError
        where the task is no corridor."""
        rooms = instance_of(task, Corridor).rooms
        return " , ".join(f"{room} {door}" for room, door in zip(rooms, self.demonstrate(task), strict=True))


source_of(Corridor)
