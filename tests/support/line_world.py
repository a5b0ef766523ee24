"""A walk on a line, an engine that samples words by the request's seed alone, and plans on them: for tests of episodes
and of whoever plays them."""

import random
from collections.abc import Callable
from typing import Any, cast

from helpers import word_chat

from longstride.core.budget import Budget
from longstride.core.errors import EngineFailure
from longstride.core.seeds import derive
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.engines.base import Completion, Request, Sampling
from longstride.envs.base import Env, Observation, Step
from longstride.rewards import Reward, TaskReward
from longstride.rollout import (
    ContextPolicy,
    LanguagePlayer,
    Plan,
    Player,
    Pool,
    PoolConfig,
    RecentObservations,
    ScriptedPlayer,
)

CHAT = word_chat(
    "at bye over g go north south answer red blue nonsense omitted x y z of turns tokens left", *map(str, range(100))
)
(END,) = CHAT.close
RED = {"type": "answer", "reference": "red"}


def ids(text: str) -> list[int]:
    """The ids of words, without an end token."""
    return CHAT.encode(text)


class LineEngine:
    """Says where to go, nonsense, or at times `answer red`."""

    version = 7
    parts = 1

    def __init__(self, fail: int = 0, finish: str = "") -> None:
        self.fail, self.finish = fail, finish
        self.released: list[Any] = []
        self.requests: list[Request] = []
        self.sizes: list[int] = []
        """Of every poll, how many were asked."""
        self._waiting: list[tuple[int, Request]] = []

    def submit(self, request: Request) -> int:
        self._waiting.append((len(self.requests), request))
        self.requests.append(request)
        return self._waiting[-1][0]

    def poll(self) -> list[tuple[int, Completion | EngineFailure]]:
        waiting, self._waiting = self._waiting, []
        self.sizes.append(len(waiting))
        if self.fail:
            self.fail -= 1
            return [(ticket, EngineFailure("server gone")) for ticket, _ in waiting]
        return [(ticket, self._complete(request)) for ticket, request in waiting]

    def _complete(self, request: Request) -> Completion:
        if self.finish == "context":
            return Completion([], [], [], "context")
        rng = random.Random(request.seed)
        text = "answer red" if rng.random() < 0.2 else rng.choice(["go north", "go south", "nonsense"])
        sampled: list[int] = []
        for i in [*ids(text), END][: request.max_new]:
            sampled.append(i)
            if request.stopped(sampled):
                break
        stopped = sampled[-1] == END or request.stopped(sampled)
        return Completion(
            sampled, [-0.5] * len(sampled), [self.version] * len(sampled), "stop" if stopped else "length"
        )

    def release(self, session: int | None) -> None:
        self.released.append(session)


class Line:
    """Walks a line; `answer x` answers. What else a task's `meta` asks for: `ends_at` (a turn that ends the episode as
    `last` says), `must_answer` (whatever is no answer ends it), `speakers` (who speaks, in turn).

    Args:
        trouble: is given the task and the turn (0 is the reset) and awaited before each.
        last: fields of the step that ends the episode.
    """

    opened: list["Line"] = []
    """All that were made in a test."""

    def __init__(self, trouble: Callable[[Task, int], Any] | None = None, **last: Any) -> None:
        self.trouble, self.last, self.turn, self.closed, self.state_asked = trouble, last, 0, 0, False
        Line.opened.append(self)

    async def reset(self, task: Task, seed: int) -> Observation:
        self.task, self.at, self.env_seed = task, seed % 5, seed
        if self.trouble:
            await self.trouble(task, 0)
        return self._seen("/start")

    async def step(self, text: str) -> Step:
        self.turn += 1
        if self.trouble:
            await self.trouble(self.task, self.turn)
        if text.startswith("answer "):
            return Step(Observation("bye"), terminated=True, action=text, answer=text[7:])
        known = text in ("go north", "go south")
        if self.task.meta.get("must_answer"):
            return Step(Observation("over"), terminated=True, action=text if known else None)
        self.at += {"go north": 1, "go south": -1}.get(text, 0)
        if self.turn == self.task.meta.get("ends_at"):
            return Step(Observation("over"), action=text, **self.last)
        return Step(self._seen(f"/{self.at}"), action=text if known else None)

    def _seen(self, url: str) -> Observation:
        speakers = self.task.meta.get("speakers", [""])
        return Observation(f"at {self.at}", url, speaker=speakers[self.turn % len(speakers)])

    async def final_state(self) -> dict[str, Any]:
        self.state_asked = True
        return {"at": self.at}

    async def close(self) -> None:
        self.closed += 1


def plan(
    ordinal: int = 0,
    turns: int = 5,
    seed: int | None = None,
    evaluator: Any = RED,
    task: Task | None = None,
    budget: dict[str, Any] | None = None,
    **fields: Any,
) -> Plan:
    """A plan of a walk, with limits of its budget besides the turns, and further fields of `Plan`."""
    task = task or Task(id=f"t{ordinal}", source="line", goal="g", start="", evaluator=evaluator)
    seed = derive(0, ordinal) if seed is None else seed
    return Plan(task, ordinal, seed, Budget(turns=turns, **(budget or {})), **fields)


def walk(**meta: Any) -> Task:
    """A task of the line without an evaluator but for `answer red`."""
    return Task(id="t", source="line", goal="g", start="", evaluator=RED, meta=meta)


def script(*texts: str) -> ScriptedPlayer:
    """Says one text after the other, the last one for ever."""
    return ScriptedPlayer(lambda e: texts[min(e.turns, len(texts) - 1)])


def language(engine: Any = None, context: ContextPolicy | None = None) -> LanguagePlayer:
    """A player that says what the engine samples."""
    return LanguagePlayer(cast(Any, engine or LineEngine()), CHAT, context or RecentObservations(), Sampling())


def play(
    player: Player,
    *plans: Plan,
    env: Callable[[], Env] = Line,
    batch: int = 512,
    reward: Reward | None = None,
    **pool: Any,
) -> list[Trajectory]:
    """The episodes of plans, in a pool of their own."""
    return Pool(player, env, reward or TaskReward(), batch, PoolConfig(**pool)).run(plans)
