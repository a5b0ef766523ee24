"""TTI on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed, Multiplicative
from longstride.curriculum.schedules import StepList
from longstride.engines.base import Sampling
from longstride.learner.config import LearnerConfig
from longstride.methods import Constant, Reinforce
from longstride.methods.cloning import FilteredBC
from longstride.papers.tti.method import TTIReplay
from longstride.setups import sites
from longstride.setups.sites import LONG, MEDIUM, SHORT
from longstride.stats import Ordering

RELEASED = sites.recipe(
    "tti",
    credit=FilteredBC(weight="by_length"),
    loss=Reinforce(aggregation=Constant()),
    iterations=10,
    budget={"turns": Multiplicative(start=SHORT, limit=LONG)},
    sampling=Sampling(temperature=1.0, top_p=0.95),
    replay=TTIReplay(keep=256, mix=0.5),
    learner=LearnerConfig(lr=5e-4, warmup_steps=20, decay_steps=2000, batch_samples=64),
)
"""TTI without what is mended in `RECIPE`."""

RECIPE = RELEASED.replace(
    model="base-wander",
    iterations=20,
    episodes_per_iteration=512,
    tasks={"new_templates": False, "most_acted": 4},
    reward={"evidence": True},
    credit=FilteredBC(drop_unchanged=True),
    replay={"keep": 1024},
    engine={"processes": "auto"},
    learner={"decay_steps": 3200, "dtype": "float32", "threads": "auto"},
    evaluation={"every": 4},
)

SLOWLY = {"turns": StepList(steps=((3, SHORT), (6, MEDIUM), (7, LONG)))}
FIXED_SHORT, FIXED_LONG = {"turns": Fixed(limit=SHORT)}, {"turns": Fixed(limit=LONG)}

SMALL = RECIPE.replace(
    iterations=12,
    episodes_per_iteration=128,
    engine={"processes": 1},
    learner={"decay_steps": 2000},
    evaluation={"every": 6, "baselines": False, "tasks": 250},
)
"""`RECIPE` as small as the arms of claims are."""

# as released, but for evidence; the rate is doubled and the batch halved, so that so few episodes change the policy
ARM = SMALL.replace(
    budget=SLOWLY,
    credit=FilteredBC(weight="by_length"),
    replay={"keep": 256},
    learner={"lr": 1e-3, "batch_samples": 32},
)

CLAIM = Claim(
    name="tti",
    paper="arXiv 2506.07976, section 5 and table 1",
    statement="With the weights as released and a start that wanders, growing the horizon beats a fixed long one.",
    recipe=ARM,
    arms={"growing": ARM, "long": ARM.replace(budget=FIXED_LONG), "short": ARM.replace(budget=FIXED_SHORT)},
    expected=Ordering(relations=("growing > long by 0.05",)),
    reported=Ordering(
        relations=("growing > long in supported", "growing > short", "long > short", "growing > short in supported")
    ),
    seeds=(30, 31, 32, 33, 34, 35),
)
