"""IOM: invariant objective models. Qi, Su, Kumar and Levine, 2022, arXiv 2211.11349.

Optimising a model of the data leads to designs that the data say nothing of, and that the model overrates. Instead of
lowering their values, IOM takes from the model what tells them apart: a representation phi is trained so that the
designs that the optimiser finds look, on average, like those of the data. A design that is too far loses the features
that would make it good, and is predicted to be average, so there is nothing to gain by going there. The loss is

    (f(phi(x)) - y)^2 + lambda |mean over the data of phi(x) - phi(x')|^2,    x' = climb(x)

| place | choice | paper and released code | here |
|---|---|---|---|
| problem | data without the best designs | Design-Bench | `Designs`: Ackley's function on a hidden subspace |
| model | phi, and f on top of it | networks of 2048 | 16 to 16 features by 64 units, 64 units |
| model | distance of the features | a discriminator (paper) or their means (a released variant) | their means |
| model | lambda | by validation: the least error among the most invariant | 10, on seeds 0 to 2 |
| model | x' | 50 steps | 10 steps |
| climb | gradient ascent from the 128 best of the data | 50 steps of 0.05 sqrt(D) | the same |
| measure | best of 128, normalised by the whole pool | the same | the same |

Deviations: means of features take the place of the paper's discriminator; lambda is fixed. The proof is a gradient: with
linear features the penalty and its slope have closed forms, and a lambda that outweighs the fit makes every prediction
the mean of the data.
"""

import numpy as np
import torch
from torch import Tensor, nn

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Weight
from longstride.recipes.setups.designs import Ascent, Designs
from longstride.run.exact import ExactRecipe, State
from longstride.stats import Ordering


class IOM(Ascent):
    """Ascent on a model whose features of climbed designs are, on average, those of the data."""

    weight: Weight = 10.0
    """lambda."""
    features: Count = 16
    """Size of phi."""
    steps: Count = 10
    """Steps of the climb that makes x'."""

    def nets(self, problem: Designs, generator: torch.Generator) -> nn.ModuleDict:
        trunk = self.trunk.replace(depth=1)
        return nn.ModuleDict({
            "features": trunk.make(problem.dims, self.features, generator),
            "value": trunk.make(self.features, 1, generator),
        })  # fmt: skip

    def predict(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        return super().predict(nets, nets["features"](point)[0])

    def loss(self, nets: nn.ModuleDict, x: Tensor, y: Tensor, state: State, rng: np.random.Generator) -> Tensor:
        ours, found = (nets["features"](point)[0] for point in (x, self.climb(nets, x, self.steps)))
        return super().loss(nets, x, y, state, rng) + self.weight * (found - ours.mean(0)).square().mean()


RECIPE = ExactRecipe(name="iom", problem=Designs(), method=IOM(), iterations=90, every=10)

_covered = RECIPE.replace(problem={"dims": 4, "kept": 1.0, "optimum": 0.0})
_plain = {"weight": 0.0}

CLAIM = Claim(
    name="iom",
    paper="arXiv 2211.11349, abstract and table 1",
    statement="Climbing a model with invariant features ends at better designs than climbing the same model without.",
    measure="best",
    recipe=RECIPE,
    arms={
        "iom": RECIPE,
        "ascent": RECIPE.replace(method=_plain),
        "covered_iom": _covered,
        "covered_ascent": _covered.replace(method=_plain),
    },
    expected=Ordering(relations=("iom > ascent by 0.2",)),
    # where the data hold the optimum, and every design makes sense, there is nothing that could be overrated
    control=Ordering(relations=("covered_iom > covered_ascent by 0.2",)),
    seeds=tuple(range(100, 130)),
)
