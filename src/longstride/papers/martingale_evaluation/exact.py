"""Martingale evaluation of an Ornstein-Uhlenbeck process, whose value is known."""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
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
_square, _fine = {"method": {"way": "mean_square"}}, {"method": {"steps": 256}}
_doses = {f"noise_{noise:g}": _arm.replace(problem={"noise": noise}) for noise in (0.0, 0.3, 3.0)}

CLAIM = Claim(
    name="martingale_evaluation/exact",
    paper="arXiv 2108.06655, abstract",
    statement="The least squared temporal difference is far from the value, which the martingale's orthogonality finds from as "
    "many paths, each on its own best mesh, in most of the worlds that are drawn.",
    recipe=_arm,
    arms={
        "orthogonality": _arm,
        "mean_square": _arm.replace(**_square),
        "loss": _arm.replace(method={"way": "loss"}),
        # the mesh of the paper's warning is fine
        "fine_orthogonality": _arm.replace(**_fine),
        "fine_mean_square": _arm.replace(**_fine).replace(**_square),
        **{f"{noise}_orthogonality": arm for noise, arm in _doses.items()},
        **{f"{noise}_mean_square": arm.replace(**_square) for noise, arm in _doses.items()},
    },
    measure="error",
    lower_is_better=True,
    expected=Ordering(relations=("mean_square > orthogonality by 0.1",)),
    # without noise there is no quadratic variation to minimise
    dose=tuple(f"{noise}_mean_square > {noise}_orthogonality" for noise in _doses),
    reported=Ordering(relations=("fine_mean_square > fine_orthogonality by 0.3", "orthogonality > loss")),
    worlds={
        "problem.noise": Between(low=0.3, high=3.0, log=True),
        "problem.reversion": Between(low=0.3, high=3.0, log=True),
        "problem.spread": Between(low=0.3, high=3.0, log=True),
    },
    grid={"method.steps": (1, 2, 3, 4, 8, 16, 32, 64, 128)},
    # of 50 paths each
    cost="iterations",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1040)),
)

FINDING = (
    "It holds in 80 % of the worlds [65, 90], and the mean square is ahead in none: its error is 0.33 and "
    "orthogonality's 0.03 (+0.31 [0.23, 0.39]), each on its best mesh of nine. The mean square's best is three "
    "steps, where the quadratic variation is small and the mesh itself costs; on a fine mesh of 256 it is 0.69 "
    "off. The faster the state reverts, the farther off it stays."
)
