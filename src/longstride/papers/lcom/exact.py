"""LCOM on known functions, the function drawn too, of a few of many coordinates, from data far from their optimum."""

import numpy as np
import torch
from torch import Tensor, nn

from longstride.claims.claim import Claim
from longstride.claims.worlds import Between
from longstride.core.numbers import Count, Positive, Weight
from longstride.exact.designs import COM, Ascent, Designs
from longstride.exact.experiment import ExactRecipe, State
from longstride.papers.lcom.method import rebuilding
from longstride.setups import design
from longstride.stats import Ordering


class LatentAscent(Ascent):
    """Ascent in the latent space of an autoencoder that is trained beside the model."""

    rate: Positive = 0.1
    latent: Count = 8
    """Size of a latent vector."""
    spread: Weight = 0.1
    """Deviation of the noise that a vector is decoded under."""
    prior: Weight = 0.001
    """Weight of the mean square of latent coordinates."""

    def nets(self, problem: Designs, generator: torch.Generator) -> nn.ModuleDict:
        make = self.trunk.make
        return nn.ModuleDict(
            {
                "value": make(self.latent, 1, generator),
                "encoder": make(problem.dims, self.latent, generator),
                "decoder": make(self.latent, problem.dims, generator),
            }
        )

    def encode(self, nets: nn.ModuleDict, x: Tensor) -> Tensor:
        return nets["encoder"](x)[0]

    def decode(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        return nets["decoder"](point)[0]

    def loss(self, nets: nn.ModuleDict, x: Tensor, y: Tensor, state: State, rng: np.random.Generator) -> Tensor:
        z = self.encode(nets, x)
        noise = self.spread * torch.from_numpy(rng.standard_normal(z.shape, np.float32))
        rebuilt = rebuilding(lambda point: self.decode(nets, point), z, noise, x, self.prior)
        return super().loss(nets, x, y, state, rng) + rebuilt


class LCOM(LatentAscent, COM):
    """The same with COMs' term on latent vectors."""


RECIPE = ExactRecipe(name="lcom/exact", problem=Designs(), method=LCOM(fit=30), iterations=130, every=130)

_plain = RECIPE.replace(method=LatentAscent(fit=30))
_tight = {"method": {"latent": 3}}

CLAIM = Claim(
    name="lcom/exact",
    paper="arXiv 2310.10056, abstract",
    statement="A long climb through latent vectors ends at better designs on a conservative model than on a plain one, each at "
    "its own best step of the climb and the plain one at the best size of its vectors too, in most of the worlds that are "
    "drawn; where every vector has a design, it does not.",
    measure="best",
    recipe=RECIPE,
    arms={
        "lcom": RECIPE,
        "plain": _plain,
        "tight_lcom": RECIPE.replace(**_tight),
        "tight_plain": _plain.replace(**_tight),
    },
    expected=Ordering(relations=("lcom > plain by 0.1",)),
    # vectors of no more numbers than designs have leave no room for one without a design
    control=Ordering(relations=("tight_lcom > tight_plain by 0.1",)),
    reported=Ordering(relations=("lcom > plain in median", "plain > lcom in overestimated")),
    worlds={**design.FUNCTIONS_DRAWN, "problem.inner": Between(low=3, high=6)},
    grid={
        # the shortest end near where they start
        "method.rate": (0.005, 0.015, 0.05, 0.15, 0.5),
        "plain: method.latent": (2, 4, 8, 16, 32),
    },
    scale=(-10.0, 2.0),
    cost="iterations",
    tuning_seeds=(900, 901, 902),
    seeds=tuple(range(1000, 1024)),
)

FINDING = (
    "The best design of a conservative model is at 0.947 and that of a plain one at 0.898 (+0.049 [0.012, 0.093]), by the margin "
    "in 25 % of 24 worlds [12, 45]: half of those with many ripples, none of the valley. What it changes are the others: the "
    "median design is at 0.87 against 0.05, and it promises as much as it keeps. Where vectors are too short to leave the designs, the "
    "plain model is ahead by 0.03."
)
