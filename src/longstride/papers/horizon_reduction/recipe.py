"""Horizon reduction on trails of pages: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.envs.dial import Dial
from longstride.methods import PPO, GroupRelative
from longstride.papers.horizon_reduction.method import MacroActions
from longstride.setups import dial
from longstride.stats import Ordering

RECIPE = dial.recipe(
    "horizon_reduction",
    group_size=8,
    tasks=MacroActions(tasks=Dial(distances=(2, 41), test_distances=(8, 16, 32, 64)), length=4),
    test_budget={"turns": 96},
    credit=GroupRelative(),
    loss=PPO(),
    learner={"lr": 5e-4, "batch_samples": 64},
    evaluation={"every": 3, "tasks": 120},
)

ARM = RECIPE.replace(iterations=6, evaluation={"every": 2, "tasks": 80})
_atomic = ARM.replace(tasks={"length": 1})
_medium, _near = {"tasks": {"tasks": {"distances": (2, 16)}}}, {"tasks": {"tasks": {"distances": (2, 6)}}}

CLAIM = Claim(
    name="horizon_reduction",
    paper="arXiv 2605.02572, abstract",
    statement="By equal turns, a policy that was trained in macro actions has more success in atomic ones, on tasks up to one and a half times "
    "as far away as any in training, than one that was trained in atomic ones, and by the more the farther the tasks of training lie.",
    recipe=ARM,
    arms={
        "macro": ARM,
        "atomic": _atomic,
        "macro_16": ARM.replace(**_medium),
        "atomic_16": _atomic.replace(**_medium),
        "macro_6": ARM.replace(**_near),
        "atomic_6": _atomic.replace(**_near),
    },
    expected=Ordering(relations=("macro > atomic by 0.05",)),
    dose=("macro_6 > atomic_6", "macro_16 > atomic_16", "macro > atomic"),
    reported=Ordering(relations=("atomic_6 > atomic", "atomic > macro in length")),
    seeds=tuple(range(500, 512)),
    tuning_seeds=(900, 901),
    grid={"learner.lr": (1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3)},
    tuning={"iterations": 3, "episodes_per_iteration": 128, "evaluation.every": 3},
    cost="env_steps",
    equal_cost=True,
)

FINDING = """Open: by equal turns macro actions end ahead by 0.11 [0.04, 0.17], and by as much by equal tokens, which does not quite exclude the
margin; after 2.3 times the turns atomic training has come level (0.756 and 0.747). That it is more the farther tasks lie is not decided: where
they lie within 16 the rate that two short runs chose, the last of the grid, lets macro actions fall to 0.01."""
