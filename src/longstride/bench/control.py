"""Updates a second of a control learner: twenty runs side by side against the same runs one after the other, and one
run against Stable-Baselines3's SAC.

What always holds: all sides make the same updates (SAC: two critics, their targets, a policy, a temperature) of
networks of two hidden layers on batches that they draw from stored transitions, on one thread. What is counted is the
processor's time, so that what else runs on the machine takes none of it.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from longstride.bench.base import Benchmark, Progress, Quantity, in_turn
from longstride.bench.peers import Peer, installed
from longstride.control import ControlAgent, TransitionStore
from longstride.control.learner import ControlLearner, Source, train_together
from longstride.core.errors import ConfigError
from longstride.models.mlp import Trunk
from longstride.setups import maze

RUNS = 20
SIZES = ((32, 64), (32, 128), (256, 64), (256, 256))
"""Units of a hidden layer, and rows of a batch."""
GOALS = {(32, 128): 8.0, (256, 256): 2.5}
"""What runs side by side are to gain: at the batch of the recipes in mazes, and at that of the papers."""
ALONE = (256, 256)
"""The size at which one run is compared with Stable-Baselines3."""
UPDATES = 16
"""Of each run in a round; as many come before the first round."""
PRODUCTS = ("aten::bmm", "aten::baddbmm", "aten::baddbmm_", "aten::mm", "aten::addmm")


def agent(units: int, rows: int) -> ControlAgent:
    """Plain SAC."""
    trunk = Trunk(width=units, depth=2, norm=False, activation="relu")
    made = maze.actor_critic(maze.CRITIC.replace(trunk=trunk))
    (level,) = made.levels
    return made.replace(levels=[level.replace(policy=level.policy.replace(trunk=trunk))], batch=rows)


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Quantity], dict[str, str]]:
    """The rows; the peer's environment has Stable-Baselines3.

    Raises:
        ConfigError: the peer's environment lacks it.
    """
    version = installed(peer, "stable-baselines3") if peer else None
    if peer and version is None:
        raise ConfigError(f"--peer {peer} has no stable-baselines3")
    stores = [TransitionStore.of(maze.ONLINE.dataset(seed)) for seed in range(RUNS)]
    sides: dict[str, Callable[[int], dict[str, Any]]] = {}
    for units, rows in SIZES:
        sources = [[(store, rows)] for store in stores]
        apart, beside = (
            [ControlLearner(agent(units, rows), maze.ONLINE.spec, seed) for seed in range(RUNS)] for _ in range(2)
        )
        sides[f"apart {units} {rows}"] = _timed(lambda a=apart, s=sources: _one_after_the_other(a, s))
        sides[f"beside {units} {rows}"] = _timed(lambda b=beside, s=sources: train_together(b, UPDATES, s))
    with ExitStack() as stack:
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(1)
        if peer:
            theirs = stack.enter_context(Peer(peer, Path(__file__).with_name("sb3_peer.py"), {"OMP_NUM_THREADS": "1"}))
            asked = {"units": ALONE[0], "rows": ALONE[1], "updates": UPDATES}
            sides["peer"] = lambda k: theirs.ask(asked, 600)
        for name, once in sides.items():
            progress(f"warming up: {name}")
            once(0)
        seen = in_turn(sides, rounds, progress)
        share = {units: _products(agent(units, rows), stores) for units, rows in GOALS}
    found = []
    for units, rows in SIZES:
        beside, apart = (RUNS * UPDATES / seen[f"{side} {units} {rows}"]["seconds"] for side in ("beside", "apart"))
        name, one = f"updates, {units} units, batches of {rows}", "one run after the other"
        goal = GOALS.get((units, rows))
        found.append(Quantity(name, "a second", beside, apart, one, higher_is_better=True, goal=goal))
    for units, of in share.items():
        name = f"share of matrix products, {RUNS} runs side by side, {units} units"
        found.append(Quantity(name, "", [of], higher_is_better=True, goal=0.6 if units == ALONE[0] else None))
    if peer:
        ours, of_peer = (
            UPDATES * RUNS / seen["apart {} {}".format(*ALONE)]["seconds"],
            UPDATES / seen["peer"]["seconds"],
        )
        name = "updates of one run, {} units, batches of {}".format(*ALONE)
        against = f"Stable-Baselines3 {version}"
        found.append(Quantity(name, "a second", ours, of_peer, against, higher_is_better=True, goal=2.5))
    return found, {"torch": torch.__version__} | ({"stable-baselines3": version} if version else {})


def _one_after_the_other(learners: Sequence[ControlLearner], sources: Sequence[Sequence[Source]]) -> None:
    for learner, of in zip(learners, sources, strict=True):
        learner.train(UPDATES, of)


def _timed(work: Callable[[], Any]) -> Callable[[int], dict[str, Any]]:
    def once(k: int) -> dict[str, Any]:
        began = time.process_time()
        work()
        return {"seconds": time.process_time() - began}

    return once


def _products(of: ControlAgent, stores: Sequence[TransitionStore]) -> float:
    """Share of the time of operations that runs side by side spend in matrix products."""
    learners = [ControlLearner(of, maze.ONLINE.spec, seed) for seed in range(RUNS)]
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        train_together(learners, 8, [[(store, of.batch)] for store in stores])
    spent = {event.key: event.self_cpu_time_total for event in seen.key_averages()}
    return sum(spent.get(name, 0.0) for name in PRODUCTS) / sum(spent.values())


BENCHMARK = Benchmark(
    name="control",
    question="What does a control learner cost: twenty seeds at once, and one seed beside Stable-Baselines3?",
    equal=(
        "SAC with two critics, their targets, a policy of two hidden layers with ReLU and an adjusted temperature",
        "states of 6 numbers, actions of 2; batches are drawn from stored transitions, which is counted",
        f"{UPDATES} updates of each run a round, on one thread; seconds are the processor's",
    ),
    limits=(
        "on one core the products of matrices, which take as long side by side as one after the other: they bound what "
        "256 units gain. Side by side each operation passes over twenty times as many numbers, which no longer fit "
        "into the processor's caches."
    ),
    measure=measure,
    how_to_make_peer="  python -m venv sb3 && sb3/bin/pip install stable-baselines3  # then: --peer sb3/bin/python",
)
