"""Gymnasium environments (Towers et al., 2024, arXiv 2407.17032) whose actions are discrete or text.

What always holds: an observation is shown as short words (numbers, `key: value` lines, texts as they are) and images,
or as what the environment itself prints where its `render_mode` is `ansi`; an action is named (`Action: left`), and one
that is not understood costs a turn and does not move the environment; `terminated` and `truncated` are the
environment's own, and so is the reward of each step. An environment that cannot be made, or whose spaces do not fit, is
refused before the first episode.
"""

import functools
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from enum import EnumMeta
from typing import Any

import numpy as np

from longstride.adapters.seeded import SUCCESS, SeededTasks
from longstride.core.content import Content, Media, chunks_of, joined, with_lines
from longstride.core.errors import ConfigError, EnvFailure, require, short
from longstride.core.foreign import bounded_content, flag, guarded, number
from longstride.core.modules import import_module
from longstride.core.task import Task
from longstride.envs.base import Observation, Step
from longstride.envs.text import MARK, said
from longstride.envs.tools import Manual, Tool, arguments

MAX_NUMBERS = 1024
"""Numbers of an observation that are shown, but for those of an image."""
MAX_IMAGE = 1 << 24
"""Bytes of an image: more than 2,000 pixels each way."""
NAMES: dict[str, tuple[str, ...]] = {
    "Acrobot": ("left", "wait", "right"),
    "Blackjack": ("stick", "hit"),
    "CartPole": ("left", "right"),
    "CliffWalking": ("up", "right", "down", "left"),
    "FrozenLake": ("left", "down", "right", "up"),
    "FrozenLake8x8": ("left", "down", "right", "up"),
    "MountainCar": ("left", "wait", "right"),
    "Taxi": ("south", "north", "east", "west", "pickup", "dropoff"),
}
"""Names of the actions of Gymnasium's own environments, by id without its version."""
COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""Of a terminal, by the last digit of their codes."""
_COLORED = re.compile(r"\x1b\[(?:\d+;)*[34](\d)(?:;\d+)*m(.*?)\x1b\[0m", re.DOTALL)
RESET, STEP = "(observation, info)", "(observation, reward, terminated, truncated, info)"


class Gymnasium(SeededTasks):
    """A Gymnasium environment; the seed of its `reset` is the task."""

    id: str
    """As `gymnasium.make` takes it: `FrozenLake-v1`, or `my_module:My-v0` where `my_module` registers it."""
    kwargs: dict[str, Any] = {}
    """What it is made with; `render_mode = "ansi"` shows what it prints in place of its observations."""
    actions: tuple[str, ...] = ()
    """Names of its discrete actions, in their order; left out: those that are known (`NAMES`, or an enumeration
    `actions` of the environment), or numbers."""
    goal: str = ""
    """What the agent is to do. Left out: `Play ID.`"""

    @property
    def world(self) -> str:
        return self.id

    def goal_of(self, seed: int) -> str:
        assert self.acting  # what cannot be played is refused before the first episode
        return self.goal or f"Play {self.id}."

    @functools.cached_property
    def acting(self) -> "Acting":
        """How actions are said; found by making the environment once.

        Raises:
            ConfigError: it cannot be made or reset, or its spaces cannot be put into words.
            MissingExtra: gymnasium is not installed.
        """
        env = GymnasiumEnv(self)
        try:
            env.open(seed=0)
            return Acting.of(env.env, self)
        except EnvFailure as e:
            raise ConfigError(f"tasks: {e}") from e
        finally:
            env.end()

    def env(self) -> "GymnasiumEnv":
        return GymnasiumEnv(self)


class Acting:
    """How the actions of a space are said.

    Args:
        space: the action space.
        names: of discrete actions.
    """

    def __init__(self, space: Any, names: Sequence[str] = ()) -> None:
        self._space = space
        self._names = {" ".join(name.lower().split()): k for k, name in enumerate(names)}

    @staticmethod
    def of(env: Any, source: Gymnasium) -> "Acting":
        """Raises: ConfigError where the space is neither discrete nor text, or `source.actions` does not fit."""
        spaces, space = require("gymnasium.spaces", "gymnasium"), env.action_space
        if isinstance(space, spaces.Text):
            return Acting(space)
        if not isinstance(space, spaces.Discrete):
            raise ConfigError(
                f"tasks: {source.id} takes actions of {short(space)}; expected a Discrete or a Text space: wrap the "
                "environment in a gymnasium.ActionWrapper that has one, and register the wrapped one"
            )
        count, known = int(space.n), NAMES.get(source.id.rpartition("/")[2].rpartition("-v")[0], ())
        own = getattr(env.unwrapped, "actions", None)
        if isinstance(own, EnumMeta):
            known = tuple(own.__members__)
        names = source.actions or (known if len(known) == count else tuple(map(str, range(count))))
        if len(names) != count or len({name.lower() for name in names}) != count:
            raise ConfigError(
                f"tasks.actions: {source.id} has {count} actions; expected as many different names, got {short(names)}"
            )
        return Acting(space, names)

    @functools.cached_property
    def manual(self) -> Manual:
        """What the agent reads of it."""
        if self._names:
            words = f"End each turn with {MARK} and one of {', '.join(self._names)}."
            tool = Tool("act", arguments(action=[*self._names]), "makes a move", "{action}")
        else:
            least, most = self._space.min_length, self._space.max_length
            words = f"End each turn with {MARK} and a text of {least} to {most} characters."
            tool = Tool("say", arguments(text="string"), f"says a text of {least} to {most} characters", "{text}")
        return Manual((tool,), words=words)

    def parse(self, text: str) -> tuple[str, Any] | str:
        """The action's name and value, or one sentence that says what is wrong."""
        wanted = said(text)
        if self._names:
            name = " ".join(wanted.lower().split()).rstrip(".")
            if name not in self._names:
                return f"unknown action {short(name, 30)}; use one of {', '.join(self._names)}"
            return name, int(self._space.start) + self._names[name]
        if not self._space.contains(wanted):
            return f"{short(wanted, 30)} is no text that can be said here; {self.manual}"
        return wanted, wanted


