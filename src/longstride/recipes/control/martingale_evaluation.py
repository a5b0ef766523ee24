"""Policy evaluation in continuous time by martingales. Jia and Zhou, 2021, arXiv 2108.06655.

Under the policy that is evaluated, M_t = J(t, X_t) + integral of the reward until t is a martingale, and J is the value
if and only if it is one. The squared temporal difference, which one minimises in discrete time, misses this: summed over
a fine mesh it is the quadratic variation of M, which belongs to the noise and not to the error. What it prefers is a
function that is flat where the state is noisy. Two other uses of the martingale are right, here for J = theta . f with
features f_i, their changes d_i and rewards r_i of a mesh:

| `way` | condition | theta solves |
|---|---|---|
| `loss` | martingale loss: least squares to the rewards to come, G_i | sum f_i (f_i . theta - G_i) = 0 |
| `orthogonality` | dM is orthogonal to the test function f: the least-squares form of TD(0) | sum f_i (d_i . theta + r_i) = 0 |
| `mean_square` | least squares of the temporal difference itself | sum d_i (d_i . theta + r_i) = 0 |

| place | choice | paper | here |
|---|---|---|---|
| problem | `OrnsteinUhlenbeck` | Brownian motion and linear-quadratic control, known values | reward X^2 until 1, known value |
| function | linear, zero at the horizon | parametric families that hold the value | two features, which hold it |
| data | paths on a mesh | one path after the other | 50 an iteration, mesh 0.01, transitions exact |
| update | sums of f and d | stochastic approximation, or solved | solved from all paths so far |

Deviations: the conditions are solved and not followed by stochastic steps; of the test functions only f itself is here
(not traces, nor GTD). Equations after the abstract and the standard theory; `tests/test_recipe_martingale_evaluation.py`
checks them against exact moments, and measures the bias of the mesh.
"""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from longstride.claims.claim import Claim
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Weight
from longstride.envs.exact.chains import Diffusion
from longstride.run.exact import ExactMethod, ExactProblem, ExactRecipe, State
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


class MartingaleEvaluation(ExactMethod):
    """Collects paths and solves a linear condition over all of them."""

    way: Literal["loss", "orthogonality", "mean_square"] = "orthogonality"
    """Which condition."""
    paths: Count = 50
    """An iteration."""
    steps: Count = 100
    """Of the mesh."""

    def start(self, problem: Any, rng: np.random.Generator) -> State:
        if not isinstance(problem, OrnsteinUhlenbeck):
            raise ConfigError("martingale_evaluation evaluates diffusions; take problem = OrnsteinUhlenbeck()")
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
    name="martingale_evaluation", problem=OrnsteinUhlenbeck(), method=MartingaleEvaluation(), iterations=40
)

_arm = RECIPE.replace(every=40)
_quiet = _arm.replace(problem={"noise": 0.0})  # without noise there is no quadratic variation to minimise

CLAIM = Claim(
    name="martingale_evaluation",
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
