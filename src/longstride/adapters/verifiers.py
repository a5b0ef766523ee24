"""Environments of the verifiers library (github.com/PrimeIntellect-ai/verifiers), single-turn and multi-turn.

Both of its interfaces are played: tasksets (`verifiers.v1`, all there is from 0.4 on), whose tasks score themselves,
and environments with a rubric (`vf.load_environment`, up to 0.3). There the library calls the model; here the
environment is called. So the library's own loop runs as a coroutine, and whenever it wants a reply it waits for the
policy's next turn.

What always holds: the reward is the library's own (the sum of its weighted rewards), given for the whole episode, with
its parts as terms; an episode that a limit cut is told that nothing more will be said, and is scored as it stands; what
the library raises is an `EnvFailure`. Nothing is executed: an environment that needs a container, a runtime or tool
servers of its own, or several agents, is refused with the recipe.
"""

import asyncio
import functools
import importlib
import itertools
import json
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from inspect import Parameter, signature
from typing import Any, Literal, NamedTuple

from longstride.adapters.foreign import bounded, guarded, number, raised
from longstride.adapters.seeded import REWARD, TERMS
from longstride.core.errors import ConfigError, EnvFailure, require, short
from longstride.core.numbers import Count, Share
from longstride.core.seeds import derive
from longstride.core.task import Task, split_of
from longstride.envs.base import Observation, Step, TaskSource
from longstride.envs.text import MARK
from longstride.envs.tools import Call, Manual, Tool, parse

Ask = Callable[[str], Awaitable[str | None]]
"""What was said since the last reply, to the next one; None where nothing more will be said."""
MODEL = "policy"
"""What the library is told that the model is called."""


class Scores(NamedTuple):
    """What the library gives an episode."""

    reward: float
    terms: dict[str, float]


class World(ABC):
    """An environment of the library, and its rows."""

    prompts: list[str]
    """What each row begins with, as text."""

    @property
    def evaluation(self) -> "World | None":
        """Its own evaluation data, where it has some."""
        return None

    @abstractmethod
    async def play(self, row: int, ask: Ask) -> Scores:
        """Plays a row to its end. Raises whatever the library raises."""


class Verifiers(TaskSource):
    """An environment of the verifiers library."""

    id: str
    """Its name, as the library finds it: an installed module, or one on Python's path."""
    args: dict[str, Any] = {}
    """What it is made with: arguments of `load_environment`, or settings of the taskset."""
    test_args: dict[str, Any] | None = None
    """What the environment of evaluation tasks is made with, such as `{split = "test"}`. Left out: the evaluation data
    of an environment that has some, and otherwise a share of the rows."""
    test_share: Share = 0.1
    """Share of the prompts that are held out then."""
    rows: Count = 1000
    """Rows that are read of a taskset, which may go on for ever."""

    @property
    def at_once(self) -> int:
        return 64

    def sample(self, rng: random.Random, n: int) -> list[Task]:
        return rng.choices(self._of("train"), k=n)

    def held_out(self, n: int) -> list[Task]:
        return self._of("test")[:n]

    def env(self) -> "VerifiersEnv":
        return VerifiersEnv(self)

    @functools.cached_property
    def worlds(self) -> dict[bool, World]:
        """The environment of evaluation tasks (True) and that of the others; the same one where a share is held out.

        Raises:
            ConfigError: there is none of that name, it cannot be made, or needs what is not to be had here.
            MissingExtra: verifiers is not installed.
        """
        require("verifiers", "verifiers")
        try:
            with guarded(f"making the environment {self.id!r} with {short(self.args)}"):
                train = _open(self.id, self.args, self.rows)
                test = train.evaluation or train
            if self.test_args is not None:
                with guarded(f"making the environment {self.id!r} with {short(self.test_args)}"):
                    test = _open(self.id, self.test_args, self.rows)
        except EnvFailure as e:
            raise ConfigError(f"tasks: {e}") from e
        return {False: train, True: test}

    @functools.cached_property
    def _tasks(self) -> dict[str, list[Task]]:
        train, test = self.worlds[False], self.worlds[True]
        tasks = [self._task(prompt, row, False) for row, prompt in enumerate(train.prompts)]
        held = [self._task(prompt, row, True) for row, prompt in enumerate(test.prompts)]
        if train is test:
            held = [task for task in held if split_of(task, self.test_share, 0) == "test"]
            tasks = [task for task in tasks if split_of(task, self.test_share, 0) == "train"]
        return {"train": tasks, "test": held}

    def _of(self, split: Literal["train", "test"]) -> list[Task]:
        if not self._tasks[split]:
            raise ConfigError(f"tasks: {self.id!r} has no rows for {split}ing; set tasks.test_share or tasks.test_args")
        return self._tasks[split]

    def _task(self, prompt: str, row: int, test: bool) -> Task:
        split = "test" if test else "train"
        return Task(
            id=f"verifiers/{self.id}/{split}/{row}", source=f"verifiers/{self.id}", split=split, goal=prompt,
            start=str(row), template_id=f"{derive(0, prompt):016x}", meta={"row": row, "test": test},
        )  # fmt: skip


