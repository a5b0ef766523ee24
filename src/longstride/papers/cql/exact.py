"""What CQL is for: values that no action outside the data can raise (arXiv 2006.04779, theorems 3.1 to 3.3).

Where the data lacks actions, Q-learning takes the maximum over values that nothing corrects, and believes them. The
gap lowers them, so that the value of the learned policy is not overestimated. Where the data holds everything there is
nothing to believe in, and plain values are right.

| place | choice | paper | here |
|---|---|---|---|
| problem | `LoggedWorld` | the theorems' tables; D4RL | 20 states of 5 actions, of which the data holds 2 |
| value | the gap of `control.conservative` | CQL(H), T = 1 | the same, over all actions |
| value | weight | from the theorems' concentration, or 1 to 10 | 0.1 |
| measure | `overestimate` | difference of predicted and true values (table 4) | the same, computed |

Deviations: a table, full batches, and values that start anywhere between 0 and the largest possible. On seeds 0 to 3 plain
values are 2.39 too high and conservative ones 0.15 too low; with data that holds all actions -0.01 and 0.20 too low.
"""

from longstride.claims.claim import Claim
from longstride.exact.experiment import ExactRecipe
from longstride.exact.logged import SEEDS, LoggedQ, LoggedWorld
from longstride.stats import Ordering

RECIPE = ExactRecipe(
    name="cql/exact",
    problem=LoggedWorld(held=2),
    method=LoggedQ(weight=0.1, offline=30),
    iterations=30,
    every=10,
)

_plain = {"weight": 0.0}
_covered = RECIPE.replace(problem=LoggedWorld(samples=20_000))

CLAIM = Claim(
    name="cql/exact",
    paper="arXiv 2006.04779, theorems 3.1 to 3.3",
    statement="Where the data lacks actions, plain values of the learned policy are too high by more than 1 of 10, and "
    "conservative ones are not.",
    recipe=RECIPE,
    arms={
        "cql": RECIPE,
        "plain": RECIPE.replace(method=_plain),
        "covered_cql": _covered,
        "covered_plain": _covered.replace(method=_plain),
    },
    measure="overestimate",
    expected=Ordering(relations=("plain > cql by 1",)),
    # data that holds all actions leaves none to believe in
    control=Ordering(relations=("covered_plain > covered_cql by 1",)),
    reported=Ordering(relations=("cql > plain in value",)),
    seeds=SEEDS,
)
