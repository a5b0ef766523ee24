"""What the verifiers library runs, behind one interface: tasksets and environments with a rubric.

What always holds: the library's own loop runs, and asks for each of the policy's replies; where it is answered by None
it ends, and the episode is rewarded as it stands. What has to be executed, or several agents, is refused when it is
opened.
"""

import copy
import importlib
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any, NamedTuple

from longstride.core.errors import ConfigError, EnvFailure, require
from longstride.core.foreign import raised
from longstride.envs.text import MARK
from longstride.envs.tools import Call, Manual, Tool, parse

Ask = Callable[[str], Awaitable[str | None]]
"""From the messages since the last reply to the next reply; None where there will be no other."""
MODEL = "policy"
"""The name of the model, for the library."""


class Scores(NamedTuple):
    """What the library gives an episode."""

    reward: float
    terms: dict[str, float]


class VerifiersWorld(ABC):
    """An environment of the library, and its rows."""

    prompts: list[str]
    """What each row begins with, as text."""

    @property
    def evaluation(self) -> "VerifiersWorld | None":
        """Its own evaluation data, where it has some."""
        return None

    @abstractmethod
    async def play(self, row: int, ask: Ask) -> Scores:
        """Plays a row to its end. Raises whatever the library raises."""


def open_world(id: str, args: dict[str, Any], rows: int) -> VerifiersWorld:
    """The environment, by whichever interface its module has."""
    name = id.rsplit("/", 1)[-1].split("@", 1)[0].replace("-", "_").lower()
    with suppress(ModuleNotFoundError):  # some come with the library
        if find_spec(f"verifiers.v1.tasksets.{name}") is not None:
            return TasksetWorld(id, args, rows)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as e:
        raise ConfigError(f"tasks.id: there is no module {e.name!r}; install the environment {id!r}") from e
    return RubricWorld.made(id, args) if hasattr(module, "load_environment") else TasksetWorld(id, args, rows)


# tasksets: verifiers.v1


class TasksetWorld(VerifiersWorld):
    """A taskset, and the one agent that plays it."""

    def __init__(self, id: str, args: dict[str, Any], rows: int) -> None:
        vf = require("verifiers.v1", "verifiers")
        config = vf.resolve_env_config({"taskset": {"id": id, **args}})
        agents = [name for name, value in config if isinstance(value, vf.AgentConfig)]
        if len(agents) != 1:
            raise ConfigError(f"tasks.id: {id!r} is played by {', '.join(agents)}; expected one agent")
        self._vf, self._env = vf, vf.load_environment(config)
        self._tasks = list(itertools.islice(self._env.taskset, rows))
        self.prompts = [_text(_opening(vf, task)) for task in self._tasks]
        for needs in filter(None, map(_needs, self._tasks[:1])):
            raise ConfigError(f"tasks.id: {id!r} needs {needs}, which is not to be had here")

    async def play(self, row: int, ask: Ask) -> Scores:
        vf, env, task = self._vf, self._env, self._tasks[row]
        record = vf.TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        episode = vf.Episode(env=vf.EnvInfo(id=env.config.env_id), task=record)
        agents = vf.Agents(env.config, lambda name, config: Agent(vf, config, record, ask, episode.traces))
        await env.setup(agents)
        await env.run(task, agents)
        await env.finalize(task, episode)
        if len(episode.traces) != 1:
            raise ValueError(f"its agent ran {len(episode.traces)} times; expected once")
        (trace,) = episode.traces
        return Scores(trace.reward, {name: r.value for name, r in trace.rewards.items() if r is not None})


class Agent:
    """The library's agent: its replies are the policy's."""

    trainable = True

    def __init__(self, vf: Any, config: Any, record: Any, ask: Ask, traces: list[Any]) -> None:
        self._vf, self._config, self._record, self._ask, self._traces = vf, config, record, ask, traces

    async def run(self, task: Any, **_: Any) -> Any:
        """Plays until the agent has replied. Returns the trace."""
        async with self.interaction(task) as interaction:
            await interaction.turn()
        return interaction.trace

    @asynccontextmanager
    async def interaction(self, task: Any, **_: Any) -> AsyncIterator["Interaction"]:
        """A conversation whose other side is the caller; leaving it scores the task."""
        vf = self._vf
        info = vf.AgentInfo(config=self._config)
        trace = vf.Trace(task=self._record, state=_module("state").state_cls(type(task))(), agent=info)
        invoke = _module("utils.decorators").invoke
        await invoke(task.setup, {"trace": trace, "runtime": None})
        yield Interaction(vf, task, trace, self._ask)
        trace.stop("user_closed")
        await invoke(task.finalize, {"trace": trace, "runtime": None})
        await task.score(trace)
        trace.ok = True
        self._traces.append(trace)


