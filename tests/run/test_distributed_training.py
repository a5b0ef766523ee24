"""A run in two processes, as torchrun starts them, gives the numbers of a run in one."""

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from helpers import content, rows_of, trajectories_of
from one_page import make_recipe, save_model
from vllm_library import install_library
from vllm_server import VLLMServer

from longstride.core.errors import EngineFailure
from longstride.engines.config import HTTP, VLLM
from longstride.engines.http import HTTPEngine
from longstride.engines.weights import IPC, Adapters, Folder, _TransferPush
from longstride.learner import parallel
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, GroupRelative, OnPolicy, Reinforce
from longstride.methods.kl import MovingAverage
from longstride.models.load import load_policy
from longstride.papers.dars.method import DifficultyAdaptive
from longstride.rollout.scheduler import PoolConfig
from longstride.run.loop import train
from longstride.run.policies import load_run
from longstride.run.recipe import Evaluation, Recipe


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "tiny")


def under_torchrun(rank: int, world: int, port: int) -> None:
    torch.set_num_threads(1)
    if world > 1:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": str(rank)}
        os.environ.update({**where, "RANK": str(rank), "WORLD_SIZE": str(world)})


def work(rank: int, world: int, port: int, recipe: Recipe, folder: Path) -> None:
    under_torchrun(rank, world, port)
    train(recipe, folder, resume=True)


def with_vllm(rank: int, world: int, port: int, recipe: Recipe, folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        install_library(patch, load_policy(str(recipe.model)))
        patch.setattr(IPC, "push", lambda settings, server, policy: _TransferPush(settings, server, policy))
        work(rank, world, port, recipe, folder)


def pushing(rank: int, world: int, port: int) -> None:
    class Adapting:
        """The first process alone may push; a version above 7 is refused."""

        served, label = "m", ""

        def prepare(self, model: object, version: int) -> None:
            assert rank == 0

        def __call__(self, model: object, version: int) -> None:
            assert rank == 0
            if version > 7:
                raise EngineFailure("it is full")
            self.served = f"m-{version}"

    under_torchrun(rank, world, port)
    policy: Any = SimpleNamespace(max_context=128)
    engine = HTTPEngine(HTTP(url="http://127.0.0.1:1/v1", model="m", weights=Adapters(path="/a")), policy)
    engine._connected = lambda: SimpleNamespace(failure=EngineFailure)  # pyright: ignore
    engine._push = Adapting()  # pyright: ignore
    with parallel.joined():
        engine.update(None, 7)
        assert (engine.version, engine._taken.served) == (7, "m-7")
        with pytest.raises(EngineFailure, match="it is full"):
            engine.update(None, 8)
        assert engine.version == 7


def run(recipe: Recipe, folder: Path, world: int) -> None:
    start(work, world, recipe, folder)


def start(work: Callable[..., None], world: int, *args: Any) -> None:
    """Does some work in `world` processes, which are given rank, world, a free port and `args`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["one_page", "vllm_server", "longstride.run.loop"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = [context.Process(target=work, args=(rank, world, port, *args)) for rank in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def nearly(a: Path, b: Path, atol: float = 1e-6) -> bool:
    ours, theirs = (load_run(f)[1].model.state_dict() for f in (a, b))
    return all(torch.allclose(ours[k], theirs[k], atol=atol, rtol=1e-5) for k in theirs)


def without_logprobs(folder: Path) -> list:
    episodes = [content(t) for t in trajectories_of(folder)]
    for episode in episodes:
        for turn in episode["turns"]:
            del turn["logprobs"]
    return episodes


ADAPTIVE = {
    "sampler": DifficultyAdaptive(most=4), "replay": OnPolicy(), "credit": GroupRelative(baseline="none"),
    "loss": Reinforce(kl=KL(coefficient=0.1, anchor=MovingAverage(decay=0.5))),
}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [pytest.param({}, id="successes", marks=pytest.mark.slow), pytest.param(ADAPTIVE, id="stages and a moving anchor")],
)
def test_two_processes_collect_and_learn_what_one_does(model, tmp_path, changes):
    recipe = make_recipe(model, iterations=2, group_size=2, **changes)
    for world in (1, 2):
        run(recipe, tmp_path / str(world), world)
    one, two = tmp_path / "1", tmp_path / "2"
    assert without_logprobs(two) == without_logprobs(one) and nearly(two, one)
    for ours, theirs in zip(rows_of(two), rows_of(one), strict=True):
        assert ours["summary"] == theirs["summary"] and ours.get("outcomes") == theirs.get("outcomes")


@pytest.mark.slow
def test_a_run_goes_on_in_another_number_of_processes(model, tmp_path):
    recipe = make_recipe(model, iterations=3, pool=PoolConfig(staleness=1))
    run(recipe.replace(iterations=2), tmp_path / "run", 2)
    train(recipe, tmp_path / "run", resume=True)
    assert [t.ordinal for t in trajectories_of(tmp_path / "run")] == list(range(30))
    trained = rows_of(tmp_path / "run", "train")
    assert [r["iteration"] for r in trained] == [1, 2, 3] and all(r["staleness_max"] <= 1 for r in trained)


@pytest.mark.slow
def test_of_several_processes_the_first_pushes_what_all_hold(model, tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers = [VLLMServer(load_policy(str(model))) for _ in range(2)]
    urls = tuple(f"{server.root}/v1" for server in servers)
    engine = HTTP(url=urls, model="m", weights=Folder(path=str(tmp_path / "pushed")))
    learner = LearnerConfig(lr=5e-3, warmup_steps=0, dtype="float32", sharded=True)
    recipe = make_recipe(
        model, iterations=2, episodes_per_iteration=6, learner=learner, evaluation=Evaluation(tasks=2, baselines=False)
    )
    try:
        train(recipe, tmp_path / "1")
        run(recipe.replace(engine=engine), tmp_path / "2", 2)
    finally:
        for server in servers:
            server.stop()
    assert without_logprobs(tmp_path / "2") == without_logprobs(tmp_path / "1")  # also after both updates
    for server in servers:
        assert len(server.bodies) > 12, "it samples, beside the checks of the start"
        assert server.calls.count("/collective_rpc") == 4, "to an engine that is made, before the first, after each"


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
def test_each_process_samples_with_a_vllm_of_its_own_what_one_process_samples(model, tmp_path, sharded):
    recipe = make_recipe(model, iterations=2, evaluation=Evaluation(tasks=2, baselines=False))
    one, two = tmp_path / "1", tmp_path / "2"
    train(recipe, one)
    start(with_vllm, 2, recipe.replace(engine=VLLM(), learner=recipe.learner.replace(sharded=sharded)), two)
    assert without_logprobs(two) == without_logprobs(one) and nearly(two, one, atol=1e-4)  # Adam enlarges rounding


def test_what_the_first_process_pushed_or_could_not_push_all_know() -> None:
    start(pushing, 2)
