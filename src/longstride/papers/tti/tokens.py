"""TTI's compute: from eight turns on, are further turns, attempts, thoughts or checks the best use of a token? (see `tti`).

Shen et al. (2025, arXiv 2506.07976, sections 1 and 3) ask what a token at test time is best spent on: one more step in the environment,
one more thought before a step, or one more attempt. One trained policy is evaluated within 8 turns, and then spends more in four ways, on the
same tasks. What is sampled for a task is counted whatever becomes of it, and ways are compared where they have spent as many tokens.

| way | paper | here |
|---|---|---|
| `turns` | longer horizon | 12, 16, 24, 32 turns |
| `samples` | best of n, majority | a majority of 2, 4, 8 episodes of 8 turns |
| `thoughts` | budget forcing (`Wait`) | `think_on` once and twice: what ends a thought is replaced by `Thought:` |
| `checks` | "check again" before an answer counts | twice and three times |

The control is the site on which everything stands on the first page (`SHEET`), where there is nothing to walk to.

Deviations: a model of half a million parameters whose thoughts are a few words; training is a fifth of that of `tti`.
"""

from longstride.claims.claim import Claim
from longstride.papers.tti import recipe as tti
from longstride.setups.sites import SHEET, SHORT
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.best_of import BestOf, Majority
from longstride.strategies.check_again import CheckAgain
from longstride.strategies.think_on import ThinkOn

WAYS = {
    "turns": tuple(Direct(turns=n) for n in (12, 16, 24, 32)),
    "samples": tuple(BestOf(attempts=n, by=Majority()) for n in (2, 4, 8)),
    "thoughts": tuple(ThinkOn(times=n) for n in (1, 2)),
    "checks": tuple(CheckAgain(checks=n) for n in (2, 3)),
}
RECIPE = tti.RECIPE.replace(
    name="tti/tokens",
    iterations=8,
    episodes_per_iteration=256,
    budget=tti.SLOWLY,
    test_budget={"turns": SHORT},
    replay={"keep": 512},
    engine={"processes": 1},
    learner={"decay_steps": 2000, "threads": 1},
    evaluation={
        "tasks": 120,
        "every": 8,
        "baselines": False,
        "strategies": (Direct(), *(strategy for way in WAYS.values() for strategy in way)),
    },
)

CLAIM = Claim(
    name="tti/tokens",
    paper="arXiv 2506.07976, sections 1 and 3: interaction as a dimension of test-time scaling",
    statement="From eight turns on, tokens spent on further turns bring more success than as many spent on a majority of attempts.",
    recipe=RECIPE,
    arms={"trained": RECIPE, "sheet": RECIPE.replace(tasks=SHEET)},
    expected=Ordering(relations=("trained@turns > trained@samples by 0.05",)),
    control=Ordering(relations=("sheet@turns > sheet@samples by 0.05",)),
    reported=Ordering(relations=("trained@turns > trained@thoughts", "trained@turns > trained@checks")),
    ways={name: ("direct", *(strategy.name for strategy in way)) for name, way in WAYS.items()},
    cost="spent_tokens",
    equal_cost=True,
    along="spent_tokens",
    grid={"learner.lr": (3e-5, 6e-5, 1.25e-4, 2.5e-4, 5e-4, 1e-3, 2e-3, 4e-3)},
    tuning={"evaluation.strategies": [{"type": "direct"}], "episodes_per_iteration": 128},
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(360, 372)),
)
