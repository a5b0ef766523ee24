"""IOM: what its loss adds to least squares."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.core.numbers import Count, Positive, Weight
from longstride.design import LeastSquares
from longstride.models.mlp import MLP


def distance_of_means(data: Tensor, found: Tensor) -> Tensor:
    """The mean square of [B, F] features of designs that were found minus the mean of [B, F] of the data."""
    return (found - data.mean(0)).square().mean()


class InvariantModel(LeastSquares):
    """A score of features of length 1, which are, of designs that a climb finds, to be those of the data. What tells
    them apart is a discriminator that learns beside (as released: least squares, 1 for the data and 0 for what was
    found), or their means."""

    weight: Weight = 1.0
    """lambda: what invariance counts beside the fit."""
    features: Count = 64
    """Size of phi."""
    steps: Count = 10
    """Steps of the climb that makes x' (released: 50)."""
    distance: Literal["discriminator", "means"] = "discriminator"
    """How far features are from each other."""
    discriminator_lr: Positive = 1e-3
    """Rate of the discriminator's Adam, whose first moment forgets by 0.5 (released: the same)."""

    def nets(self, size: int, generator: torch.Generator) -> nn.ModuleDict:
        trunk = self.trunk.replace(depth=1)
        made = {
            "features": trunk.make(size, self.features, generator),
            "value": trunk.make(self.features, 1, generator),
        }
        if self.distance == "discriminator":
            made["discriminator"] = trunk.make(self.features, 1, generator)
        return nn.ModuleDict(made)

    def predict(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        return super().predict(nets, self.phi(nets, point))

    def phi(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        """[B, F] features of length 1."""
        return F.normalize(nets["features"](point)[0], dim=-1)

    def loss(
        self, nets: nn.ModuleDict, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        fitted, _ = super().loss(nets, x, y, generator)
        data, found = self.phi(nets, x), self.phi(nets, self.climbed(nets, x, self.steps))
        if self.distance == "means":
            apart = distance_of_means(data, found)
            return fitted + self.weight * apart, {"distance": apart.detach()}
        net = nets["discriminator"]
        assert isinstance(net, MLP)
        fooled = mistaken(net, data.detach(), found, frozen=True)
        learned = mistaken(net, data.detach(), found.detach(), frozen=False)
        return fitted - self.weight * fooled + learned, {"mistaken": learned.detach()}

    def groups(self, nets: nn.ModuleDict) -> list[dict[str, Any]]:
        fitted = [p for name in ("features", "value") for p in nets[name].parameters()]
        groups: list[dict[str, Any]] = [{"params": fitted, "lr": self.lr}]
        if self.distance == "discriminator":
            judging = list(nets["discriminator"].parameters())
            groups.append({"params": judging, "lr": self.discriminator_lr, "betas": (0.5, 0.999)})
        return groups


def mistaken(discriminator: MLP, data: Tensor, found: Tensor, frozen: bool) -> Tensor:
    """The mean squared error of a discriminator that is to say 1 of [B, F] and 0 of [B, F]; 0.25 where it cannot tell.
    Frozen, it takes no gradient and the features do."""
    of_data, of_found = (discriminator(features, frozen=frozen)[0] for features in (data, found))
    return ((1 - of_data).square().mean() + of_found.square().mean()) / 2
