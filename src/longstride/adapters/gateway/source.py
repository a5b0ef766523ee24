"""A program that calls a chat API, as the environment of an episode: what it asks is what is seen, and what the policy
samples is what it is answered.

What always holds: budget, stop reasons, seeds, retries and strategies are those of every other environment, for the
loop is the same; a request that continues what was said continues its ids, and each one that does not has a name
(`Turn.fork`); the program learns nothing of what judges it.

| what the program does | what becomes of the episode |
|---|---|
| ends by itself with status 0 and a result | it is over (`env_ended`, `answered`), with that result |
| ends with status 0 and no result, or one that is none | failed: nobody knows what it was worth |
| ends with another status, is killed, breaks a limit, never asks, asks nothing for `deadline` seconds | failed |
| asks with another key, after its end, or what does not fit | is refused (401, 410, 400), and goes on; failed after 100 requests that do not fit |
| asks on when a budget is spent | is refused (429, `budget_exhausted`), has `grace` seconds to end, and is ended then; the result that it gave by then counts, and 0 where it gave none, however it ended |
"""  # noqa: E501 (a table)

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from longstride.adapters.gateway.agents import AgentProgram, Job, Running, new_folder
from longstride.adapters.gateway.history import Conversations
from longstride.adapters.gateway.server import BUDGET, MAX_RESPONSES, EpisodeLine, server
from longstride.adapters.gateway.wire import (
    RefusedRequest,
    ToolUse,
    WireAnswer,
    WireMessage,
    WireRequest,
    called,
    wrong,
)
from longstride.adapters.seeded import REWARD, SUCCESS, TERMS
from longstride.core.errors import EnvFailure, short
from longstride.core.foreign import UnreadableError, flag, left_behind, number, read_json
from longstride.core.numbers import Positive
from longstride.core.processes import remove
from longstride.core.task import Task
from longstride.envs.acting import Actions
from longstride.envs.base import HELD_ANSWER, Observation, OtherTasks, Step, TaskSource
from longstride.envs.requests import ChatRequest
from longstride.envs.text import MARK, said
from longstride.envs.tools import Manual, read_calls, read_words

MAX_RESULT = 1 << 16
"""Bytes of a result that are read from a file."""
RESULT = "result.json"
"""The file of a result, in the program's folder."""
FINAL = ("answer", "final_answer", "final_result")
"""Tools whose call ends what a program does: of many programs, of smolagents, of pydantic-ai."""


