"""LlamaRL on enumerable answers: samples that are eight versions old."""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS, Answers, Grouped
from longstride.exact.learner import recipe
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.methods.ratios import CISPO
from longstride.stats import Ordering

RECIPE = recipe(
    "llamarl/exact",
    Answers(tasks=tuple((chance,) for chance in (0.02, 0.05, 0.1, 0.1) * 4), vocabulary=32, decoy=0.7),
    Grouped(
        credit=GroupRelative(normalize="none"),
        loss=CISPO(aggregation=Constant(per="episode"), max=4.0),
        rate=64.0,
        staleness=8,
    ),
    iterations=60,
)

_uncorrected = {"loss": Reinforce(aggregation=Constant(per="episode"))}

CLAIM = Claim(
    name="llamarl/exact",
    paper="arXiv 2505.24034, section 6",
    statement="On samples eight versions old, AIPO ends with more success than the uncorrected policy gradient.",
    recipe=RECIPE,
    arms={
        "aipo": RECIPE,
        "uncorrected": RECIPE.replace(method=_uncorrected),
        "fresh_aipo": RECIPE.replace(method={"staleness": 0}),
        "fresh_uncorrected": RECIPE.replace(method={"staleness": 0, **_uncorrected}),
    },
    expected=Ordering(relations=("aipo > uncorrected by 0.02",)),
    # a policy that samples for itself has ratio 1
    control=Ordering(relations=("fresh_aipo > fresh_uncorrected by 0.01",)),
    seeds=SEEDS,
)
