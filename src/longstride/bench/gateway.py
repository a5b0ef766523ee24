"""What a turn costs when a program asks for it through the gateway, beside a turn of the native loop; and how many
requests a second pass, beside rLLM's gateway.

What always holds: the loops play the same tasks with the same policy and seeds, and sample the same ids (a difference
ends the benchmark), and no request of either gateway is lost (that ends it too). The program is a function of this
process with `httpx2`, so its own time is that of a small client.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2

from longstride.adapters.gateway.agents import Function, Job
from longstride.adapters.gateway.source import ChatGateway
from longstride.adapters.seeded import EnvironmentReward
from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.bench.peers import Peer, installed
from longstride.core.budget import Budget
from longstride.core.errors import ConfigError, RunError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.sites import application
from longstride.envs.sites.env import WebEnv
from longstride.envs.sites.tasks import EmbeddedWeb
from longstride.models.load import Policy, load_policy
from longstride.papers.tti import recipe as tti
from longstride.rollout import AsRequested, FullHistory, Plan, Pool, ScriptedPlayer
from longstride.run.evaluation import evaluate_policy
from longstride.run.recipe import Recipe

EPISODES, TURNS = 64, 8
SITES = EmbeddedWeb(errands=("find", "search", "compare", "survey", "hop"))
WIDE = 64
"""Episodes that ask at once where nothing but the gateway works."""
CHAT = "/v1/chat/completions"
RLLM = "rllm-model-gateway"
PEER_SECONDS = 600.0
"""That a round of the peer may take."""
HOW_TO_MAKE_PEER = """  python -m venv rllm-peer
  rllm-peer/bin/pip install rllm-model-gateway
  longstride bench gateway --peer rllm-peer/bin/python"""


async def browse(job: Job) -> str:
    """Plays on the embedded sites as the native loop does."""
    site = WebEnv(application(), SITES.window)
    page = await site.reset(job.task, job.seed)
    messages = [{"role": "user", "content": f"{job.task.goal}\n{page.text}"}]
    async with _client(job) as client:
        while True:
            said = await _asked(client, messages)
            step = await site.step(said)
            if step.terminated:
                return step.answer or "none"
            messages += [
                {"role": "assistant", "content": said},
                {"role": "user", "content": step.observation.text},
            ]


async def echo(job: Job) -> float:
    """Asks `TURNS` times and does nothing else."""
    messages = [{"role": "user", "content": "go"}]
    async with _client(job) as client:
        for _ in range(TURNS):
            said = await _asked(client, messages)
            messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "go on"}]
    return 1.0


def _client(job: Job) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=job.address, headers={"authorization": f"Bearer {job.key}"}, timeout=600)


async def _asked(client: httpx2.AsyncClient, messages: list[dict[str, str]]) -> str:
    came = await client.post(CHAT, json={"messages": messages})
    if came.status_code != 200:
        raise asyncio.CancelledError  # the budget is spent
    return came.json()["choices"][0]["message"]["content"] or ""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; `peer` is the Python of an environment with rLLM's gateway, or None.

    Raises:
        ConfigError: the peer's Python cannot be run, or has no such gateway.
        RunError: the two loops sampled different ids, requests were lost, or the peer failed.
    """
    if peer is not None and installed(peer, RLLM) is None:
        raise ConfigError(f"--peer {peer} has no {RLLM}; make it:\n{HOW_TO_MAKE_PEER}")
    base = tti.RECIPE.replace(
        tasks=SITES, context=FullHistory(), test_budget={"turns": TURNS}, evaluation={"tasks": EPISODES}
    )
    agent = Function(function=f"{__name__}:browse", at_once=EPISODES)
    asked = base.replace(
        tasks=ChatGateway(agent=agent, tasks=SITES, result="answer", calls="text"), context=AsRequested()
    )
    policy = load_policy("base")
    ids: dict[str, Any] = {}
    versions = {"httpx2": httpx2.__version__}

    def side(name: str, recipe: Recipe) -> Mapping[str, float]:
        seconds, played = _played(policy, recipe)
        ids[name] = [turn.sampled_ids for t in played for turn in t.turns]
        if len(ids) == 2 and ids["native"] != ids["gateway"]:
            raise RunError("the gateway did not sample what the native loop sampled; nothing was measured")
        return {"ms": 1000 * seconds / len(ids[name])}

    sides = {"native": lambda _: side("native", base), "gateway": lambda _: side("gateway", asked)}
    seen = in_turn(sides, rounds, progress)
    native, through = seen["native"]["ms"], seen["gateway"]["ms"]
    return [
        Quantity("a turn on the embedded sites", "ms", through, native, "the native loop"),
        Quantity("what the gateway adds to a turn", "ms", through - native),
        _passing(peer, rounds, progress, versions),
    ], versions