class ChatGateway(OtherTasks):
    """Tasks that a program does, which asks the policy through a chat API; it goes with `context.type=as_requested`."""

    agent: AgentProgram
    """Who asks."""
    tasks: TaskSource
    """What it is asked to do; of these tasks the environment is not used."""
    gives: tuple[str, ...] = ()
    """Keys of a task's `meta` that the agent sees; of what judges it, it sees nothing."""
    result: Literal["last_line", "file", "verifier", "answer"] = "last_line"
    """What says what an episode was worth: the last line of the program's output (of a function what it returns), or
    the file `result.json` in its folder: a number, or an object with `reward` and perhaps `success`, `terms` and
    `answer`. With these, `reward.type` is `environment_reward`. `verifier`: the last line of another agent, which is
    started after it. `answer`: the last line is an answer, and the recipe's reward judges it."""
    verifier: AgentProgram | None = None
    """With `result=verifier`: it finds the folder, and the task with what judges it. What else is in the folder is the
    agent's: a Python that begins there imports no module of it with `-P`."""
    calls: Actions = "tool_calls"
    """How the model calls the tools that a request offers: as its chat template presents them (`tool_calls`), in words
    that are explained in the first message (`explained`), or in words that it knows (`text`):
    `Action: NAME {"argument": ...}`, or the name and the arguments in their order."""
    final_tools: tuple[str, ...] = FINAL
    """Tools whose call is an answer."""
    deadline: Positive = 50.0
    """Seconds that the program has from an answer to its next request or its end; below `pool.step_deadline`."""
    grace: Positive = 5.0
    """Seconds that it has for its end when a budget is spent."""
    when_over: Literal["refuse", "last_message"] = "refuse"
    """What it is answered when a budget is spent: status 429 with the type `budget_exhausted`; or first one message,
    which `last_message` has, and then that."""
    last_message: str = "the budget is spent"
    when_cut: Literal["length", "stop"] = "length"
    """What a program is told of a reply that `budget.turn_tokens` or its own limit cut: `length`, as its API says it
    (`finish_reason` of chat completions, status `incomplete` of responses, `stop_reason=max_tokens` of messages); or
    `stop`, as if it were whole, for programs that end with an error where a reply was cut."""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Where the gateway listens on this machine; 0 takes a free port."""

    @model_validator(mode="after")
    def _has_its_verifier(self) -> "ChatGateway":
        if (self.result == "verifier") != (self.verifier is not None):
            raise ValueError("result=verifier goes with a verifier, and a verifier with result=verifier")
        return self

    @property
    def says_worth(self) -> bool:
        return self.result != "answer"

    @property
    def at_once(self) -> int:
        return self.agent.at_once

    def env(self) -> "ProgramEnv":
        return ProgramEnv(self)


class ProgramEnv:
    """One episode: an agent, from its first request to its end."""

    def __init__(self, source: ChatGateway) -> None:
        self._source = source
        self._line: EpisodeLine | None = None
        self._running: Running | None = None
        self._ended: asyncio.Task[Any] | None = None
        self._folder: Path | None = None
        self._heard = Conversations()
        self._responses: dict[str, tuple[WireMessage, ...]] = {}
        self._result: dict[str, Any] | None = None
        self._turns, self._checks, self._paragraph, self._keep = 0, 0, "", False
        self._counted: tuple[tuple[int, ...], tuple[float, ...], int, str] = ((), (), 0, "stop")
        self._pending: tuple[WireRequest, Future[WireAnswer | RefusedRequest]] | None = None

    def ask_again(self, times: int, paragraph: str, keep: bool) -> None:
        """Holds back so many answers; see `envs.base.AskingAgain`."""
        self._checks, self._paragraph, self._keep = times, paragraph, keep

    async def reset(self, task: Task, seed: int) -> Observation:
        """Starts the agent and waits for its first request. Raises: EnvFailure when none comes."""
        self._task, self._seed = task, seed
        self._line, self._folder = server(self._source.port).open(), new_folder()
        kept = {name: task.meta[name] for name in self._source.gives if name in task.meta}
        hidden = {"evaluator": {}, "meta": kept, "pages": (), "optimal": None, "template_id": ""}
        address, key = server(self._source.port).address, self._line.key
        job = Job(task.model_copy(update=hidden), seed, address, key, self._folder)
        self._running = await self._source.agent.start(job)
        self._ended = asyncio.create_task(self._running.ended())
        first = await self._next()
        if first is None:
            raise EnvFailure(f"{self._running.name} ended and asked nothing of the model")
        return first

    def sampled(self, ids: list[int], logprobs: list[float], read: int, finish: str) -> None:
        """Takes down how the turn that comes was sampled."""
        self._counted = tuple(ids), tuple(logprobs), read, finish

    async def step(self, text: str) -> Step:
        """Answers the request that is open, and waits for the next one or the end. Raises: EnvFailure."""
        assert self._pending is not None
        asked, future = self._pending
        turn, self._turns = self._turns, self._turns + 1
        answer = self._answer(text, asked, turn)
        action, final = self._action(text, answer, asked)
        if final and self._checks > 0:
            self._checks -= 1
            info = {HELD_ANSWER: answer.text} if self._keep else {}
            again = ChatRequest("user", follows=turn, tools=self._presented(asked), most=asked.most)
            return Step(Observation(self._paragraph, request=again), action=action, info=info)
        self._heard.answered(asked, answer.said, turn, self._shown(asked))
        if len(self._responses) < MAX_RESPONSES:
            self._responses[f"resp_{answer.id}"] = (*asked.messages, answer.said)
        self._pending = None
        future.set_result(answer)
        seen = await self._next()
        if seen is not None:
            return Step(seen, action=action)
        assert self._result is not None
        return Step(Observation("(the program ended)"), terminated=True, action=action, answer=self._result["answer"])

    async def outlasted(self) -> str | None:
        """Tells the program that a budget is spent, and gives it `grace` seconds: the answer that it gave by then."""
        if self._result is None:
            self._result = await self._result_after_the_budget()
        return self._result["answer"] if self._source.result == "answer" else None

    async def final_state(self) -> dict[str, Any]:
        """What the program gave the whole episode, as `EnvironmentReward` reads it."""
        await self.outlasted()
        assert self._result is not None
        return {key: value for key, value in self._result.items() if key != "answer" and value is not None}

    async def close(self) -> None:
        """Ends the agent; its folder is gone."""
        line, self._line = self._line, None
        if line is not None:
            server(self._source.port).close(line)
        try:
            if self._ended is not None:
                self._ended.cancel()
            if self._running is not None:
                await self._running.stop()
        finally:
            if self._folder is not None:
                with suppress(OSError):
                    remove(self._folder)

    # what comes

    async def _next(self) -> Observation | None:
        """The next request; None where the agent has ended, and its result is there."""
        assert self._line is not None and self._running is not None and self._ended is not None
        while True:
            came = asyncio.create_task(self._line.asked())
            try:
                async with asyncio.timeout(self._source.deadline):
                    await asyncio.wait({came, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            except TimeoutError:
                where = f"after turn {self._turns}" if self._turns else "since its start"
                seconds = self._source.deadline
                raise EnvFailure(
                    f"{self._running.name} asked nothing for {seconds:g} s {where}, and did not end"
                ) from None
            finally:
                if not came.done():
                    came.cancel()
            if self._ended.done():
                if self._turns:
                    self._result = await self._result_of(self._ended.result())
                else:
                    self._ended.result()
                return None
            self._pending = came.result()
            try:
                return self._observed()
            except RefusedRequest as e:
                self._pending[1].set_result(e)

    def _observed(self) -> Observation:
        """The open request as it is seen. Raises: RefusedRequest."""
        assert self._pending is not None
        asked, future = self._pending
        if asked.before:
            if asked.before not in self._responses:
                raise wrong(f"previous_response_id: there is no response {short(asked.before)} in this episode")
            asked = replace(asked, messages=self._responses[asked.before] + asked.messages, before="")
            self._pending = asked, future
        if asked.messages[-1].role == "assistant":
            raise wrong("the last message is the assistant's; expected one that it can answer")
        told = self._told(asked)
        request = self._heard.heard(asked, told, self._presented(asked), self._shown(asked))
        return Observation(told[-1].text, request=request)

    def _presented(self, asked: WireRequest) -> tuple[Any, ...]:
        return asked.tools if self._source.calls == "tool_calls" else ()

    def _shown(self, asked: WireRequest) -> str:
        """What of the tools stands in a prompt."""
        return "" if self._source.calls == "text" else json.dumps([tool.function for tool in asked.tools])

    def _told(self, asked: WireRequest) -> list[WireMessage]:
        """The messages as they are read: calls in words, and tools explained where they are."""
        told = [
            WireMessage(m.role, "\n".join(filter(None, (m.text, *map(self._call, m.calls))))) for m in asked.messages
        ]
        if self._source.calls == "explained" and asked.tools:
            told[0] = WireMessage(told[0].role, f"{told[0].text}\n{Manual(asked.tools)}")
        return told

    def _call(self, call: ToolUse) -> str:
        if self._source.calls != "tool_calls":
            return f"{MARK} {call.name} {call.arguments}"
        written = json.dumps({"name": call.name, "arguments": call.arguments}).replace("<", "\\u003c")
        return f"<tool_call>{written}</tool_call>"

    # what is answered

    def _answer(self, text: str, asked: WireRequest, turn: int) -> WireAnswer:
        tools = {tool.name: tool for tool in asked.tools}
        if not tools:
            words, made = text, []
        elif self._source.calls == "tool_calls":
            words, made = read_calls(text)
        else:
            words, made = read_words(text, tools)
        for stop in asked.stop:
            words = words.partition(stop)[0]
        calls = tuple(called(name, given, f"call_{turn:04d}_{k}") for k, (name, given) in enumerate(made))
        ids, logprobs, read, finish = self._counted
        cut = finish == "length" == self._source.when_cut
        return WireAnswer(f"{turn:04d}", words.strip(), calls, cut, read, ids, logprobs)

    def _action(self, text: str, answer: WireAnswer, asked: WireRequest) -> tuple[str, bool]:
        """What a turn does, in one line, and whether it would end what the program does."""
        if answer.calls:
            names = [call.name for call in answer.calls]
            final = any(name in self._source.final_tools for name in names)
            line = "; ".join(f"{call.name} {call.arguments}" for call in answer.calls)
            return _line(f"answer {line}" if final else line), final
        if asked.tools:
            return _line(f"answer {answer.text}"), True
        line = said(text) if MARK in text else f"reply {answer.text}"
        return _line(line), line.partition(" ")[0] == "answer"

    # what it was worth

    async def _result_of(self, last: Any) -> dict[str, Any]:
        """What an episode came to. Raises: EnvFailure where that is not said."""
        assert self._folder is not None and self._running is not None
        how, who = self._source.result, self._running.name
        if how == "file":
            last, who = await asyncio.to_thread(_read, self._folder / RESULT, who), f"{RESULT} of {who}"
        elif self._source.verifier is not None:
            running = await self._source.verifier.start(Job(self._task, self._seed, "", "", self._folder))
            who = running.name
            try:
                last = await running.ended()
            finally:
                await running.stop()
        return _answered(last, who) if how == "answer" else _rewarded(last, who)

    async def _result_after_the_budget(self) -> dict[str, Any]:
        """What the agent says after it was told that a budget is spent; nothing where it says nothing."""
        nothing = {REWARD: 0.0, SUCCESS: None, TERMS: None, "answer": None}
        if self._line is None or self._ended is None or self._running is None:
            return nothing
        if self._pending is not None and self._source.when_over == "last_message":
            self._pending[1].set_result(WireAnswer("over", self._source.last_message))
        self._line.end(BUDGET)
        await asyncio.wait({self._ended}, timeout=self._source.grace)
        if not self._ended.done():
            await self._running.stop()
        elif not self._ended.cancelled() and self._ended.exception() is None:
            with suppress(EnvFailure):
                return await self._result_of(self._ended.result())
        if self._source.result == "verifier":  # what it left behind is judged, however it ended
            return await self._result_of(None)
        with suppress(EnvFailure):
            if self._source.result == "file":
                return await self._result_of(None)
        return nothing


def _answered(last: Any, who: str) -> dict[str, Any]:
    if isinstance(last, Mapping):  # what nobody here starts reports an object, and perhaps no answer
        last = last.get("answer")
        answer = None if last is None else str(last).strip()
    elif isinstance(last, str) and last.strip():
        answer = last.strip()
    else:
        raise EnvFailure(f"{who} ended without an answer: expected it as the last line of its output")
    return {REWARD: None, SUCCESS: None, TERMS: None, "answer": answer}


def _rewarded(last: Any, who: str) -> dict[str, Any]:
    """A result: a number, or an object; as it is, or in JSON."""
    found = last
    if isinstance(last, str):
        try:
            found = read_json(last)
        except UnreadableError:
            found = last
    if not isinstance(found, Mapping):
        found = {"reward": found}
    if isinstance(found.get("reward"), str | None) or isinstance(found["reward"], bool):
        raise EnvFailure(
            f"{who} gave no reward: expected a number, or an object with a reward, as its result, got {short(last)}"
        )
    terms, answer, success = found.get("terms") or {}, found.get("answer"), found.get("success")
    if not isinstance(terms, Mapping):
        raise EnvFailure(f"{who}: expected the reward's terms by name, got {short(terms)}")
    return {
        REWARD: number(found["reward"], f"the reward of {who}"),
        SUCCESS: None if success is None else flag(success, f"the success of {who}"),
        TERMS: {str(name): number(value, f"{name} of {who}") for name, value in terms.items()} or None,
        "answer": None if answer is None else str(answer),
    }


def _read(path: Path, who: str) -> str:
    try:
        data = left_behind(path, MAX_RESULT + 1)
    except OSError as e:
        raise EnvFailure(f"{who} left no {path.name} that can be read: {e.strerror or e}") from None
    if len(data) > MAX_RESULT:
        raise EnvFailure(f"{who} left a {path.name} of more than {MAX_RESULT} bytes")
    return data.decode(errors="replace")


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
