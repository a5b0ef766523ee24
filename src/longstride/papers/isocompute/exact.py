"""IsoCompute on problems that share parameters: rollouts a problem, at equal numbers of samples."""

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.exact.experiment import ExactRecipe
from longstride.exact.sharing import Shared, Sharing
from longstride.stats import Ordering

RECIPE = ExactRecipe(name="isocompute/exact", problem=Sharing(), method=Shared(), iterations=48, every=16)
_arms = {
    prefix + str(n): RECIPE.replace(problem=problem, method={"rollouts": n})
    for prefix, problem, numbers in (
        ("rollouts_", {}, (8, 32, 256, 1024)),
        ("features_128_", {"features": 128}, (8, 256)),
        ("features_48_", {"features": 48}, (8, 256)),
    )
    for n in numbers
}

CLAIM = Claim(
    name="isocompute/exact",
    paper="IsoCompute Playbook, the findings on the best number of rollouts",
    statement="At much compute 256 rollouts a problem end above 8 where problems share parameters, each at its own best "
    "step, in most of the worlds that are drawn.",
    recipe=RECIPE,
    arms=_arms,
    expected=Ordering(relations=("rollouts_256 > rollouts_8 by 0.02",)),
    # the fewer features there are, the more problems disturb each other
    dose=(
        "features_128_256 > features_128_8",
        "features_48_256 > features_48_8",
        "rollouts_256 > rollouts_8",
    ),
    reported=Ordering(
        relations=(
            "rollouts_8 > rollouts_256 in early",
            "rollouts_32 > rollouts_8",
            "rollouts_256 > rollouts_32",
            "rollouts_1024 > rollouts_256",
        )
    ),
    worlds={
        "problem.problems": Between(low=10, high=40, log=True),
        "problem.features": Between(low=8, high=32, log=True),
        "problem.overlap": Between(low=0.2, high=0.8),
        "problem.chances": Between(low=0.003, high=0.3, log=True, shape=(5,)),
    },
    grid={"method.rate": (0.0625, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)},
    cost="rollouts",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It is open. At 196,608 samples 256 rollouts a problem end ahead of 8 by 0.056 [0.025, 0.089] (0.737 and 0.682), each at the "
    "best of nine steps, but in 65 % of the worlds [50, 78], and in a third of them they are behind. The lead is gone with 128 "
    "features (-0.000), where problems hardly disturb each other, and largest where the problems are hardest (0.085). After the "
    "first 4,096 samples 8 are ahead by 0.207."
)
