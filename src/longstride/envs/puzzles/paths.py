"""Paths in layered directed graphs with dead ends and detours.

In the single-turn form the goal lists all edges (`path from 4 to 9 : 4 2 ; 4 7 ; 2 9`) and the answer is the nodes of a
path (`answer 4 2 9`). In the multi-turn form there is no map: an observation shows the node and where one can go
(`at 4 next 2 7`), a turn is `go 2` or `back`, and an early wrong turn costs the way back. What always holds: the target
can be reached; no edge leads over more than one layer, so the shortest way has as many edges as there are steps between
layers; the names of nodes and the order of edges say nothing about layers.
"""

import functools
import random
import re
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.task import Difficulty
from longstride.envs.puzzles.base import (
    SOLVED,
    Action,
    Game,
    OneAnswer,
    Puzzle,
    PuzzleSource,
    answered,
    at,
    short,
)

Node = Annotated[int, Field(ge=0, le=99)]
Length = Annotated[int, Field(ge=2, le=12)]
_NODE = re.compile("[0-9]{1,2}")


class Graph(Puzzle):
    """Directed edges, and where a path begins and ends."""

    edges: tuple[tuple[Node, Node], ...] = Field(min_length=1, max_length=500)
    origin: Node
    target: Node
    shortest: bool = False
    multi_turn: bool = False

    @model_validator(mode="after")
    def _connected(self) -> "Graph":
        if self.origin == self.target or not self.route:
            raise ValueError(f"expected is a path from {self.origin} to another node, {self.target}, along the edges")
        return self

    @property
    def goal(self) -> str:
        asked = f"{'shortest ' if self.shortest else ''}path from {self.origin} to {self.target}"
        return f"walk the {asked}" if self.multi_turn else f"{asked} : {' ; '.join(f'{a} {b}' for a, b in self.edges)}"

    @property
    def key(self) -> str:
        return f"{self.origin} {self.target} {sorted(self.edges)}"

    @functools.cached_property
    def after(self) -> dict[int, list[int]]:
        """Where one can go from each node that leads anywhere, in the order of the numbers."""
        after: dict[int, list[int]] = {}
        for a, b in sorted(set(self.edges)):
            after.setdefault(a, []).append(b)
        return after

    @functools.cached_property
    def route(self) -> list[int]:
        """A shortest path, found breadth first; empty where there is none."""
        came = {self.origin: self.origin}
        queue = deque([self.origin])
        while queue and self.target not in came:
            here = queue.popleft()
            for there in self.after.get(here, ()):
                if there not in came:
                    came[there] = here
                    queue.append(there)
        if self.target not in came:
            return []
        path = [self.target]
        while path[-1] != self.origin:
            path.append(came[path[-1]])
        return path[::-1]

    def start(self) -> Game:
        return PathWalk(self) if self.multi_turn else OneAnswer(self.check)

    def check(self, answer: str) -> str:
        """The verdict of an answer: nodes with spaces between."""
        words = answer.split()
        strange = next((w for w in words if not _NODE.fullmatch(w)), None)
        return self.judge([int(w) for w in words]) if strange is None else f"{short(strange)!r} is no node"

    def judge(self, path: Sequence[int]) -> str:
        """The verdict of a path."""
        if not path or (path[0], path[-1]) != (self.origin, self.target):
            return f"the path does not lead from {self.origin} to {self.target}"
        for a, b in zip(path, path[1:], strict=False):
            if b not in self.after.get(a, ()):
                return f"there is no edge {a} {b}"
        if self.shortest and len(path) > len(self.route):
            return f"{len(path) - 1} edges are more than {len(self.route) - 1}"
        return SOLVED

    def steps(self) -> list[str]:
        return [f"{a} {b}" for a, b in zip(self.route, self.route[1:], strict=False)]

    def demonstration(self) -> list[str]:
        if self.multi_turn:
            return [f"Action: go {node}" for node in self.route[1:]]
        return [answered(self.steps(), " ".join(map(str, self.route)))]


class PathWalk(Game):
    """A walk that may go back the way it came; what is judged is the path without what was taken back."""

    verbs: ClassVar[Mapping[str, int | None]] = {"go": 1, "back": 0}

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._path = [graph.origin]

    def look(self) -> str:
        after = self._graph.after.get(self._path[-1], [])
        return " ".join(map(str, ["at", self._path[-1], "next", *(after or ["none"])]))

    def act(self, action: Action) -> str | None:
        here = self._path[-1]
        if action.verb == "back":
            if len(self._path) == 1:
                return f"{here} is where the walk began"
            self._path.pop()
        elif action.numbers[0] not in self._graph.after.get(here, ()):
            return f"there is no edge {here} {action.numbers[0]}"
        else:
            self._path.append(action.numbers[0])
        self.over = self._path[-1] == self._graph.target

    def verdict(self) -> str:
        return self._graph.judge(self._path)


class LayeredPath(PuzzleSource):
    """Paths in layered graphs."""

    kind: ClassVar[type[Puzzle]] = Graph
    lengths: tuple[Length, Length, Length] = (2, 4, 6)
    """Edges of a shortest path in easy, medium and hard tasks: the layers, less one."""
    width: Annotated[int, Field(ge=2, le=8)] = 3
    """Nodes of a layer between the first and the last, which have one."""
    distractors: Annotated[int, Field(ge=0, le=50)] = 4
    """Edges more than every node needs to be reached once; they lead one layer on or across a layer."""
    shortest: bool = False
    """Whether only a shortest path counts."""
    multi_turn: bool = False
    """Whether the graph is walked without a map, instead of read and answered."""

    def make(self, rng: random.Random, difficulty: Difficulty) -> Graph:
        length = at(self.lengths, difficulty)
        count = 2 + (length - 1) * self.width
        names = rng.sample(range(100), count)
        middle = [names[1 + i * self.width : 1 + (i + 1) * self.width] for i in range(length - 1)]
        layers = [names[:1], *middle, names[-1:]]
        # every node is reached from the layer before it, but only some lead on: the others are dead ends
        edges = {(rng.choice(before), b) for before, layer in zip(layers, layers[1:], strict=False) for b in layer}
        free = [
            (a, b)
            for i, layer in enumerate(layers[:-1])
            for a in layer
            for b in [*layer, *layers[i + 1]]
            if a != b and (a, b) not in edges
        ]
        edges |= set(rng.sample(free, min(self.distractors, len(free))))
        return Graph(
            edges=tuple(rng.sample(sorted(edges), len(edges))),
            origin=names[0],
            target=names[-1],
            shortest=self.shortest,
            multi_turn=self.multi_turn,
        )
