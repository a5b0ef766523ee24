"""TTI's map: in which regimes a growing horizon wins (plain: see `tti`; here lucky guesses, noise, hard tasks, an early start).

Shen et al. (2025, arXiv 2506.07976) report that a growing horizon beats a fixed long one, because long successes are full of
arbitrary actions that are cloned with the rest. Whether that happens depends on the site. Each regime turns one thing:

| regime | what is turned | arms |
|---|---|---|
| guess | pay of a lucky guess: one failure in ten is rewarded (a noisy judge) | growing from 8, fixed at 24 |
| noise | exploration noise: training samples at temperature 1.3, without a nucleus | growing from 8, fixed at 24 |
| hard | share of hard tasks: five in eight instead of one in three | growing from 8, fixed at 24 |
| early | first horizon: 4 turns, in which no second page of a search fits | growing from 4, fixed at 4 |

Evaluation is the same everywhere (exact judge, the recipe's sampling, horizon 24). The relations are the paper's ordering in each
regime; what comes out is the map, not a vote. Deviation: shorter runs and fewer seeds than the claim of `tti`.
"""

from longstride.claims.claim import Claim
from longstride.curriculum import Fixed, Multiplicative
from longstride.engines.base import Sampling
from longstride.recipes.agents import tti
from longstride.recipes.setups.sites import LONG
from longstride.stats import Ordering

RECIPE = tti.RELEASED.replace(name="tti_map")
EARLY = 4

ARM = RECIPE.replace(
    iterations=8, evaluation={"every": 8, "baselines": False, "sampling": Sampling(temperature=1.0, top_p=0.95)}
)
REGIMES = {
    "guess": {"reward": {"false_positive": 0.1}},
    "noise": {"sampling": {"temperature": 1.3, "top_p": 1.0}},
    "hard": {"tasks": {"mix": {"easy": 1.0, "medium": 2.0, "hard": 5.0}}},
}

CLAIM = Claim(
    name="tti_map",
    paper="arXiv 2506.07976, section 5: why a fixed long horizon loses",
    statement="Growing the horizon beats a fixed long one in every regime, and growing from 4 beats staying there.",
    recipe=ARM,
    arms={f"{regime}_growing": ARM.replace(**changes) for regime, changes in REGIMES.items()}
    | {f"{regime}_long": ARM.replace(**changes, budget=tti.FIXED_LONG) for regime, changes in REGIMES.items()}
    | {
        "early_growing": ARM.replace(budget={"turns": Multiplicative(start=EARLY, limit=LONG)}),
        "early_fixed": ARM.replace(budget={"turns": Fixed(limit=EARLY)}),
    },
    expected=Ordering(
        relations=(*(f"{regime}_growing > {regime}_long" for regime in REGIMES), "early_growing > early_fixed")
    ),
    seeds=(0, 1, 2),
)
