"""The trainer in two processes, as torchrun starts them: the run of one process, shared out."""

import multiprocessing
import os
import socket
from pathlib import Path

import torch
from longstride.rollout.rounds import PoolConfig
from test_trainer import episodes_of, make_recipe, model_folder, rows_of  # noqa: F401

from longstride.run.evaluation import load_run
from longstride.run.loop import train
from longstride.run.recipe import Recipe


def work(rank: int, world: int, port: int, recipe: Recipe, folder: Path) -> None:
    torch.set_num_threads(1)
    if world > 1:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "LOCAL_RANK": str(rank)}
        os.environ.update({**where, "RANK": str(rank), "WORLD_SIZE": str(world)})
    train(recipe, folder, resume=True)


def run(recipe: Recipe, folder: Path, world: int) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_trainer", "longstride.run.loop"])
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    processes = [context.Process(target=work, args=(rank, world, port, recipe, folder)) for rank in range(world)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def nearly(a: Path, b: Path) -> bool:
    ours, theirs = (load_run(f)[1].model.state_dict() for f in (a, b))
    return all(torch.allclose(ours[k], theirs[k], atol=1e-6, rtol=1e-5) for k in theirs)


def words_of(folder: Path) -> list:
    return [(e["ordinal"], e["seed"], [turn["ids"] for turn in e["turns"]]) for e in episodes_of(folder)]


def test_two_processes_collect_and_learn_what_one_does(model_folder, tmp_path):  # noqa: F811
    recipe = make_recipe(model_folder, iterations=2, group=2)
    for world in (1, 2):
        run(recipe, tmp_path / str(world), world)
    one, two = tmp_path / "1", tmp_path / "2"
    assert words_of(two) == words_of(one) and nearly(two, one)
    for ours, theirs in zip(rows_of(two), rows_of(one), strict=True):
        assert ours["summary"] == theirs["summary"] and ours.get("outcomes") == theirs.get("outcomes")


def test_a_run_goes_on_in_another_number_of_processes(model_folder, tmp_path):  # noqa: F811
    recipe = make_recipe(model_folder, iterations=3, pool=PoolConfig(staleness=1))
    shorter = recipe.model_copy(update={"iterations": 2})
    run(shorter, tmp_path / "run", 2)
    run(recipe, tmp_path / "run", 1)
    assert [e["ordinal"] for e in episodes_of(tmp_path / "run")] == list(range(30))
    trained = [r for r in rows_of(tmp_path / "run") if r["kind"] == "train"]
    assert [r["iteration"] for r in trained] == [1, 2, 3] and all(r["staleness_max"] <= 1 for r in trained)
