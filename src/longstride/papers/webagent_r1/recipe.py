"""WebAgent-R1 on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.learner.config import LearnerConfig
from longstride.methods import KL, PPO, GroupRelative, Mean
from longstride.rollout.context import FullHistory, RecentObservations
from longstride.setups import sites
from longstride.setups.sites import MEDIUM
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "webagent_r1",
    iterations=24,
    group_size=8,
    model="base-keep-last",
    budget={"turns": MEDIUM},
    context=RecentObservations(),
    credit=GroupRelative(length_divisor="turns"),
    loss=PPO(kl=KL(coefficient=1e-3), aggregation=Mean(over="sequence")),
    learner=LearnerConfig(lr=5e-4, warmup_steps=5, batch_samples=384),
)

ARM = sites.arm(RECIPE, every=3)

CLAIM = Claim(
    name="webagent_r1",
    paper="arXiv 2505.16421, on behaviour cloning and on context compression",
    statement="By equal environment steps, a policy that reads the newest page alone has more success where behaviour was "
    "cloned in that context than where it was cloned in another, and no less than one that reads all pages.",
    recipe=ARM,
    arms={
        "compressed": ARM,
        "cloned_elsewhere": ARM.replace(model="base"),
        "whole": ARM.replace(model="base", context=FullHistory()),
    },
    expected=Ordering(relations=("compressed > cloned_elsewhere by 0.05",)),
    # what the compressed context leaves out was not needed
    control=Ordering(relations=("whole > compressed by 0.05",)),
    seeds=tuple(range(1700, 1710)),
    tuning_seeds=(970, 971),
    grid={"learner.lr": (6e-5, 1.7e-4, 5e-4, 1.5e-3, 4.5e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    cost="env_steps",
    equal_cost=True,
)

FINDING = (
    "By equal steps a policy that reads the newest page alone ends with a success of 0.25 where it was cloned in that context and with "
    "0.22 where it was cloned in another (+0.03 [-0.01, 0.07]). One that was cloned with all pages, and reads them, ends with 0.40."
)
