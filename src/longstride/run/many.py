"""Several runs: of a claim, of a sweep.

What always holds: what was finished is not run again, what was interrupted goes on; numbers do not depend on how many
runs go at a time, up to rounding where they learn side by side; a start that several have in common is made once,
unless they come to it at a time; after an error nothing more is begun.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch

from longstride.run.beginnings import begin_like, starts_of
from longstride.run.experiment import Experiment, train_beside
from longstride.run.folder import read_rows
from longstride.run.listener import Listener, Silent
from longstride.run.recipe import Recipe


def train_all(runs: Mapping[Path, Experiment], watch: Callable[[Path], Listener], jobs: int) -> None:
    """Trains what has not been trained yet; what can learn side by side does (`Experiment.beside`).

    Args:
        runs: by run folder.
        watch: by the folder of a run, whoever takes its rows; with several jobs, when the run has ended.
        jobs: runs, or runs side by side, at a time, each in a process of its own with an equal share of the cores.

    Raises:
        RunError: see `Experiment.train`.
    """
    together: dict[str | Path, dict[Path, Experiment]] = {}
    for folder, experiment in runs.items():
        together.setdefault(experiment.beside() or folder, {})[folder] = experiment
    starts = starts_of(runs)
    if jobs == 1:
        for group in together.values():
            _train(group, starts, watch)
        return
    context = get_context("spawn")
    shares = context.SimpleQueue()
    for share in _shares(jobs):
        shares.put(share)
    with ProcessPoolExecutor(jobs, context, _settle, (shares,)) as pool:
        groups = iter(together.values())
        running: dict[Future[None], Mapping[Path, Experiment]] = {}
        # no more than can go at a time: what waited in the pool would go on after an error
        while running := running | {
            pool.submit(_train, g, starts, _silent): g for g in islice(groups, jobs - len(running))
        }:
            done = wait(running, return_when=FIRST_COMPLETED).done
            for future in done:
                future.result()
            for future in done:
                for folder in running.pop(future):
                    listener = watch(folder)
                    for row in read_rows(folder / "metrics.jsonl"):
                        listener(row)


def _train(
    group: Mapping[Path, Experiment], starts: Mapping[Path, list[Path]], watch: Callable[[Path], Listener]
) -> None:
    """Trains one run, or several side by side; of `starts` see `beginnings.starts_of`."""
    if len(group) > 1:
        train_beside(group, watch)
        return
    for folder, experiment in group.items():
        if isinstance(experiment, Recipe) and folder in starts:
            begin_like(experiment, folder, starts[folder])
        experiment.train(folder, watch(folder), resume=True)


def _shares(jobs: int) -> list[list[int]]:
    """The cores that this process may use, dealt to jobs; where there are more jobs than cores, some have the same."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return [cores[k::jobs] or [cores[k % len(cores)]] for k in range(jobs)]


def _settle(shares: "SimpleQueue[list[int]]") -> None:
    """A process takes its share; what a recipe leaves to the machine (`auto`) follows from it."""
    share = shares.get()
    torch.set_num_threads(len(share))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, share)


def _silent(folder: Path) -> Listener:
    return Silent()
