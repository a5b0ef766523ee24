"""TextArena's games (Guertler et al., 2025, arXiv 2504.11442), for one player or against somebody.

What always holds: the game's rules for the policy's seat are the goal, and an observation is what the game and the
other player said since; the move is what follows `Action:`, in the form that the rules ask for; the game's reward for
the seat comes with the last turn, and the task was done where it is 1 (a puzzle solved, a game won). In a game of two
the seat goes by the seed. Games draw from the global generators of Python and numpy: each game has its own state of
them, which is there while it is called, so games do not depend on one another and nothing else depends on them.
"""

import functools
import random
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from longstride.adapters.seeded import SUCCESS, SeededTasks
from longstride.core.component import Component
from longstride.core.errors import ConfigError, EnvFailure, require, short
from longstride.core.foreign import bounded, flag, guarded, number
from longstride.core.seeds import derive, stream
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.text import said

OPPONENT = "opponent"
"""The speaker whose turn it is when the other player moves: the name of a companion."""
REPLIES = 200
"""Moves of a scripted opponent that may follow one of the policy's."""
MAX_REASON = 300
"""Characters of why a move was refused."""
HOW = "End each turn with Action: and your move."
_BRACKETS = re.compile(r"\[[^\[\]\n]{1,20}\]")


class Opponent(Component):
    """Family: a rule that plays the other side."""

    @abstractmethod
    def move(self, seen: Sequence[str], rng: random.Random) -> str:
        """A move.

        Args:
            seen: what the game has told the opponent so far, oldest first.
            rng: the episode's own.
        """


class RandomMove(Opponent):
    """One of the moves in square brackets that the newest message with any of them names."""

    def move(self, seen: Sequence[str], rng: random.Random) -> str:
        moves = next((found for text in reversed(seen) if (found := _BRACKETS.findall(text))), ["[0]"])
        return rng.choice(moves)


class Textarena(SeededTasks):
    """A game of TextArena; the seed of its `reset` is the task."""

    id: str
    """As `textarena.make` takes it, such as `GuessTheNumber-v0`."""
    kwargs: dict[str, Any] = {}
    """What it is made with."""
    players: Literal[1, 2] = 1
    """How many play."""
    opponent: Opponent | None = None
    """Who plays the other side. Left out, the speaker `opponent` does: a model that the recipe has under
    `companions.opponent`. Both then read one history, which fits games without hidden information."""

    @property
    def world(self) -> str:
        return self.id

    def goal_of(self, seed: int) -> str:
        return self._checked

    def env(self) -> "TextarenaEnv":
        return TextarenaEnv(self)

    @functools.cached_property
    def _checked(self) -> str:
        """`Play ID.`, after the game was set up once; an episode has the game's own words.

        Raises:
            ConfigError: the game cannot be set up.
            MissingExtra: textarena is not installed.
        """
        try:
            TextarenaEnv(self).open(seed=0)
        except EnvFailure as e:
            raise ConfigError(f"tasks: {e}") from e
        return f"Play {self.id}. {HOW}"


class Generators:
    """A state of the global generators of Python and numpy, for code that draws from them."""

    def __init__(self, seed: int) -> None:
        self._state = random.Random(seed).getstate(), np.random.RandomState(seed % (1 << 32)).get_state()

    @contextmanager
    def present(self) -> Iterator[None]:
        """While it lasts, this is the global state; what was drawn is remembered for the next time."""
        before = self._swap(self._state)
        try:
            yield
        finally:
            self._state = self._swap(before)

    @staticmethod
    def _swap(new: tuple[Any, Any]) -> tuple[Any, Any]:
        old = random.getstate(), np.random.get_state()
        random.setstate(new[0])
        np.random.set_state(new[1])
        return old


