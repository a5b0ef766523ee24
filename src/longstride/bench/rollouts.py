"""Asynchronous rollouts against synchronous ones, with simulated environments, model and updates.

What always holds: pool, staleness and admission are those of a real run (see `rollout.simulation`); all sides play the
same episodes with the same latencies.
"""

from functools import partial

from longstride.bench.base import Page, Progress, Row, in_turn
from longstride.core.errors import ConfigError
from longstride.rollout.rounds import PoolConfig
from longstride.rollout.simulation import ConstantLatency, LogNormalLatency, Simulation, Stragglers

LATENCIES = {
    "constant": ConstantLatency(seconds=0.05),
    "log-normal": LogNormalLatency(median=0.03, sigma=1.0),
    "1 % stragglers of 20 times": Stragglers(seconds=0.042, share=0.01, factor=20),
}
"""Laws with a mean of about 0.05 s."""
WORK = Simulation(iterations=32, episodes=64, slots=64, turns=(2, 10), tokens=(2, 6), pass_seconds=0.005,
                  row_seconds=0.00001, learn_seconds=0.15)  # fmt: skip
"""What is simulated: as on a GPU, a pass takes about as long for many rows as for few."""
POOLS = {
    "S = 0": PoolConfig(lockstep=False),
    "S = 2": PoolConfig(staleness=2),
    "S = 4": PoolConfig(staleness=4),
}
"""The synchronous side is the faster of its two: it does not wait for all environments before it samples."""
OURS = "S = 4"
BOUND, OCCUPANCY = 0.9, 0.95
QUANTITIES = {
    "share of the bound": "efficiency",
    "occupied slots": "occupancy",
    "trained over started horizon": "length",
}


def measure(peer: str | None, rounds: int, progress: Progress) -> tuple[list[Row], dict[str, str]]:
    """The rows; the other sides are of ours too, so there is no `peer`.

    Raises:
        ConfigError: a peer was given.
    """
    if peer is not None:
        raise ConfigError("asynchronous rollouts are measured against Longstride's own; leave --peer out")
    rows = []
    for law, act in LATENCIES.items():

        def play(pool: PoolConfig, k: int, act=act) -> dict[str, float]:
            return WORK.model_copy(update={"act": act, "pool": pool, "seed": k}).run()

        told = lambda words, law=law: progress(f"{law}, {words}")  # noqa: E731
        seen = in_turn({name: partial(play, pool) for name, pool in POOLS.items()}, rounds, told)
        ours = seen[OURS]
        for name in POOLS:
            if name != OURS:
                rows.append(Row(f"{law}: {OURS}", "s", ours["seconds"], seen[name]["seconds"], name))

        def share(name: str, what: str, goal: float | None, law=law, seen=seen) -> Row:
            return Row(f"{law}: {name}, {what}", "", seen[name][QUANTITIES[what]], higher_is_better=True, goal=goal)

        rows += [share(name, "share of the bound", BOUND if name == OURS else None) for name in POOLS]
        rows += [share(OURS, "occupied slots", OCCUPANCY), share(OURS, "trained over started horizon", 1.0)]
    return rows, {}


PAGE = Page(
    name="rollouts",
    question="How much faster are rollouts that run ahead of the update, how near to the bound, and are they fair?",
    equal=(
        "the episodes with their turns, tokens and latencies",
        f"{WORK.iterations} updates of {WORK.learn_seconds:g} s, {WORK.episodes} episodes each, {WORK.slots} slots",
        f"a model whose pass takes {1000 * WORK.pass_seconds:g} ms, and {1000 * WORK.row_seconds:g} ms for each row",
    ),
    limits=(
        "the bound is the largest of what all tokens take in full passes, of what episodes hold their slots for, and "
        "of all updates; passes are not full while few episodes wait for tokens, the first iteration has nothing to "
        "train beside it and the last update nothing to roll out."
    ),
    measure=measure,
)
