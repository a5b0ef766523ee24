"""Martingale evaluation of an Ornstein-Uhlenbeck process, whose value is known."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Positive, Weight
from longstride.exact.experiment import ExactMethod, ExactProblem, ExactRecipe, State
from longstride.exact.worlds.chains import Diffusion
from longstride.stats import Ordering


class OrnsteinUhlenbeck(ExactProblem):
    """The value of a policy under which the state is an Ornstein-Uhlenbeck process.

    Measures: `error` of the value, relative (see `Diffusion.error`); `slope`, the weight of the state's feature, 1 in
    the value.
    """

    reversion: Positive = 1.0
    """Drift back to 0."""
    noise: Weight = 1.0
    """Deviation of the noise in a unit of time."""
    spread: Positive = 1.0
    """Deviation of the state at the start."""

    @property
    def diffusion(self) -> Diffusion:
        return Diffusion(self.reversion, self.noise, 1.0, self.spread)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        theta = solution["theta"]
        return {"error": self.diffusion.error(theta), "slope": float(theta[0])}


class MartingaleEvaluation(ExactMethod[OrnsteinUhlenbeck]):
    """Collects paths and solves a linear condition over all of them."""

    way: Literal["loss", "orthogonality", "mean_square"] = "orthogonality"
    """Which condition."""
    paths: Count = 50
    """An iteration."""
    steps: Count = 100
    """Of the mesh."""

    def start(self, problem: OrnsteinUhlenbeck, rng: np.random.Generator) -> State:
        return {"matrix": np.zeros((2, 2)), "vector": np.zeros(2), "theta": np.zeros(2)}

    def sums(self, diffusion: Diffusion, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The condition `matrix @ theta = vector` of paths [N, steps + 1], as sums over paths and mesh."""
        dt = diffusion.horizon / self.steps
        f = diffusion.features(np.linspace(0, diffusion.horizon, self.steps + 1), x)
        now, change, reward = f[:, :-1], np.diff(f, axis=1), x[:, :-1] ** 2 * dt
        if self.way == "loss":
            test, fitted, target = now, now, reward[:, ::-1].cumsum(1)[:, ::-1]
        else:
            test, fitted, target = (now if self.way == "orthogonality" else change), change, -reward
        return np.einsum("nid,nie->de", test, fitted), np.einsum("nid,ni->d", test, target)

    def step(self, problem: OrnsteinUhlenbeck, state: State, rng: np.random.Generator) -> State:
        diffusion = problem.diffusion
        matrix, vector = self.sums(diffusion, diffusion.paths(self.paths, self.steps, rng))
        matrix, vector = state["matrix"] + matrix, state["vector"] + vector
        return {"matrix": matrix, "vector": vector, "theta": np.linalg.solve(matrix, vector)}


RECIPE = ExactRecipe(
    name="martingale_evaluation/exact", problem=OrnsteinUhlenbeck(), method=MartingaleEvaluation(), iterations=40
)

_arm = RECIPE.replace(every=40)
_quiet = _arm.replace(problem={"noise": 0.0})  # without noise there is no quadratic variation to minimise

CLAIM = Claim(
    name="martingale_evaluation/exact",
    paper="arXiv 2108.06655, abstract",
    statement="On a fine mesh the least squared temporal difference is far from the value, which the martingale's "
    "orthogonality finds; without noise both find it.",
    recipe=_arm,
    arms={
        "orthogonality": _arm,
        "loss": _arm.replace(method={"way": "loss"}),
        "mean_square": _arm.replace(method={"way": "mean_square"}),
        "coarse_orthogonality": _arm.replace(method={"steps": 4}),
        "coarse_mean_square": _arm.replace(method={"steps": 4, "way": "mean_square"}),
        "quiet_orthogonality": _quiet,
        "quiet_mean_square": _quiet.replace(method={"way": "mean_square"}),
    },
    measure="error",
    expected=Ordering(relations=("mean_square > orthogonality by 0.3",)),
    control=Ordering(relations=("quiet_mean_square > quiet_orthogonality by 0.3",)),
    seeds=tuple(range(100, 140)),
)
