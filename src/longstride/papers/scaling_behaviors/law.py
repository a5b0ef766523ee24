"""The power law of the error by training, log L = -k log X + E, and whether it predicts the rest of a run.

With your own: `longstride fit RUN --law rising_power --y error --rival sigmoid --until X` for one model (its exponent is
-k), and `longstride fit RUNS --law sized_power --y error` for models of several sizes.
"""

from longstride.claims.claim import Claim
from longstride.papers.scaling_behaviors.recipe import RECIPE as REUSED
from longstride.run.extrapolation import Extrapolation, Reading
from longstride.scaling import RisingPower, Sigmoid
from longstride.stats import Ordering

RECIPE = REUSED.replace(
    name="scaling_behaviors/law",
    curriculum={"type": "uniform"},
    evaluation={"every": 1},
)

_EARLIER = {"third": 0.35, "fifth": 0.2}

ARM = Extrapolation(
    name="scaling_behaviors/forecast",
    run=RECIPE.replace(
        iterations=30,
        episodes_per_iteration=64,
        learner={"batch_samples": 32},
        evaluation={"tasks": 150},
    ),
    y="error",
    readings={
        "power": Reading(law=RisingPower(), until=0.5),
        "sigmoid": Reading(law=Sigmoid(), until=0.5),
        **{f"power_{of}": Reading(law=RisingPower(), until=until) for of, until in _EARLIER.items()},
        **{f"sigmoid_{of}": Reading(law=Sigmoid(), until=until) for of, until in _EARLIER.items()},
    },
    seeds=4,
)

CLAIM = Claim(
    name="scaling_behaviors/law",
    paper="arXiv 2509.25300, equation of the power law and the prediction within a model",
    statement="The first half of a run, fitted by a power law of its error, foretells the rest more closely than fitted by a "
    "sigmoid, and by the more the more of the run is known.",
    recipe=ARM,
    arms={"run": ARM},
    measure="closer",
    expected=Ordering(relations=("run > run@sigmoid by 0.02",)),
    # of few points the law with fewer parameters is the better guess whatever the curve is; of more, if the curve is its own
    dose=(*(f"run@power_{of} > run@sigmoid_{of}" for of in reversed(_EARLIER)), "run > run@sigmoid"),
    reported=Ordering(relations=("run > run@sigmoid in within",)),
    seeds=tuple(range(452, 462)),
    tuning_seeds=(930, 931),
    grid={"run.learner.lr": (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)},
    tuned_by="reached",
    lower_is_better=True,
    cost="env_steps",
    scale=(-1.0, 1.0),
)