class VerifiersEnv:
    """One episode: the library's loop, which waits for the policy's turns."""

    def __init__(self, source: Verifiers) -> None:
        self._source = source
        self._name = f"the environment {source.id!r}"
        self._questions: asyncio.Queue[str] = asyncio.Queue()
        self._replies: asyncio.Queue[str | None] = asyncio.Queue()
        self._play: asyncio.Task[Scores] | None = None

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the library's loop. Raises: EnvFailure when it ends without a question."""
        world = self._source.worlds[task.meta["test"]]
        self._play = asyncio.create_task(world.play(task.meta["row"], self._ask))
        goal = await self._next()
        if goal is None:
            raise EnvFailure(f"{self._name} ended before it asked anything")
        return Observation("", goal=goal)

    async def step(self, text: str) -> Step:
        """Gives the library the policy's text. Raises: EnvFailure when it raises."""
        self._replies.put_nowait(text)
        said = await self._next()
        action = f"say {' '.join(text.split())[:200]}"
        return Step(Observation(said or ""), terminated=said is None, action=action)

    async def final_state(self) -> dict[str, Any]:
        """The library's reward and its terms. Raises: EnvFailure when scoring raises."""
        if self._play is None:
            return {}
        self._replies.put_nowait(None)
        with guarded(self._name):
            scores = await self._play
            reward = number(scores.reward, f"the reward of {self._name}")
            terms = {name: number(value, f"{name!r} of {self._name}") for name, value in scores.terms.items()}
        return {REWARD: reward, TERMS: terms}

    async def close(self) -> None:
        """Ends the library's loop."""
        play, self._play = self._play, None
        if play is not None:
            play.cancel()
            await asyncio.wait({play})
            if not play.cancelled():
                play.exception()  # looked at, so that asyncio does not report it

    async def _ask(self, said: str) -> str | None:
        self._questions.put_nowait(bounded(said))
        return await self._replies.get()

    async def _next(self) -> str | None:
        """What is said next; None where the loop has ended."""
        assert self._play is not None
        question = asyncio.create_task(self._questions.get())
        try:
            await asyncio.wait({question, self._play}, return_when=asyncio.FIRST_COMPLETED)
            if question.done():
                return question.result()
        finally:
            question.cancel()
        with guarded(self._name):
            self._play.result()
        return None


def _open(id: str, args: dict[str, Any], rows: int) -> World:
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


class TasksetWorld(World):
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


class RubricWorld(World):
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
        state = await self._env.rollout(dict(self._rows[row]), _policy(ask), MODEL, {})
        if (error := state.get("error")) is not None:
            raise EnvFailure(f"the library gave up: {raised(error)}") from error
        await self._env.rubric.score_rollout(state)
        await self._env.rubric.cleanup(state)
        return Scores(state["reward"], dict(state["metrics"]))


def _policy(ask: Ask) -> Any:
    """A client of the library whose replies are the policy's."""
    vf = require("verifiers", "verifiers")
    types = require("verifiers.types", "verifiers")

    class Policy(vf.OpenAIChatCompletionsClient):
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

    return Policy(None)


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
