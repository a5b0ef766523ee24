"""Multilayer perceptrons, several of them computed at once: small networks such as critics and control policies.

What always holds: the members of an ensemble share no number and no gradient, and each computes the same alone as
beside others; initial weights depend on the generator alone. The first axis of a parameter is the member. Networks of R
runs side by side are one network whose parameters have R as their second axis, and its inputs have R as their first.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.core.component import Component
from longstride.core.numbers import Count


class Trunk(Component):
    """The hidden layers of a network. Defaults: what SHARSA (arXiv 2506.04168) uses, narrower."""

    width: Count = 256
    """Units of a hidden layer."""
    depth: Count = 3
    """Hidden layers."""
    norm: bool = True
    """Layer normalisation after each activation."""
    activation: Literal["gelu", "relu"] = "gelu"
    """Between a linear layer and its normalisation."""

    def make(self, inputs: int, outputs: int, generator: torch.Generator, members: int = 1, last: float = 1.0) -> "MLP":
        """Networks of these layers; see `MLP`."""
        return MLP(self, inputs, outputs, generator, members, last)


class MLP(nn.Module):
    """E networks of linear layer, activation and normalisation, with a linear layer at the end.

    Args:
        trunk: the hidden layers.
        inputs: size I of an input.
        outputs: size O of an output.
        generator: where the initial weights come from: uniform with variance 2 / (fan in + fan out).
        members: E.
        last: factor of the variance of the last layer.
    """

    def __init__(
        self, trunk: Trunk, inputs: int, outputs: int, generator: torch.Generator, members: int, last: float
    ) -> None:
        super().__init__()
        sizes = [inputs, *[trunk.width] * trunk.depth, outputs]
        scales = [1.0] * trunk.depth + [last]
        self.trunk = trunk
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        for i, o, scale in zip(sizes, sizes[1:], scales, strict=False):
            limit = math.sqrt(6 * scale / (i + o))
            self.weights.append((torch.rand(members, i, o, generator=generator) * 2 - 1) * limit)
            self.biases.append(torch.zeros(members, 1, o))
        for _ in range(trunk.depth * trunk.norm):
            self.gains.append(torch.ones(members, 1, trunk.width))
            self.shifts.append(torch.zeros(members, 1, trunk.width))

    def forward(self, x: Tensor, frozen: bool = False, apart: bool = False) -> Tensor:
        """[E, B, O] outputs of [B, I] inputs; of runs side by side, [E, R, B, O] of [R, B, I].

        Args:
            x: inputs, the same for all members.
            frozen: the weights take no gradient, the inputs do.
            apart: each member has inputs of its own, [E, B, I] or [E, R, B, I].
        """
        x = x if apart else x.expand(len(self.weights[0]), *x.shape)
        networks, x = x.shape[:-2], x.flatten(0, -3)
        weights, biases, gains, shifts = (
            [(p.detach() if frozen else p).flatten(0, -3) for p in group]
            for group in (self.weights, self.biases, self.gains, self.shifts)
        )
        act = F.gelu if self.trunk.activation == "gelu" else torch.relu_  # what a product gave is nobody else's
        for k in range(self.trunk.depth):
            x = act(torch.baddbmm(biases[k], x, weights[k]))
            if self.trunk.norm:
                x = F.layer_norm(x, x.shape[-1:])
                # gain and shift are folded into the next layer: the same function with one pass less over the rows
                biases[k + 1] = torch.baddbmm(biases[k + 1], shifts[k], weights[k + 1])
                weights[k + 1] = gains[k].mT * weights[k + 1]
        return torch.baddbmm(biases[-1], x, weights[-1]).unflatten(0, networks)


@torch.no_grad()
def polyak(target: nn.Module, online: nn.Module, tau: float) -> None:
    """Moves the weights of `target` by the share `tau` of the way to those of `online`."""
    mine: list[Tensor] = list(target.parameters())
    theirs: list[Tensor] = list(online.parameters())
    torch._foreach_lerp_(mine, theirs, tau)  # pyright: ignore[reportPrivateImportUsage]
