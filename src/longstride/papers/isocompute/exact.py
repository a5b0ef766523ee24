"""IsoCompute on problems that share parameters: rollouts a problem, at equal numbers of samples."""

from longstride.claims.claim import Claim
from longstride.exact.answers import SEEDS
from longstride.exact.experiment import ExactRecipe
from longstride.exact.sharing import Shared, Sharing
from longstride.stats import Ordering

RECIPE = ExactRecipe(name="isocompute/exact", problem=Sharing(), method=Shared(), iterations=48, every=4)
ALONE = {"problems": 1, "chances": (0.03,), "features": 0}
_arms = {
    prefix + str(n): RECIPE.replace(problem=problem, method={"rollouts": n} | method)
    for prefix, problem, method, numbers in (
        ("rollouts_", {}, {}, (8, 32, 256, 1024)),
        ("separate_", {"features": 0}, {}, (8, 256)),
        ("alone_", ALONE, {"batch": 1, "budget": 1024}, (8, 256)),
    )
    for n in numbers
}

CLAIM = Claim(
    name="isocompute/exact",
    paper="IsoCompute Playbook, the findings on the best number of rollouts",
    statement="At much compute 256 rollouts a problem end above 8, at little compute below; alone, or with parameters of "
    "its own, a problem does not care.",
    recipe=RECIPE,
    arms=_arms,
    expected=Ordering(relations=("rollouts_256 > rollouts_8 by 0.02",)),
    # without shared parameters there is nothing to disturb
    control=Ordering(relations=("separate_256 > separate_8 by 0.02", "alone_256 > alone_8 by 0.02")),
    reported=Ordering(
        relations=(
            "rollouts_8 > rollouts_256 in early",
            "rollouts_32 > rollouts_8",
            "rollouts_256 > rollouts_32",
            "rollouts_1024 > rollouts_256",
        )
    ),
    seeds=SEEDS[:30],
)
