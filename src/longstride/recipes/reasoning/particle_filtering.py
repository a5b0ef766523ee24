"""Particle filtering at test time. Puri et al., 2025, "A Probabilistic Inference Approach to Inference-Time Scaling of
LLMs using Particle-Based Monte Carlo Methods", arXiv 2502.01618.

Beam search takes the scorer at its word: what ranks low is gone, also where scores hardly differ. Particles are drawn in
proportion to the odds of their scores, so nothing is lost where the scorer says nothing, and much where it is sure.

| place | choice | paper | here |
|---|---|---|---|
| policy | steps | Qwen2.5-Math and Llama-3 by lines of their solutions | 12 steps, right with a known chance |
| score | scorer | a process reward model, after every step | sees clearly at every fourth step |
| search | `Particles` | weights are the odds of the newest score, drawn after every step | the same, systematic draws |
| search | `Beam` | n / M kept, M = 4 | M of 2 and 4: both were tried, 2 is the better one |
| answer | by score | the highest | the same, everywhere |

All searches make 16 continuations a step, so they spend the same tokens. The steps between two looks are where a beam
loses: their scores are nearly equal, it keeps the highest all the same, and after a few steps all of its partials
descend from one. Without noise both solve all tasks. That a beam keeps as many partials as ever, also those that it
knows to be wrong, costs it success then only where right steps are rare (`hard`).

Deviations: an exact world instead of a language model; the noise of its scorer is unbiased, and the scorer knows how
well it sees. `even` is the other case, a scorer that sees equally badly at all steps: there the claim does not say who
is ahead, and a beam is not behind. Read as: the specification; the abstract;
the code of its library, its_hub 1.2.0.
"""

from longstride.claims.claim import Claim
from longstride.envs.exact.steps import StepScorer, StepWorld
from longstride.recipes.setups import arms, steps
from longstride.recipes.setups.steps import Solve, StepTasks
from longstride.stats import Ordering
from longstride.strategies.search import Beam, BestOf, Particles

RECIPE = steps.recipe(
    "particle_filtering",
    StepTasks(levels=(0.01, 0.03, 0.1), world=StepWorld(length=12), scorer=StepScorer(noise=1.0, every=4)),
    Solve(search=Particles(n=16), tasks=6),
)
_searches = {"particles": Particles(n=16), "beam": Beam(n=16, width=2)}
_exact = {"scorer": {"noise": 0.0}}
_hard = _exact | {"levels": (1e-9, 1e-8, 1e-7)}
_even = {"scorer": {"noise": 3.0, "every": 1}}

CLAIM = Claim(
    name="particle_filtering",
    paper="arXiv 2502.01618",
    statement="With a scorer that errs, particles find more answers than a beam for the same tokens.",
    recipe=RECIPE,
    arms={
        **{name: RECIPE.replace(method={"search": s}) for name, s in _searches.items()},
        "beam_of_4": RECIPE.replace(method={"search": Beam(n=16, width=4)}),
        "gibbs": RECIPE.replace(method={"search": Particles(n=16, sweeps=2)}),
        "best_of_16": RECIPE.replace(method={"search": BestOf(n=16)}),
        **{f"exact_{name}": RECIPE.replace(problem=_exact, method={"search": s}) for name, s in _searches.items()},
        **{f"hard_{name}": RECIPE.replace(problem=_hard, method={"search": s}) for name, s in _searches.items()},
        **{f"even_{name}": RECIPE.replace(problem=_even, method={"search": s}) for name, s in _searches.items()},
    },
    expected=Ordering(relations=("particles > beam by 0.1",)),
    control=Ordering(relations=("exact_particles > exact_beam by 0.02",)),
    reported=Ordering(
        relations=(
            "particles > beam_of_4",
            "particles > best_of_16",
            "particles > gibbs",
            "even_beam > even_particles",
            "hard_particles > hard_beam",
        )
    ),
    seeds=arms.SEEDS,
)
