"""Models of what designs are worth, and the climb on them. A design is a point x [S] with mean 0 and deviation 1 in
every coordinate, a score is y with mean 0 and deviation 1.

What always holds: the loss of a batch is one number whose gradient is the one that each network is to follow, also
where two of them play against each other; a climb takes each point along its own gradient and gives no gradient itself.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from longstride.core.component import Component
from longstride.core.numbers import Count, Positive, Weight
from longstride.models.mlp import Trunk


def climb(predict: Callable[[Tensor], Tensor], point: Tensor, steps: int, rate: float) -> Tensor:
    """[B, S] points after steps of gradient ascent on `predict` ([B] of [B, S]), whose length is `rate` times the
    gradient times the root of S (COMs, arXiv 2107.06882, appendix)."""
    rate = rate * point.shape[1] ** 0.5
    for _ in range(steps):
        point = point.detach().requires_grad_()
        point = point + rate * torch.autograd.grad(predict(point).sum(), point)[0]
    return point.detach()


def overestimation(predict: Callable[[Tensor], Tensor], point: Tensor, steps: int, rate: float) -> Tensor:
    """The mean of f(x') - f(x), x' being where a climb takes x (COMs, equation 2)."""
    return (predict(climb(predict, point, steps, rate)) - predict(point)).mean()


class ScoreModel(Component):
    """Family: networks that predict scores, the loss that they are fitted by, and the space that is climbed in."""

    trunk: Trunk = Trunk(width=256, depth=2, norm=False, activation="relu")
    """Hidden layers of every network (released: 2 of 2048)."""
    lr: Positive = 3e-4
    """Rate of Adam (released: the same)."""
    rate: Positive = 0.05
    """Rate of a step of the climb (released: the same; 2 for choices)."""

    @abstractmethod
    def nets(self, size: int, generator: torch.Generator) -> nn.ModuleDict:
        """All that is trained, for designs of S numbers; `value` maps a point that is climbed on to a score."""

    @abstractmethod
    def loss(
        self, nets: nn.ModuleDict, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """A scalar: the loss of a batch [B, S] with scores [B]; and what else is of interest, by name."""

    def predict(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        """[B] scores of points of the space that is climbed in."""
        return nets["value"](point)[0, :, 0]

    def encode(self, nets: nn.ModuleDict, x: Tensor) -> Tensor:
        """Points of the space that is climbed in, of [B, S] designs: the designs themselves."""
        return x

    def decode(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        """[B, S] designs."""
        return point

    def climbed(self, nets: nn.ModuleDict, point: Tensor, steps: int) -> Tensor:
        """Points after steps of the climb on this model."""
        return climb(lambda p: self.predict(nets, p), point, steps, self.rate)

    def groups(self, nets: nn.ModuleDict) -> list[dict[str, Any]]:
        """What Adam is given: networks with rates of their own."""
        return [{"params": list(nets.parameters()), "lr": self.lr}]


class LeastSquares(ScoreModel):
    """A network that is fitted by least squares: gradient ascent of Design-Bench (arXiv 2202.08450)."""

    def nets(self, size: int, generator: torch.Generator) -> nn.ModuleDict:
        return nn.ModuleDict({"value": self.trunk.make(size, 1, generator)})

    def loss(
        self, nets: nn.ModuleDict, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return (self.predict(nets, self.encode(nets, x).detach()) - y).square().mean(), {}


class ConservativeModel(LeastSquares):
    """Conservative objective models (COMs; Trabucco et al., 2021, arXiv 2107.06882, equation 2): the loss of least
    squares grows by alpha (f(x') - f(x)), and alpha by its dual: it rises while the mean of f(x') - f(x) is above
    `limit`. Defaults are those of the released code but for `steps`."""

    limit: float = 0.5
    """Overestimation that is tolerated, in deviations of scores (released: 0.5; 2 for choices)."""
    steps: Count = 10
    """Steps of the climb that makes x' (released: 50)."""
    alpha: Positive = 1.0
    """What alpha starts at (released: 1 and 0.1)."""
    alpha_lr: Weight = 0.01
    """Rate of Adam for log alpha."""

    def nets(self, size: int, generator: torch.Generator) -> nn.ModuleDict:
        dual = nn.ParameterDict({"log_alpha": torch.tensor(float(self.alpha)).log()})
        return nn.ModuleDict({**super().nets(size, generator), "dual": dual})

    def loss(
        self, nets: nn.ModuleDict, x: Tensor, y: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        fitted, more = super().loss(nets, x, y, generator)
        point = self.encode(nets, x).detach()
        gap = overestimation(lambda p: self.predict(nets, p), point, self.steps, self.rate)
        alpha = nets["dual"].get_parameter("log_alpha").exp()
        loss = fitted + alpha.detach() * gap + alpha * (self.limit - gap.detach())
        return loss, more | {"overestimation": gap.detach(), "alpha": alpha.detach()}

    def groups(self, nets: nn.ModuleDict) -> list[dict[str, Any]]:
        dual = list(nets["dual"].parameters())
        rest = [p for name, net in nets.items() if name != "dual" for p in net.parameters()]
        return [{"params": rest, "lr": self.lr}, {"params": dual, "lr": self.alpha_lr}]
