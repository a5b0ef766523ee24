"""TTI's map: where a growing horizon wins. The arms of TTI in regimes that a paper's single benchmark mixes.

Shen et al. (2025, arXiv 2506.07976) report that a growing horizon beats a fixed long one, because long successes are full of
arbitrary actions that are cloned with the rest. Whether a site has such successes depends on four things, and each regime turns one:

| regime | what is turned | arms |
|---|---|---|
| plain | nothing: exact rewards, sampling as in the recipe | growing, long |
| early | the first horizon: 4 turns, in which no second page of a search fits | growing from 4, fixed at 4 |
| guess | pay of a lucky guess: one failure in ten is rewarded (a noisy judge) | growing, long |
| noise | exploration noise: sampling at temperature 1.3 in training | growing, long |
| hard | share of hard tasks: five in eight instead of one in three | growing, long |

The relations are the paper's ordering in each regime; what comes out is the map, not a vote.
"""

from longstride.recipes import tti
from longstride.stats import Ordering
from longstride.training.recipe import Claim

RECIPE = tti.RECIPE.model_copy(update={"name": "tti_map"})
EARLY = 4

REGIMES = {
    "plain": (),
    "guess": ("reward.false_positive=0.1",),
    "noise": ("sampling.temperature=1.3", "sampling.top_p=1.0"),
    "hard": ("tasks.mix={easy=1.0, medium=2.0, hard=5.0}",),
}
_early = {
    "early_growing": (tti.growing(EARLY),),
    "early_fixed": (tti.fixed(EARLY),),
}

CLAIM = Claim(
    name="tti_map",
    paper="arXiv 2506.07976, section 5: why a fixed long horizon loses",
    statement="Growing the horizon beats a fixed long one in every regime, and growing from 4 beats staying there.",
    scale=(*tti.SCALE, "evaluation.sampling={temperature=1.0, top_p=0.95}"),
    arms={f"{regime}_growing": changes for regime, changes in REGIMES.items()}
    | {f"{regime}_long": (tti.fixed(tti.LONG), *changes) for regime, changes in REGIMES.items()}
    | _early,
    expected=Ordering(
        relations=(*(f"{regime}_growing > {regime}_long" for regime in REGIMES), "early_growing > early_fixed")
    ),
    seeds=(0, 1, 2),
)
