"""Policies over real-valued actions: squashed Gaussians, and flows that can have several modes.

What always holds: an action depends on the state, the weights and the generator, and on nothing else. A `Policy` is
asked for K actions a state at once, shape [B, K, A].
"""

import math
from abc import abstractmethod
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.core.component import Component
from longstride.models.mlp import Trunk

LARGEST = 1 - 1e-5
"""Actions of data are cut to this before their log-probability under a squashed Gaussian is taken (OGBench)."""


class Policy(nn.Module):
    """What acts."""

    @abstractmethod
    def sample(self, state_BS: Tensor, generator: torch.Generator, count: int = 1) -> Tensor:
        """[B, K, A] actions, K = `count`."""

    @abstractmethod
    def best(self, state_BS: Tensor, generator: torch.Generator) -> Tensor:
        """[B, A] what the policy does when it is not to explore."""

    @abstractmethod
    def imitation(self, state_BS: Tensor, action_BA: Tensor, generator: torch.Generator) -> Tensor:
        """[B] the loss of behaviour cloning, action by action."""


class PolicyConfig(Component):
    """Family: what a policy is made of."""

    trunk: Trunk = Trunk()
    """Its hidden layers."""

    @abstractmethod
    def make(self, state: int, action: int, generator: torch.Generator) -> Policy:
        """A policy for states of size `state` and actions of size `action`."""


class Gaussian(PolicyConfig):
    """tanh of a Gaussian whose mean and deviation depend on the state (SAC, arXiv 1801.01290)."""

    low: float = -5.0
    """Least log of the deviation."""
    high: float = 2.0
    """Largest log of the deviation."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "GaussianPolicy":
        return GaussianPolicy(self, state, action, generator)


class GaussianPolicy(Policy):
    """See `Gaussian`. Actions are in (-1, 1)."""

    def __init__(self, config: Gaussian, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.net = config.trunk.make(state, 2 * action, generator, last=1e-2)

    def moments(self, state_BS: Tensor) -> tuple[Tensor, Tensor]:
        """[B, A] mean and log of the deviation before the squashing."""
        mean_BA, log_std_BA = self.net(state_BS)[0].chunk(2, -1)
        return mean_BA, log_std_BA.clamp(self.config.low, self.config.high)

    def draw(self, state_BS: Tensor, generator: torch.Generator, count: int = 1) -> tuple[Tensor, Tensor]:
        """[B, K, A] actions, with gradient in the weights, and the [B, K] logs of their densities."""
        mean_BA, log_std_BA = self.moments(state_BS)
        noise_BKA = torch.randn(len(mean_BA), count, mean_BA.shape[1], generator=generator)
        before_BKA = mean_BA[:, None] + log_std_BA.exp()[:, None] * noise_BKA
        normal_BKA = -0.5 * noise_BKA**2 - log_std_BA[:, None] - 0.5 * math.log(2 * math.pi)
        return before_BKA.tanh(), (normal_BKA - _log_slope(before_BKA)).sum(-1)

    def sample(self, state_BS: Tensor, generator: torch.Generator, count: int = 1) -> Tensor:
        return self.draw(state_BS, generator, count)[0]

    def best(self, state_BS: Tensor, generator: torch.Generator) -> Tensor:
        """tanh of the mean."""
        return self.moments(state_BS)[0].tanh()

    def log_density(self, state_BS: Tensor, action_BA: Tensor) -> Tensor:
        """[B] log of the density of given actions; those beyond `LARGEST` count as `LARGEST`."""
        mean_BA, log_std_BA = self.moments(state_BS)
        before_BA = action_BA.clamp(-LARGEST, LARGEST).atanh()
        z_BA = (before_BA - mean_BA) * (-log_std_BA).exp()
        normal_BA = -0.5 * z_BA**2 - log_std_BA - 0.5 * math.log(2 * math.pi)
        return (normal_BA - _log_slope(before_BA)).sum(-1)

    def imitation(self, state_BS: Tensor, action_BA: Tensor, generator: torch.Generator) -> Tensor:
        """[B] -log pi(a | s)."""
        return -self.log_density(state_BS, action_BA)


class Flow(PolicyConfig):
    """A flow from noise to actions, trained by flow matching on straight lines and integrated by Euler's method
    (as in SHARSA, arXiv 2506.04168)."""

    steps: Annotated[int, Field(ge=1)] = 10
    """Euler steps from noise to action."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "FlowPolicy":
        return FlowPolicy(self, state, action, generator)


class FlowPolicy(Policy):
    """See `Flow`. Actions are unbounded: a subgoal is one too."""

    def __init__(self, config: Flow, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.steps, self.action = config.steps, action
        self.net = config.trunk.make(state + action + 1, action, generator, last=1e-2)

    def velocity(self, state_BS: Tensor, x_BA: Tensor, time_B1: Tensor) -> Tensor:
        """[B, A] where a point at `time` (0 noise, 1 action) is moving."""
        return self.net(torch.cat((state_BS, x_BA, time_B1), -1))[0]

    def integrate(self, state_BS: Tensor, noise_BA: Tensor) -> Tensor:
        """[B, A] the action that a noise becomes: x <- x + v(x, k / steps) / steps."""
        x_BA = noise_BA
        for k in range(self.steps):
            time_B1 = torch.full((len(x_BA), 1), k / self.steps)
            x_BA = x_BA + self.velocity(state_BS, x_BA, time_B1) / self.steps
        return x_BA

    def sample(self, state_BS: Tensor, generator: torch.Generator, count: int = 1) -> Tensor:
        noise = torch.randn(len(state_BS) * count, self.action, generator=generator)
        return self.integrate(state_BS.repeat_interleave(count, 0), noise).view(len(state_BS), count, self.action)

    def best(self, state_BS: Tensor, generator: torch.Generator) -> Tensor:
        """A sample: a flow has no mode that could be computed."""
        return self.sample(state_BS, generator)[:, 0]

    def imitation(self, state_BS: Tensor, action_BA: Tensor, generator: torch.Generator) -> Tensor:
        """[B] |v((1 - t) x0 + t a, t) - (a - x0)|^2, averaged over the A coordinates; x0 normal, t uniform."""
        noise_BA = torch.randn(action_BA.shape, generator=generator)
        time_B1 = torch.rand(len(action_BA), 1, generator=generator)
        x_BA = torch.lerp(noise_BA, action_BA, time_B1)
        return (self.velocity(state_BS, x_BA, time_B1) - (action_BA - noise_BA)).square().mean(-1)


def _log_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x)^2), which rounds to log 0 if it is computed as it stands."""
    return 2 * (math.log(2) - x - F.softplus(-2 * x))
