"""Programs that ask a gateway: as functions of the tests, with nothing but the standard library."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from longstride.adapters.gateway.agents import Function, Job
from longstride.adapters.gateway.source import ChatGateway
from longstride.adapters.seeded import EnvironmentReward
from longstride.core.budget import Budget
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.sites import application
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.rewards import Reward
from longstride.rollout import Episode, Generation, Plan, Pool, PoolConfig, ScriptedPlayer

WAIT = 300
SUM = Task(id="sum", source="sums", goal="add 1 and 2", start="", evaluator={"type": "answer", "reference": "3"})


class Refused(Exception):
    """A status that is not 200."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


def post(job: Job, path: str, body: Any, key: str | None = None) -> Any:
    """What a path answers: JSON, or the lines of a stream."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {job.key if key is None else key}", "content-type": "application/json"}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(f"{job.address}{path}", data, headers), timeout=WAIT
        ) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as e:
        raise Refused(e.code, json.loads(e.read())) from None
    return json.loads(text) if text.startswith("{") else text.split("\n\n")


def chat(job: Job, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A turn of chat completions: its message."""
    return post(job, "/v1/chat/completions", {"model": "any", "messages": messages, **more})["choices"][0]["message"]


def browse(job: Job) -> str:
    """The embedded sites, played as the native loop plays them."""
    return asyncio.run(_browse(job))


async def _browse(job: Job) -> str:
    env = WebEnv(application(), 60)
    seen = await env.reset(job.task, job.seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"{job.task.goal}\n{seen.text}"}]
    try:
        while True:
            said = (await asyncio.to_thread(chat, job, messages))["content"] or ""
            step = await env.step(said)
            if step.terminated:
                return step.answer or "none"
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": step.observation.text}]
    finally:
        await env.close()


def function(play: Callable[[Job], Any], **fields: Any) -> ChatGateway:
    """A function that stands in a test: found by a name of its own."""
    globals()[play.__name__] = play
    return ChatGateway(agent=Function(function=f"gateway_programs:{play.__name__}"), tasks=EmbeddedWeb(), **fields)


def episodes(
    source: ChatGateway,
    says: Callable[[Episode], str | Generation],
    n: int = 1,
    reward: Reward | None = None,
    **budget: Any,
) -> list[Trajectory]:
    """Episodes of a source, in which a function speaks."""
    plans = [Plan(SUM, k, 7, Budget(**{"turns": 5} | budget)) for k in range(n)]
    return Pool(ScriptedPlayer(says), source.env, reward or EnvironmentReward(), n, PoolConfig(retries=0)).run(plans)
