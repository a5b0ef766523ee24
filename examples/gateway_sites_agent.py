"""An agent on the embedded sites that knows nothing of a training loop: it has the package `openai`, an address and a
key, reads a page, asks what to do, does it, and prints its answer."""

import asyncio
import os
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI

from longstride.adapters.gateway.agents import Job
from longstride.core.task import Task
from longstride.envs.sites import application
from longstride.envs.sites.env import WebEnv


async def browse(client: AsyncOpenAI, task: Task, seed: int) -> str:
    """The answer."""
    site = WebEnv(application(), 60)
    page = await site.reset(task, seed)
    messages: list[Any] = [{"role": "user", "content": f"{task.goal}\n{page.text}"}]
    while True:
        reply = await client.chat.completions.create(model="policy", messages=messages)
        said = reply.choices[0].message.content or ""
        step = await site.step(said)
        if step.terminated:
            return step.answer or "none"
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": step.observation.text}]


async def play(job: Job) -> str:
    """As a function of the process that trains."""
    async with AsyncOpenAI(base_url=job.url, api_key=job.key) as client:
        return await browse(client, job.task, job.seed)


async def main() -> str:
    """As a program: address, key, task and seed stand in its environment."""
    task = Task.model_validate_json(Path(os.environ["LONGSTRIDE_TASK"]).read_text())
    async with AsyncOpenAI() as client:
        return await browse(client, task, int(os.environ["LONGSTRIDE_SEED"]))


if __name__ == "__main__":
    print(asyncio.run(main()))
