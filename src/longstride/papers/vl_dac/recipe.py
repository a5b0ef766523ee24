"""VL-DAC on the embedded sites: the recipe and its claim."""

from longstride.claims.claim import Claim
from longstride.learner.critics import TurnValue
from longstride.methods import KL, PPO, Mean
from longstride.methods.advantages import GAE
from longstride.methods.ratios import GSPO
from longstride.setups import sites
from longstride.setups.sites import SHEET
from longstride.stats import Ordering

_kl = KL(coefficient=0.04)

RECIPE = sites.recipe(
    "vl_dac",
    iterations=12,
    credit=GAE(values="critic", discount=0.95, lam=0.95, whiten=True),
    critic=TurnValue(),
    loss=PPO(clip_low=0.1, clip_high=0.1, dual_clip=10.0, kl=_kl, aggregation=Mean(over="sequence")),
)

ARM = sites.arm(RECIPE, every=3)
_no_values = {"credit": {"values": "none"}, "critic": None}

CLAIM = Claim(
    name="vl_dac",
    paper="arXiv 2508.04280, abstract",
    statement="By equal environment steps, with values of turns, clipping each token beats clipping a turn's tokens together.",
    recipe=ARM,
    arms={
        "vl_dac": ARM,
        "sequence_ratio": ARM.replace(loss=GSPO(clip_low=0.1, clip_high=0.1, kl=_kl)),
        "no_values": ARM.replace(**_no_values),
        "sheet_vl_dac": ARM.replace(tasks=SHEET),
        "sheet_no_values": ARM.replace(tasks=SHEET, **_no_values),
    },
    expected=Ordering(relations=("vl_dac > sequence_ratio by 0.05",)),
    # on a sheet an episode is a turn or two: there is little that values of turns could tell apart
    control=Ordering(relations=("sheet_vl_dac > sheet_no_values by 0.05",)),
    reported=Ordering(relations=("vl_dac > no_values by 0.02",)),
    seeds=tuple(range(1720, 1730)),
    tuning_seeds=(972, 973),
    grid={"learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuning={"iterations": 5, "evaluation.every": 5},
    cost="env_steps",
    equal_cost=True,
)