def _played(policy: Policy, recipe: Recipe) -> tuple[float, list[Trajectory]]:
    began = time.perf_counter()
    found = evaluate_policy(policy, recipe).trajectories
    return time.perf_counter() - began, found


def _passing(peer: str | None, rounds: int, progress: Progress, versions: dict[str, str]) -> Quantity:
    """How many requests a second pass."""
    sides: dict[str, Callable[[int], Mapping[str, float]]] = {"gateway alone": lambda _: {"rate": _rate()}}
    with ExitStack() as stack:
        if peer is not None:
            rllm = stack.enter_context(Peer(peer, Path(__file__).with_name("rllm_peer.py")))
            sides[RLLM] = lambda _: {"rate": _peer_rate(rllm, versions)}
        seen = in_turn(sides, rounds, progress)
    name = f"requests a second of {WIDE} episodes at once, nothing sampled"
    ours = seen.pop("gateway alone")["rate"]
    theirs, against = (seen[RLLM]["rate"], f"{RLLM} {versions[RLLM]}") if seen else (None, "")
    return Quantity(name, "", ours, theirs, against, higher_is_better=True)


def _rate() -> float:
    """Requests a second of programs that only ask, answered by a script."""
    source = ChatGateway(agent=Function(function=f"{__name__}:echo", at_once=WIDE), tasks=SITES)
    task = Task(id="echo", source="echo", goal="go", start="")
    plans = [Plan(task, k, 0, Budget(turns=TURNS + 1)) for k in range(WIDE)]
    began = time.perf_counter()
    found = Pool(ScriptedPlayer(lambda _: "yes"), source.env, EnvironmentReward(), WIDE).run(plans)
    if sum(t.length for t in found) != WIDE * TURNS:
        raise RunError("turns were lost; nothing was measured")
    return WIDE * TURNS / (time.perf_counter() - began)


def _peer_rate(rllm: Peer, versions: dict[str, str]) -> float:
    """The same of rLLM's gateway."""
    found = rllm.ask({"episodes": WIDE, "turns": TURNS}, PEER_SECONDS)
    if found["traces"] != WIDE * TURNS:
        raise RunError(f"{RLLM} kept {found['traces']} of {WIDE * TURNS} turns; nothing was measured")
    versions[RLLM] = found["version"]
    return WIDE * TURNS / found["seconds"]


BENCHMARK = Benchmark(
    name="gateway",
    question="What does a turn cost through the gateway, beside the native loop, and how many pass beside a peer?",
    equal=(
        "the policy (`base`), its tasks, seeds and sampled ids",
        f"{EPISODES} episodes at once on the embedded sites, of at most {TURNS} turns",
        "one process a side: clients, gateway, and what answers: the pool that plays episodes, and of the peer a model "
        "that answers at once over HTTP",
    ),
    limits=(
        "client, server and environments share one interpreter, so the time of HTTP on both ends, and of programs that "
        "begin and end, is added to that of sampling; a program of its own pays for its client itself. The peer passes "
        "requests on to a server and keeps traces; ours plays episodes: budgets, branches, rewards."
    ),
    measure=measure,
    how_to_make_peer=HOW_TO_MAKE_PEER,
)
