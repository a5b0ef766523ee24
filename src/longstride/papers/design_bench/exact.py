"""Design-Bench's score of COMs and of gradient ascent, on functions that are known.

The function is drawn too. A model that was fitted to designs that make sense knows nothing of what it costs to leave them;
where that costs nothing, there is nothing to be conservative about.
"""

from longstride.claims.claim import Claim
from longstride.exact.designs import COM, Ascent, Designs
from longstride.exact.experiment import ExactRecipe
from longstride.setups import design
from longstride.stats import Ordering

RECIPE = ExactRecipe(name="design_bench/exact", problem=Designs(), method=COM(fit=30), iterations=80, every=80)

_methods = {"com": RECIPE, "ascent": RECIPE.replace(method=Ascent(fit=30))}
_penalties = (0.0, 0.1)

CLAIM = Claim(
    name="design_bench/exact",
    paper="arXiv 2202.08450, table 2; arXiv 2107.06882",
    statement="By the protocol's score, designs of a conservative model are better than those of gradient ascent, each at its "
    "own best step of the climb and ascent at the best rate of its training too, in most of the worlds that are drawn.",
    measure="best",
    recipe=RECIPE,
    arms={
        **_methods,
        **{
            f"penalty_{k:g}_{name}": arm.replace(problem={"penalty": k})
            for k in _penalties
            for name, arm in _methods.items()
        },
    },
    expected=Ordering(relations=("com > ascent by 0.2",)),
    # the more it costs to leave the designs that make sense, the more it matters to stay
    dose=(*(f"penalty_{k:g}_com > penalty_{k:g}_ascent" for k in _penalties), "com > ascent"),
    reported=Ordering(relations=("com > ascent in median", "ascent > com in overestimated")),
    worlds=design.FUNCTIONS_DRAWN,
    grid={
        # the shortest leave hardly anything of the climb
        "method.rate": (0.002, 0.005, 0.015, 0.05, 0.15, 0.5),
        "ascent: method.lr": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    },
    scale=(-10.0, 2.0),
    cost="iterations",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "A plain model that is trained at its own best rate and climbed in small steps finds designs as good as a conservative "
    "one's: 0.856 and 0.874 (+0.018 [0.003, 0.036]), by the margin of 0.2 in none of 24 worlds, most on the function with many "
    "ripples (0.06). What the conservative model has is that it does not promise too much: -0.06 against 0.02. Where nothing "
    "outside the data is worse it costs 0.09."
)