class GymnasiumEnv:
    """One episode of a Gymnasium environment."""

    def __init__(self, source: Gymnasium) -> None:
        self._source = source
        self._name = source.id
        self._seen: Content = ""
        self._success: bool | None = None
        self.env: Any = None
        """Gymnasium's own, between `open` and `end`."""

    def open(self, seed: int) -> None:
        """Makes and resets the environment.

        Raises:
            ConfigError: the module that registers it cannot be imported.
            EnvFailure: it raises, or does not return what it should.
        """
        source, gymnasium = self._source, require("gymnasium", "gymnasium")
        if ":" in source.id:
            import_module(source.id.partition(":")[0])
        with guarded(f"making {source.id} with {short(source.kwargs)}"):
            self.env = gymnasium.make(source.id, disable_env_checker=True, **source.kwargs)
        kind = type(self.env.unwrapped)
        self._name = f"{kind.__module__}.{kind.__qualname__}"
        with guarded(f"{self._name}.reset, which returns {RESET},"):
            found = self.env.reset(seed=seed)
            self._check("reset", found, 2, RESET)
            self._look(found[0])

    def end(self) -> None:
        """Closes it."""
        env, self.env = self.env, None
        if env is not None:
            with guarded(f"{self._name}.close"):
                env.close()

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode of the task's seed. Raises: EnvFailure as `open`."""
        self._acting = self._source.acting
        self.open(task.meta.get("seed", seed % (1 << 32)))
        return Observation(self._seen, manual=self._acting.manual)

    async def step(self, text: str) -> Step:
        """Does what the policy's text says. Raises: EnvFailure when the environment raises, or does not return what it
        should."""
        action = self._acting.parse(text)
        if isinstance(action, str):
            return Step(Observation(with_lines(self._seen, f"error: {action}")), error=action)
        name, value = action
        with guarded(f"{self._name}.step, which returns {STEP},"):
            found = self.env.step(value)
            self._check("step", found, 5, STEP)
            observation, reward, terminated, truncated, info = found
            self._look(observation)
            success = info.get(SUCCESS, info.get("is_success")) if isinstance(info, Mapping) else None
            if success is not None:
                self._success = flag(success, f"`success` in the info of {self._name}.step")
            reward = number(reward, f"the reward of {self._name}.step")
            terminated = flag(terminated, f"`terminated` of {self._name}.step")
            truncated = flag(truncated, f"`truncated` of {self._name}.step")
        return Step(Observation(self._seen), reward, terminated, truncated, name)

    async def final_state(self) -> dict[str, Any]:
        """`{"success": ...}` where the environment said so in `info`."""
        return {} if self._success is None else {SUCCESS: self._success}

    async def close(self) -> None:
        """Closes the environment."""
        self.end()

    def _check(self, method: str, found: Any, length: int, expected: str) -> None:
        if not isinstance(found, tuple) or len(found) != length:
            raise EnvFailure(f"{self._name}.{method} returned {short(found)}; expected {expected}")

    def _look(self, observation: Any) -> None:
        if self.env.render_mode == "ansi":
            observation = marked(self.env.render())
        self._seen = bounded_content(seen(observation, self._name))


