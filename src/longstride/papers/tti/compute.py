"""TTI's compute: test-time interaction beside longer thoughts and more samples, all tokens counted (plain: see `tti`).

Shen et al. (2025, arXiv 2506.07976, sections 1 and 3) ask what a token at test time is best spent on: one more step in the environment,
one more thought before a step, or one more attempt. The same start and the same trained policy are evaluated under each, on the same
tasks, and what is sampled for a task is counted whatever becomes of it.

| scaled | paper | here |
|---|---|---|
| interaction | longer horizon; "check again" before an answer counts | 8, 16, 24, 32 turns; `check_again` twice and three times |
| thinking in a turn | budget forcing (`Wait`) | `think_on` once and twice: what ends a thought is replaced by `Thought:` |
| attempts | best of n, majority | `best_of` 2 and 4, by majority and by a verifier that knows the truth (pass@n, a bound) |

Deviations: a model of a million parameters whose thoughts are a few words; training is a sixth of that of `tti`.
"""

from longstride.claims.claim import Claim
from longstride.papers.tti import recipe as tti
from longstride.stats import Ordering
from longstride.strategies import Direct
from longstride.strategies.best_of import BestOf, Majority, Verifier
from longstride.strategies.check_again import CheckAgain
from longstride.strategies.think_on import ThinkOn

STRATEGIES = (
    Direct(),
    *(Direct(turns=n) for n in (8, 16, 32)),
    *(CheckAgain(checks=n) for n in (2, 3)),
    *(ThinkOn(times=n) for n in (1, 2)),
    *(BestOf(attempts=n, by=by) for by in (Majority(), Verifier()) for n in (2, 4)),
)
RECIPE = tti.RECIPE.replace(
    name="tti/compute",
    iterations=8,
    episodes_per_iteration=128,
    replay={"keep": 256},
    engine={"processes": 1},
    learner={"lr": 1e-3, "decay_steps": 2000},
    evaluation={"tasks": 90, "every": 8, "baselines": False, "strategies": STRATEGIES},
)

CLAIM = Claim(
    name="tti/compute",
    paper="arXiv 2506.07976, sections 1 and 3: interaction as a dimension of test-time scaling",
    statement="After training, a longer horizon pays more than longer thoughts and than a majority of four attempts.",
    recipe=RECIPE,
    arms={"trained": RECIPE},
    expected=Ordering(
        relations=(
            "trained > trained@direct_8_turns by 0.05",
            "trained > trained@think_on_1",
            "trained@direct_32_turns > trained@best_of_4_by_majority",
        )
    ),
    along="spent_tokens",
    seeds=(23, 24, 25),
)