class Interaction:
    """A conversation with the policy."""

    def __init__(self, vf: Any, task: Any, trace: Any, ask: Ask) -> None:
        self._vf, self._task, self._ask = vf, task, ask
        self.trace = trace
        self._messages: list[Any] = []
        self._over = False

    async def turn(self, message: Any = None) -> Any:
        """One reply: to the task's prompt without a message, then to each message."""
        if self._over:
            raise RuntimeError("the conversation is over; a terminated segment said so")
        new = [] if self._messages else _opening(self._vf, self._task)
        if isinstance(message, str):
            new.append(self._vf.UserMessage(content=message))
        elif message is not None:
            parse_message = _module("dialects").parse_message
            new += [parse_message(m) if isinstance(m, dict) else m for m in message]
        self._messages += new
        reply = None if await self._stopped() else await self._ask(_text(new))
        if reply is None:
            self._over = True
            return self._vf.Segment(messages=[], terminated=True)
        said = self._vf.AssistantMessage(content=reply)
        response = self._vf.Response(id=MODEL, created=0, model=MODEL, message=said, finish_reason="stop")
        _module("graph").prepare_turn(self.trace, self._messages).commit(response)
        self._messages = [*self._messages, said]
        return self._vf.Segment(messages=[said])

    async def _stopped(self) -> bool:
        """Whether one of the task's own conditions ends the conversation."""
        for stop in self._task.hooks("stop"):
            if await _module("utils.decorators").invoke(stop, {"trace": self.trace, self._vf.Trace: self.trace}):
                self.trace.stop(stop.__name__)
        return self.trace.stop_condition is not None


def _module(name: str) -> Any:
    return importlib.import_module(f"verifiers.v1.{name}")


def _opening(vf: Any, task: Any) -> list[Any]:
    """The messages that a task begins with."""
    system, prompt = task.data.system_prompt, task.data.prompt
    first = [vf.SystemMessage(content=system)] if system else []
    return first + ([vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or ()))


def _needs(task: Any) -> str:
    """What a task needs that is not to be had here; empty where it needs nothing."""
    if task.NEEDS_CONTAINER:
        return "a container"
    if task.toolsets(task.config):
        return "tool servers"
    if _module("utils.decorators").discover_decorated(task, "intercept"):
        return "its messages intercepted"
    for hook in (*task.hooks("reward"), *task.hooks("metric")):
        runtime = signature(hook).parameters.get("runtime")
        if runtime is not None and runtime.default is Parameter.empty:
            return f"a runtime for {hook.__name__!r}"
    return ""


# environments with a rubric: verifiers up to 0.3


class RubricWorld(VerifiersWorld):
    """An environment with data and a rubric."""

    def __init__(self, env: Any, rows: Iterable[Any]) -> None:
        self._env, self._rows = env, [dict(row) for row in rows]
        self.prompts = [_text(row["prompt"]) for row in self._rows]

    @property
    def evaluation(self) -> "RubricWorld | None":
        data = self._env.build_eval_dataset()
        return None if data is None else RubricWorld(self._env, data)

    @classmethod
    def made(cls, id: str, args: dict[str, Any]) -> "RubricWorld":
        """The environment of that name, with its training data."""
        vf = require("verifiers", "verifiers")
        if not hasattr(vf, "Rubric"):
            raise ConfigError(
                f"tasks.id: {id!r} has a rubric, and verifiers {vf.__version__} no longer plays those: take "
                "a version of it that is a taskset, or pip install 'verifiers<0.4'"
            )
        env = vf.load_environment(id, **args)
        if env.rubric.has_group_rewards:
            raise ConfigError(f"tasks.id: the rubric of {id!r} scores groups; expected one that scores each episode")
        return cls(env, env.get_dataset())

    async def play(self, row: int, ask: Ask) -> Scores:
        # an environment may write into what it is given, and the next episode has the same row
        state = await self._env.rollout(copy.deepcopy(self._rows[row]), _policy(ask), MODEL, {})
        if (error := state.get("error")) is not None:
            raise EnvFailure(f"the library gave up: {raised(error)}") from error
        await self._env.rubric.score_rollout(state)
        await self._env.rubric.cleanup(state)
        return Scores(state["reward"], dict(state["metrics"]))


def _policy(ask: Ask) -> Any:
    """A client of the library whose replies are the policy's."""
    vf = require("verifiers", "verifiers")
    types = require("verifiers.types", "verifiers")

    class PolicyClient(vf.OpenAIChatCompletionsClient):
        seen = 0

        async def get_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **_: Any) -> Any:
            offered = {tool.name: Tool(tool.name, tool.parameters, tool.description) for tool in tools or ()}
            said = _text(prompt[self.seen :])
            if offered and not self.seen:
                said += f"\n{Manual(tuple(offered.values()))}"
            self.seen = len(prompt) + 1  # the reply comes next
            calls = None
            while (reply := await ask(said)) is not None and offered and MARK in reply:
                call = parse(reply, offered)
                if isinstance(call, Call):
                    arguments = json.dumps(call.arguments)
                    calls = [types.ToolCall(id=f"call_{self.seen}", name=call.tool, arguments=arguments)]
                    break
                said = f"error: {call}"
            if reply is None:
                raise vf.OverlongPromptError  # which the library takes for the end of the context, and scores
            message = types.ResponseMessage(
                content=reply, tool_calls=calls, finish_reason="tool_calls" if calls else "stop", is_truncated=False
            )
            return types.Response(id=MODEL, created=0, model=model, message=message)

    return PolicyClient(None)


def _text(messages: Any) -> str:
    """Messages as text: what users, tools and the system say."""
    if isinstance(messages, str):
        return messages
    return "\n".join(filter(None, map(_content, messages)))


def _content(message: Any) -> str:
    get = message.get if isinstance(message, dict) else lambda key: getattr(message, key, None)
    content = get("content")
    if get("role") == "assistant" or content is None:
        return f"assistant: {content}" if content else ""
    if isinstance(content, str):
        return content
    texts = (part.get("text") if isinstance(part, dict) else getattr(part, "text", None) for part in content)
    return "\n".join(text or "(something that is not text)" for text in texts)
