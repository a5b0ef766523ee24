"""A claim on a problem that takes no time: a climb that halves what is left of it, and one that slips."""

from typing import Any

import numpy as np

from longstride.claims.claim import Claim
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe
from longstride.stats import Ordering

RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 1.9)


class Hill(ExactProblem):
    """Success is 1 at the top."""

    top: float = 1.0
    noise: float | None = 0.0

    def measures(self, solution):
        return {"success": 1 - abs(float(solution["x"]) - self.top), "samples": float(solution["samples"])}


class Climber(ExactMethod[Hill]):
    """Takes a share of what is left, and slips back."""

    rate: float = 0.3
    slip: float = 0.0
    samples: int = 8

    def start(self, problem, rng):
        return {"x": np.zeros(()), "samples": np.zeros(())}

    def step(self, problem, state, rng):
        x = state["x"] + self.rate * (problem.top - state["x"]) - self.slip + (problem.noise or 0.0) * rng.normal()
        return {"x": x, "samples": state["samples"] + self.samples}


RECIPE = ExactRecipe(name="climbing", problem=Hill(), method=Climber(), iterations=4)
SLIPS = RECIPE.replace(method={"slip": 0.3})

HARDLY = {name: RECIPE.replace(method={"slip": slip}) for name, slip in (("hardly", 0.1), ("more", 0.11))}
"""Arms of a control: one slips hardly more than the other."""


def claim(**changes: Any) -> Claim:
    """That slipping costs success."""
    if "arms" in changes:
        changes = changes | {"arms": HARDLY | changes["arms"]}
    settings: dict[str, Any] = {
        "name": "climbing",
        "paper": "none",
        "statement": "Who slips stays lower.",
        "recipe": RECIPE,
        "arms": {"firm": RECIPE, "slips": SLIPS} | HARDLY,
        "expected": Ordering(relations=("firm > slips by 0.1",)),
        "control": Ordering(relations=("hardly > more by 0.1",)),
        "seeds": (0, 1, 2, 3, 4),
    }
    return Claim(**(settings | changes))


CLAIM = claim(grid={"method.rate": RATES}, tuning_seeds=(10, 11), cost="samples")
