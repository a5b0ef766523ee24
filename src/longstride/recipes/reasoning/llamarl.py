"""LlamaRL: asynchronous RL with a one-sided importance weight (AIPO). Wu et al., 2025, "LlamaRL: A Distributed
Asynchronous Reinforcement Learning Framework", arXiv 2505.24034.

Generation never waits for training, so what is trained on was sampled by a policy several updates old. AIPO weighs every
token by min(pi / mu, rho), mu the policy that sampled: large weights are cut, small ones are kept, and no token loses
its gradient.

| place | choice | paper (Llama 3, 8B to 405B) | here |
|---|---|---|---|
| roll out | asynchronous | as stale as the executors make it, a few versions | exactly 8 versions |
| plan | groups of one task | several answers a prompt | 8 answers, 16 tasks |
| score | right or wrong | rule-based, and reward models | 1, 0, and 0.5 for one answer that is good and not right |
| credit | `GroupRelative` | r - mean of the group | the same |
| update | `CISPO` with no floor | min(pi / mu, rho) A grad log pi, rho from 2 to 10 | the same, rho 4 |

Deviations: tasks are enumerable (`setups.arms`), the good answer is likely at first, and the right ones are rare. What
the paper is mostly about, throughput on hundreds of GPUs, is not shown. Bias, as the tests measure it: for answers of one
token the expected update is the exact gradient of the policy as it is now while no ratio is above rho, whatever the
staleness; above, an answer weighs rho mu instead of pi; uncorrected it weighs mu.
"""

from longstride.claims.claim import Claim
from longstride.methods import Constant, GroupRelative, Reinforce
from longstride.methods.ratios import CISPO
from longstride.recipes.setups import arms
from longstride.stats import Ordering

RECIPE = arms.recipe(
    "llamarl",
    arms.Answers(tasks=tuple((chance,) for chance in (0.02, 0.05, 0.1, 0.1) * 4), vocabulary=32, decoy=0.7),
    arms.Grouped(
        credit=GroupRelative(normalize="none"),
        loss=CISPO(aggregation=Constant(per="episode"), max=4.0),
        rate=64.0,
        staleness=8,
    ),
    iterations=60,
)

_uncorrected = {"loss": Reinforce(aggregation=Constant(per="episode"))}

CLAIM = Claim(
    name="llamarl",
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
    seeds=arms.SEEDS,
)
