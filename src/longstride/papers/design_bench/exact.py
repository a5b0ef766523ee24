"""Design-Bench's score of COMs and of gradient ascent, on functions that are known."""

from longstride.claims.claim import Claim
from longstride.exact.designs import COM, Ascent, Designs
from longstride.exact.experiment import ExactRecipe
from longstride.exact.worlds.designs import FUNCTIONS
from longstride.stats import Ordering

RECIPE = ExactRecipe(name="design_bench/exact", problem=Designs(), method=COM(), iterations=90, every=10)

_methods = {"com": COM(), "ascent": Ascent()}
_covered = {"dims": 4, "kept": 1.0, "optimum": 0.0}

CLAIM = Claim(
    name="design_bench/exact",
    paper="arXiv 2202.08450, table 2; arXiv 2107.06882",
    statement="By the protocol's score, designs of a conservative model are better than those of gradient ascent.",
    measure="best",
    recipe=RECIPE,
    arms={
        **{
            f"{function}_{name}": RECIPE.replace(method=method, problem={"function": function})
            for function in FUNCTIONS
            for name, method in _methods.items()
        },
        **{f"covered_{name}": RECIPE.replace(method=method, problem=_covered) for name, method in _methods.items()},
    },
    expected=Ordering(relations=("ackley_com > ackley_ascent by 0.2",)),
    # where the data hold the optimum, and every design makes sense, a plain model is right where it is climbed to
    control=Ordering(relations=("covered_com > covered_ascent by 0.2",)),
    seeds=tuple(range(100, 130)),
)