def marked(printed: Any) -> Any:
    """What is coloured in a printed text in brackets, with the colour's name where there are several: that is how
    Gymnasium's grids show where the agent stands."""
    if not isinstance(printed, str):
        return printed
    several = len({found[1] for found in _COLORED.finditer(printed)}) > 1
    name = lambda found: f"{COLORS[int(found[1]) % 8]} " if several else ""  # noqa: E731
    return _COLORED.sub(lambda found: f"[{name(found)}{found[2]}]", printed).strip("\n")


def seen(value: Any, name: str) -> Content:
    """An observation as text, and its images (arrays of bytes of the shape (height, width, 3)) as PNG.

    Raises:
        EnvFailure: as `in_words`.
    """
    if isinstance(value, Mapping):
        lines = [("\n", f"{key}: ", *chunks_of(seen(part, name))) for key, part in value.items()]
        return joined([chunk for line in lines for chunk in line][1:])
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[2] == 3:
        if value.nbytes > MAX_IMAGE:
            raise EnvFailure(f"{name} shows an image of the shape {value.shape}; expected at most {MAX_IMAGE} bytes")
        return (Media(png(value)),)
    return in_words(value, name)


def png(image_H_W_3: np.ndarray) -> bytes:
    """An image of bytes (red, green, blue) as PNG (ISO/IEC 15948): 8 bits a colour, no filter."""
    height, width, _ = image_H_W_3.shape
    rows = b"".join(b"\0" + row.tobytes() for row in image_H_W_3)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    chunks = (struct.pack(">I", len(d)) + kind + d + struct.pack(">I", zlib.crc32(kind + d)) for kind, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def in_words(value: Any, name: str) -> str:
    """An observation as text; numbers that are not whole have two decimals.

    Raises:
        EnvFailure: it holds something that has no words, or more than `MAX_NUMBERS` numbers; `name` says whose it is.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(f"{key}: {in_words(part, name)}" for key, part in value.items())
    if isinstance(value, tuple | list):
        if len(value) > MAX_NUMBERS:
            raise EnvFailure(f"{name} shows {len(value)} parts, and at most {MAX_NUMBERS} can be read")
        return " ; ".join(in_words(part, name) for part in value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise EnvFailure(
            f"{name} shows {short(value)}; expected texts, numbers, or dicts and tuples of them: put what it shows "
            "into words in a gymnasium.ObservationWrapper"
        )
    if array.size > MAX_NUMBERS:
        raise EnvFailure(
            f"{name} shows {array.size} numbers of the shape {array.shape}, and at most {MAX_NUMBERS} can be read: use "
            'kwargs={render_mode="ansi"} where it prints itself, or a gymnasium.ObservationWrapper'
        )
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    return "\n".join(" ".join(map(_number, row)) for row in rows.tolist())


def _number(value: bool | int | float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(int(value))
