"""The maze of `curves` alone, in minutes where all curves take hours: DQN beside Stable-Baselines3's. Of d3rlpy nothing
is needed."""

from functools import partial

from longstride.bench.base import Benchmark
from longstride.bench.curves import EPISODES, LIMITS, LONG, MAKE, PLACES, measure

BENCHMARK = Benchmark(
    name="maze",
    question="Does DQN learn a maze as that of Stable-Baselines3 does, by steps?",
    equal=(
        "D4RL's U-maze as a grid of seven places, whose number is observed as a row of zeros with a one; -1 a step, "
        "100 steps at most; networks of two hidden layers of 64 units with ReLU; rates, batches, discounts, targets, "
        "shares of random actions and updates a step, but for what `bench/curves.py` and docs/parity.md name",
        f"a test is {EPISODES} episodes of the policy without noise; a round is a seed of each side",
        f"a curve is compared at {PLACES} places, evenly to its end, and its interval is over rounds",
    ),
    limits=LIMITS,
    measure=partial(measure, totals={"DQN, maze": LONG["DQN, maze"]}),
    how_to_make_peer=MAKE,
    rounds=10,
)
