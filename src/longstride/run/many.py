"""Several runs: of a claim, of a sweep.

What always holds: what was finished is not run again, what was interrupted goes on, and numbers do not depend on how
many runs go at a time.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import torch

from longstride.run.experiment import Experiment
from longstride.run.folder import read_rows
from longstride.run.listener import Listener


def train_all(runs: Mapping[Path, Experiment], watch: Callable[[Path], Listener], jobs: int) -> None:
    """Trains what has not been trained yet.

    Args:
        runs: by run folder.
        watch: by the folder of a run, whoever takes its rows; with several jobs, when the run has ended.
        jobs: runs at a time, each in a process of its own with an equal share of the processor's threads.

    Raises:
        RunError: see `Experiment.train`.
    """
    if jobs == 1:
        for folder, experiment in runs.items():
            experiment.train(folder, watch(folder), resume=True)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (threads,)) as pool:
        waiting = {pool.submit(run.train, folder, None, True): folder for folder, run in runs.items()}
        try:
            for future in as_completed(waiting):
                future.result()
                listener = watch(waiting[future])
                for row in read_rows(waiting[future] / "metrics.jsonl"):
                    listener(row)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
