"""LCOM: an autoencoder, in whose latent space a model is fitted and climbed."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from longstride.core.numbers import Count, Weight
from longstride.design import ConservativeModel, LeastSquares


def rebuilding(decode: Callable[[Tensor], Tensor], latent: Tensor, noise: Tensor, x: Tensor, prior: float) -> Tensor:
    """The loss of an autoencoder: the mean squared error of [B, S] designs that are decoded from [B, L] vectors under
    noise, and `prior` times the vectors' mean square."""
    return (decode(latent + noise) - x).square().mean() + prior * latent.square().mean()


class LatentModel(LeastSquares):
    """Least squares on the vectors of an autoencoder that is trained beside; the fit gives the encoder no gradient."""

    latent: Count = 16
    """Size of a vector."""
    spread: Weight = 0.1
    """Deviation of the noise that a vector is decoded under."""
    prior: Weight = 0.001
    """Weight of the mean square of the vectors' coordinates."""

    def nets(self, size: int, generator: torch.Generator) -> nn.ModuleDict:
        make = self.trunk.make
        sides = {"encoder": make(size, self.latent, generator), "decoder": make(self.latent, size, generator)}
        return nn.ModuleDict({**super().nets(self.latent, generator), **sides})

    def encode(self, nets: nn.ModuleDict, x: Tensor) -> Tensor:
        return nets["encoder"](x)[0]

    def decode(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        return nets["decoder"](point)[0]

    def loss(
        self, nets: nn.ModuleDict, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        fitted, more = super().loss(nets, x, y, generator)
        latent = self.encode(nets, x)
        noise = self.spread * torch.randn(latent.shape, generator=generator)
        rebuilt = rebuilding(lambda point: self.decode(nets, point), latent, noise, x, self.prior)
        return fitted + rebuilt, more | {"rebuilding": rebuilt.detach()}


class LatentConservativeModel(LatentModel, ConservativeModel):
    """The same with COMs' term on the vectors."""
