"""IOM on known functions, from data far from their optimum."""

import numpy as np
import torch
from torch import Tensor, nn

from longstride.claims.claim import Claim
from longstride.core.numbers import Count, Weight
from longstride.exact.designs import Ascent, Designs
from longstride.exact.experiment import ExactRecipe, State
from longstride.papers.iom.method import distance_of_means
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
        return nn.ModuleDict(
            {
                "features": trunk.make(problem.dims, self.features, generator),
                "value": trunk.make(self.features, 1, generator),
            }
        )

    def predict(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        return super().predict(nets, nets["features"](point)[0])

    def loss(self, nets: nn.ModuleDict, x: Tensor, y: Tensor, state: State, rng: np.random.Generator) -> Tensor:
        ours, found = (nets["features"](point)[0] for point in (x, self.climb(nets, x, self.steps)))
        return super().loss(nets, x, y, state, rng) + self.weight * distance_of_means(ours, found)


RECIPE = ExactRecipe(name="iom/exact", problem=Designs(), method=IOM(), iterations=90, every=10)

_covered = RECIPE.replace(problem={"dims": 4, "kept": 1.0, "optimum": 0.0})
_plain = {"weight": 0.0}

CLAIM = Claim(
    name="iom/exact",
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
