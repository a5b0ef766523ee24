"""The ceiling of the tasks of `tti`: what its model reaches when it imitates a solver that makes no mistake.

What always holds: the solver demonstrates training templates on training sites alone; it is imitated by the network and
with the words that reinforcement learning starts from; an errand whose row misses its goal cannot be learned by this
model, whatever the method.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from longstride.bench.base import Benchmark, Progress, Quantity
from longstride.core.errors import ConfigError
from longstride.core.task import Task
from longstride.core.trajectory import Trajectory
from longstride.envs.base import TaskSource
from longstride.papers.tti.recipe import RECIPE
from longstride.run.evaluation import evaluate_player, language_player
from longstride.starts.demonstrators import Sites
from longstride.starts.warmstart import WarmStart, make_base

SOLVER = Sites(patient=1.0, example=1.0, slips=0.0, sheet=0.0, checked=0.0, recalls=True)
START = WarmStart(
    start=RECIPE.model,
    tokens=4_000_000,
    demonstrators=SOLVER,
    learner=WarmStart().learner.replace(lr=2e-3, dtype="float32", micro_tokens=1024),
)
TASKS = 150
"""Of one round, in each set."""
GOAL = 0.9
FEWEST = 4
"""Tasks of an errand that a round must have for the errand to get a row."""


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """A row for each errand of each set of tasks, and one for the set.

    Raises:
        ConfigError: an environment was named for a peer.
    """
    if peer is not None:
        raise ConfigError(f"there is nothing to compare with; leave --peer {peer} out")

    def tell(now: dict[str, float]) -> None:
        progress(f"imitating the solver: {now['share']:.0%}, loss {now['loss']:.3f}")

    with TemporaryDirectory() as folder:
        policy = make_base(Path(folder, "solver"), START, tell)
    player, rows = language_player(policy, RECIPE, testing=True), []
    sets: dict[str, TaskSource] = {"headline": RECIPE.tasks, **RECIPE.tasks.beside}
    for name, source in sets.items():
        tasks, there = source.held_out(rounds * TASKS), RECIPE.model_copy(update={"tasks": source})
        played: list[list[Trajectory]] = []
        for k in range(rounds):
            progress(f"{name}: round {k + 1} of {rounds}")
            played.append(evaluate_player(player, there, tasks[k * TASKS : (k + 1) * TASKS]).trajectories)
        goal = GOAL if name == "headline" else None
        rows += [
            Quantity(f"{name}: {f}", "", s, higher_is_better=True, goal=goal) for f, s in successes(played).items()
        ]
    return rows, {"torch": str(torch.__version__), "trained on": f"{START.tokens:,} tokens"}


def family_of(task: Task) -> str:
    """The task's errand, and how many items it acts on."""
    meta = task.meta
    return f"{meta['errand']} {len(meta['items'])}" if meta["errand"] == "act" else meta["errand"]


def successes(rounds: Sequence[Sequence[Trajectory]]) -> dict[str, list[float]]:
    """By errand, and for `all`, the share of successes of each round; of errands that every round has enough of."""
    found: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in rounds])
    for k, played in enumerate(rounds):
        for t in played:
            for name in ("all", family_of(t.task)):
                found[name][k].append(float(t.success))
    enough = {name: parts for name, parts in sorted(found.items()) if min(map(len, parts)) >= FEWEST}
    return {name: [sum(part) / len(part) for part in parts] for name, parts in enough.items()}


BENCHMARK = Benchmark(
    name="ceiling",
    question="What does the model of `tti` reach when it imitates a solver that makes no mistake, by errand?",
    equal=("the network, its words and its start", "tasks that neither the solver nor training shows"),
    limits="copying over held-out words, and keeping the place in a goal that names many items.",
    measure=measure,
)
"""Kept by `longstride bench ceiling`."""