class TextarenaEnv:
    """One game."""

    def __init__(self, source: Textarena) -> None:
        self._source = source
        self._game: Any = None
        """The game as it takes moves, with its wrappers."""
        self._core: Any = None
        """The game itself."""
        self._heard: dict[int, list[str]] = {0: [], 1: []}
        """What each player was told."""
        self._waiting = ""
        """What the player whose turn it is sees."""
        self._won = False

    def open(self, seed: int) -> None:
        """Sets the game up. Raises: EnvFailure when it raises."""
        source, textarena = self._source, require("textarena", "textarena")
        self._player_action = textarena.ObservationType.PLAYER_ACTION
        self._prompt = textarena.ObservationType.PROMPT
        self.seat = seed % source.players
        self._rng, self._generators = stream(seed, "opponent"), Generators(derive(seed, "game"))
        with self._guarded(f"setting up {source.id} for {source.players} players with {short(source.kwargs)}"):
            self._game = textarena.make(source.id, **source.kwargs)
            self._game.reset(num_players=source.players, seed=seed)
            core = self._game
            while isinstance(core, textarena.Wrapper):
                core = core.env
            self._core = core
            told = core.state.observations[self.seat]
            self._rules = bounded("\n".join(text for _, text, kind in told if kind == self._prompt)).strip()

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the game of the task's seed. Raises: EnvFailure when the game raises."""
        self.open(task.meta.get("seed", seed % (1 << 32)))
        with guarded(f"the state of {self._source.id}"):
            self._listen()
            self._let_opponent_move()
            first = self._observation()
        first.goal = f"{self._rules or f'Play {self._source.id}.'}\n{HOW}"
        return first

    async def step(self, text: str) -> Step:
        """Gives the game the move in the policy's text, or in its opponent's. Raises: EnvFailure when the game
        raises, or is in a state that it cannot be in."""
        with guarded(f"the state of {self._source.id}"):
            return self._step(bounded(said(text)))

    def _step(self, move: str) -> Step:
        mover = self._mover
        refused = self._move(move)
        self._listen()
        self._let_opponent_move()
        done, reward = self._done, 0.0
        if done:
            rewards = self._core.state.rewards or {}
            reward = number(rewards.get(self.seat, 0), f"the reward of {self._source.id} for player {self.seat}")
            self._won = reward >= 1
        action = " ".join(move.split())
        return Step(
            self._observation(),
            reward,
            terminated=done,
            action=None if refused else action,
            error=refused if mover == self.seat else None,
        )

    async def final_state(self) -> dict[str, Any]:
        """`{"success": ...}`: whether the game was won."""
        return {SUCCESS: self._won}

    async def close(self) -> None:
        """Forgets the game."""
        self._game = self._core = None

    @property
    def _done(self) -> bool:
        """Whether the game is over."""
        return flag(self._core.state.done, f"`done` of {self._source.id}")

    @property
    def _mover(self) -> int:
        """The player whose turn it is."""
        found = self._core.state.current_player_id
        if found not in self._heard:
            raise EnvFailure(f"{self._source.id}: it is the turn of player {short(found)}; expected 0 or 1")
        return found

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """For calls of the game."""
        with self._generators.present(), guarded(what):
            yield

    def _move(self, move: str) -> str | None:
        """Makes a move; why the game refused it, or None."""
        state, player = self._core.state, self._mover
        with self._guarded(f"{self._source.id}.step({short(move)})"):
            self._game.step(action=move)
        told = state.game_info.get(player, {})
        if self._done and told.get("invalid_move"):
            return bounded(str(told.get("reason") or "the move is invalid"), MAX_REASON)
        again = not self._done and state.current_player_id == player and getattr(state, "error_count", 0)
        return "the move is invalid" if again else None

    def _listen(self) -> None:
        """Hears what is new for the player whose turn it is, but its own moves, and the rules, which are the goal."""
        with self._guarded(f"{self._source.id}.get_observation"):
            player, messages = self._core.get_observation()
            if player not in self._heard:
                raise EnvFailure(f"{self._source.id} says something to player {short(player)}; expected 0 or 1")
        names, new = self._core.state.role_mapping, []
        for sender, text, kind in messages:
            if kind == self._player_action and sender != player:
                new.append(f"{names.get(sender, f'Player {sender}')}: {text}")
            elif kind != self._player_action and (kind != self._prompt or player != self.seat):
                new.append(str(text).strip())
        self._heard[player] += new
        self._waiting = "\n".join(new)

    def _let_opponent_move(self) -> None:
        """Where a rule plays the other side: until it is the policy's turn, or the game is over."""
        opponent = self._source.opponent
        if opponent is None:
            return
        for _ in range(REPLIES):
            if self._done or self._mover == self.seat:
                return
            with guarded(f"{type(opponent).__module__}.{type(opponent).__qualname__}.move"):
                move = opponent.move(self._heard[1 - self.seat], self._rng)
            self._move(str(move))
            self._listen()
        raise EnvFailure(f"{self._source.id}: {opponent.type_name()} moved {REPLIES} times, and its turn does not end")

    def _observation(self) -> Observation:
        speaker = "" if self._done or self._mover == self.seat else OPPONENT
        return Observation(bounded(self._waiting), speaker=speaker)
