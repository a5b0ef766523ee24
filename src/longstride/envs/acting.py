"""How an agent acts in an environment of text: in the environment's words, or by calls of tools.

What always holds: what is said costs a turn, whether it fits or not; what does not fit is explained in the next
observation, and the environment does not move.
"""

from dataclasses import replace
from typing import Any, Literal

from longstride.core.content import Content, with_lines
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.envs.base import Env, Observation, Step
from longstride.envs.interface import ask
from longstride.envs.text import MARK
from longstride.envs.tools import Manual, Tool, parse_calls

Actions = Literal["text", "explained", "tool_calls"]
"""`text`: in the environment's words, which it explains itself where an agent cannot know them. `explained`: in its
words, and each of its actions is explained after the goal. `tool_calls`: by calls of tools, which the model's own chat
template presents."""


class Explained:
    """An environment that explains its actions after the goal."""

    def __init__(self, env: Env) -> None:
        self._env = env

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode. Raises: ConfigError where the environment does not say how to act in it."""
        first = await ask(Observation, self._env, "reset", task, seed)
        return replace(first, manual=replace(_manual(first, self._env), needed=True))

    async def step(self, text: str) -> Step:
        """Acts with the policy's text."""
        return await ask(Step, self._env, "step", text)

    async def final_state(self) -> dict[str, Any]:
        """That of the environment."""
        return await ask(dict, self._env, "final_state")

    async def close(self) -> None:
        """Closes the environment."""
        await ask(object, self._env, "close")


class ToolCalls(Explained):
    """An environment whose agent calls tools: a call is checked and said in the environment's words."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._tools: dict[str, Tool] = {}
        self._seen: Content = ""

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the episode. Raises: ConfigError where the environment names no tools."""
        first = await ask(Observation, self._env, "reset", task, seed)
        manual = _manual(first, self._env)
        self._tools, self._seen = {tool.name: tool for tool in manual.tools}, first.content
        return replace(first, manual=Manual((), words=manual.about), tools=manual.tools)

    async def step(self, text: str) -> Step:
        """Does the call in the policy's text. Raises: EnvFailure as the environment."""
        call = parse_calls(text, self._tools)
        if isinstance(call, str):
            return Step(Observation(with_lines(self._seen, f"error: {call}")), error=call)
        step = await super().step(f"{MARK} {self._tools[call.tool].spelled(call.arguments)}")
        self._seen = step.observation.content
        return step


def acting(env: Env, actions: Actions) -> Env:
    """The environment as an agent acts in it."""
    return {"text": lambda env: env, "explained": Explained, "tool_calls": ToolCalls}[actions](env)


def _manual(first: Observation, env: Env) -> Manual:
    if first.manual is None or not first.manual.tools:
        raise ConfigError(
            f"{type(env).__name__} does not name its actions (Observation.manual of its reset); set actions=text"
        )
    return first.manual
