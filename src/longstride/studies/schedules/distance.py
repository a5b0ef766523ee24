"""What distance costs under each schedule: trained up to a distance of 16, tested from 8 to 256.

Training has distances 2 to 16; tests along the way have 6 to 32 within 64 turns. What a run has spent when half of the tasks at a distance are
done rises with the distance as a power, T ~ d^g (ScaleLogic, arXiv 2605.06638, by depth of reasoning); the law is fitted up to 16, and 23
and 32 are held out. After training `FAR` are tested within 512 turns.

    python examples/distances.py run
    python examples/distances.py draw

    longstride fit runs/distances --law rising_power --x goal_distance --y env_steps --by name --until 16
"""

from longstride.curriculum import Fixed
from longstride.studies.schedules.recipe import RECIPE as SCHEDULED

TESTED = (6, 8, 11, 13, 16, 23, 32)
"""Goal distances of the tests along the way."""
FAR = (8, 16, 32, 64, 128, 256)
FAR_TURNS = 512

RECIPE = SCHEDULED.replace(
    name="schedules/distance",
    episodes_per_iteration=128,
    tasks={"distances": (2, 16), "test_distances": TESTED},
    test_budget={"turns": Fixed(limit=64)},
    replay={"keep": 256},
    evaluation={"every": 1, "tasks": 8 * len(TESTED)},
)
