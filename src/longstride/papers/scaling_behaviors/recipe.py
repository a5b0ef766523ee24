"""Scaling behaviours with a language model: equal updates, from few tasks often and from many once.

With your own: `longstride sweep scaling_behaviors OUT model=MODEL tasks.type=dataset tasks.path=tasks.jsonl --grid
curriculum.unique=25,128,640`.
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import PPO, GroupRelative, Mean
from longstride.papers.scaling_behaviors.method import FixedSet
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "scaling_behaviors",
    credit=GroupRelative(),
    loss=PPO(aggregation=Mean(over="episode")),
    curriculum=FixedSet(unique=51),  # 25 passes of 40 x 32 visits
    tasks=ModularChain(),
    evaluation={"every": 2},
)

VISITS = 400
ARM = RECIPE.replace(
    iterations=25,
    episodes_per_iteration=64,
    group_size=4,
    curriculum={"unique": VISITS // 25},
    learner={"batch_samples": 32},
    evaluation={"every": 25, "tasks": 400},
)

CLAIM = Claim(
    name="scaling_behaviors",
    paper="arXiv 2509.25300, the finding on data reuse",
    statement="At equal updates a language model that passes 25 times over its tasks ends above one that passes 100 times, "
    "and little below one that meets each once.",
    recipe=ARM,
    arms={
        "once": ARM.replace(curriculum={"unique": VISITS}),
        "reuse_5": ARM.replace(curriculum={"unique": VISITS // 5}),
        "reuse_25": ARM,
        "reuse_100": ARM.replace(curriculum={"unique": VISITS // 100}),
    },
    expected=Ordering(relations=("reuse_25 > reuse_100 by 0.1",)),
    # what is not repeated often is not memorised
    control=Ordering(relations=("once > reuse_25 by 0.1",)),
    dose=("once > reuse_5", "once > reuse_25", "once > reuse_100"),
    seeds=tuple(range(440, 456)),
    tuning_seeds=(930, 931),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    cost="env_steps",
)

FINDING = (
    "After as many updates a language model that meets each task once has a success of 0.923, one that passes 5 times over its tasks 0.912, 25 "
    "times 0.877 and 100 times, over four of them, 0.622."
)
