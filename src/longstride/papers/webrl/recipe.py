"""WebRL on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.learner.critics import TurnValue
from longstride.methods import KL, Reinforce
from longstride.methods.kl import Latest
from longstride.papers.webrl.method import FailedTasks, NextAndFinal, PerplexityReplay
from longstride.setups import sites
from longstride.stats import Ordering

RECIPE = sites.recipe(
    "webrl",
    iterations=10,
    curriculum=FailedTasks(),
    replay=PerplexityReplay(),
    credit=NextAndFinal(),
    critic=TurnValue(head="bce", lr=1e-4, warmup=1),
    loss=Reinforce(kl=KL(coefficient=1.0, estimator="k2", level="sequence", anchor=Latest(every=1))),
    learner={"lr": 4e-4, "warmup_steps": 25},
    evaluation={"every": 5},
)

ARM = sites.arm(RECIPE, iterations=6, every=2).replace(tasks={"sites": ("stays",)}, evaluation={"tasks": 300})
"""Tested on the kind of site that it begins with."""
MOVING = ARM.replace(curriculum={"order": ("stays", "stays", "stays", "shop")})
_bare = {"replay": {"times": 0.0}, "loss": {"kl": None}}

CLAIM = Claim(
    name="webrl",
    paper="arXiv 2411.02337, section 3.7 and figure 5",
    statement="By equal environment steps, replay and the KL term keep a kind of site from being forgotten when tasks move on to another.",
    recipe=ARM,
    arms={"moving": MOVING, "moving_bare": MOVING.replace(**_bare), "still": ARM, "still_bare": ARM.replace(**_bare)},
    expected=Ordering(relations=("moving > moving_bare by 0.05",)),
    # where tasks stay there is nothing to forget
    control=Ordering(relations=("still > still_bare by 0.05",)),
    seeds=tuple(range(1900, 1912)),
    tuning_seeds=(900, 901),
    # at full length: tasks move on after half of it
    grid={"learner.lr": (4e-5, 1.2e-4, 4e-4, 1.2e-3, 4e-3)},
    cost="env_steps",
    equal_cost=True,
)
