"""Particle filtering on tasks that are solved step by step, with a scorer that sees some steps only."""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS
from longstride.exact.experiment import recipe
from longstride.exact.steps import Solve, StepTasks
from longstride.exact.worlds.steps import StepWorld
from longstride.rewards.simulated import StepScorer
from longstride.stats import Ordering
from longstride.strategies.search import Beam, Independent, Particles

RECIPE = recipe(
    "particle_filtering/exact",
    StepTasks(levels=(0.01, 0.03, 0.1), world=StepWorld(length=12), scorer=StepScorer(noise=1.0, every=4)),
    Solve(search=Particles(n=16), tasks=6),
    iterations=10,
)
_searches = {"particles": Particles(n=16), "beam": Beam(n=16, width=2)}
_exact = {"scorer": {"noise": 0.0}}
_hard = _exact | {"levels": (1e-9, 1e-8, 1e-7)}
_even = {"scorer": {"noise": 3.0, "every": 1}}

CLAIM = Claim(
    name="particle_filtering/exact",
    paper="arXiv 2502.01618",
    statement="With a scorer that errs, particles find more answers than a beam for the same tokens.",
    recipe=RECIPE,
    arms={
        **{name: RECIPE.replace(method={"search": s}) for name, s in _searches.items()},
        "beam_of_4": RECIPE.replace(method={"search": Beam(n=16, width=4)}),
        "gibbs": RECIPE.replace(method={"search": Particles(n=16, sweeps=2)}),
        "best_of_16": RECIPE.replace(method={"search": Independent(n=16)}),
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
    seeds=SEEDS,
)
