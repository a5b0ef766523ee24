"""ScaleRL on puzzles: the recipe, and the claim that the first half of a run predicts the second by a sigmoid.

With your own: `longstride train scalerl model=MODEL tasks.type=dataset tasks.path=tasks.jsonl`, then `longstride fit RUN
--until X`.
"""

from longstride.claims.claim import Claim
from longstride.envs.puzzles import ModularChain
from longstride.methods import GroupRelative, Mean, MixedGroups
from longstride.methods.ratios import CISPO
from longstride.papers.scalerl.method import NoPositiveResampling
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.scaling import Power, Sigmoid
from longstride.setups import puzzles
from longstride.stats import Ordering

RECIPE = puzzles.recipe(
    "scalerl",
    credit=GroupRelative(normalize="advantage_std"),
    loss=CISPO(aggregation=Mean(over="prompt")),
    group_size=16,
    curriculum=NoPositiveResampling(),
    replay=MixedGroups(),
    learner={"epochs": 1, "float32_head": True},
    evaluation={"every": 1, "tasks": 200},
)

_arm = RECIPE.replace(
    iterations=30,
    episodes_per_iteration=64,
    group_size=8,
    learner={"batch_samples": 32},
    tasks=ModularChain(),
    evaluation={"tasks": 150},
)
ARM = Extrapolation(
    name="scalerl/forecast",
    run=_arm,
    readings={
        "sigmoid": Reading(law=Sigmoid(), since=0.05),
        "power": Reading(law=Power(), since=0.05),
        "early_sigmoid": Reading(law=Sigmoid(), until=0.25),
        "early_power": Reading(law=Power(), until=0.25),
    },
    seeds=4,
)

CLAIM = Claim(
    name="scalerl",
    paper="arXiv 2510.13786, section 2.1 and appendix A.4",
    statement="The first half of a language model's run, fitted by a sigmoid, foretells the second half more closely than "
    "fitted by a power law.",
    recipe=ARM,
    arms={"run": ARM},
    measure="closer",
    expected=Ordering(relations=("run > run@power by 0.02",)),
    # before the midpoint nothing shows that the curve will bend
    control=Ordering(relations=("run@early_sigmoid > run@early_power by 0.02",)),
    reported=Ordering(relations=("run > run@power in within",)),
    seeds=tuple(range(424, 462)),
    tuning_seeds=(930, 931),
    grid={"run.learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuned_by="reached",
    cost="env_steps",
    scale=(-1.0, 1.0),
)

FINDING = (
    "From half of a run the sigmoid is .039 [.031, .048] closer to the second half than a power law, which is .026 further off than the guess "
    "that nothing changes any more; the sigmoid is .014 [.007, .020] closer than that guess, so most of what it gains is not to promise too much. "
    "From a quarter of a run, before the curve bends, the power law is the closer one, by .049 [.027, .071]. An earlier form on 24 other seeds "
    "(`results/fewer_seeds.json`, fewer than its pilot asked for) had .042 [.027, .056]."
)
