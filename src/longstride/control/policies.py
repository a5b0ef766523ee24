"""Policies. Over real-valued actions: squashed Gaussians, Gaussians and single actions, and flows and bins, which can
have several modes; over A discrete actions, each a row of A zeros with a one: a softmax, and all of them alike.

What always holds: an action depends on the state, the weights and the noise, and on nothing else (a memory is part
of the state, see `control.memory`). K actions per state can be sampled at once, shape [B, K, A]. Before B may stand an
axis of runs (see `control.batches`).
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, ClassVar, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from longstride.control.noise import RunNoise
from longstride.core.component import Component
from longstride.core.numbers import Count, Weight
from longstride.models.mlp import Trunk

LARGEST = 1 - 1e-5
"""Actions of the data are clamped to this before their log-density under a squashed Gaussian is taken (OGBench)."""


class PolicyNets(nn.Module):
    """The network of a policy, and how it acts."""

    @abstractmethod
    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        """[B, K, A] actions, K = `count`."""

    def sample_valued(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> tuple[Tensor, Tensor | None]:
        """[B, K, A] actions, and [B, K] what the target of a critic adds to their values; here nothing."""
        return self.sample(state_BS, noise, count), None

    @abstractmethod
    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """[B, A] actions without exploration."""

    @abstractmethod
    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] behaviour-cloning loss of each action."""


class ControlPolicy(Component):
    """Family: what acts."""

    discrete: ClassVar[bool] = False
    """Whether its actions are discrete."""
    boxed: ClassVar[bool] = True
    """Whether its actions lie between -1 and 1."""
    side_by_side: ClassVar[bool] = False
    """Whether it knows an axis of runs before B (see `Batch`). A class says so for itself: what inherits from it may
    compute otherwise."""

    @abstractmethod
    def make(self, state: int, action: int, generator: torch.Generator) -> PolicyNets:
        """A policy for states of size `state` and actions of size `action`."""


class NetworkPolicy(ControlPolicy):
    """A policy with a network."""

    trunk: Trunk = Trunk()
    """Its hidden layers."""


class GaussianPolicy(NetworkPolicy):
    """tanh of a Gaussian whose mean and standard deviation depend on the state (SAC, arXiv 1801.01290)."""

    side_by_side = True

    log_std_min: float = -5.0
    """Least logarithm of the standard deviation."""
    log_std_max: float = 2.0
    """Largest logarithm of the standard deviation."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.log_std_min >= self.log_std_max:
            raise ValueError(f"log_std_max must be above log_std_min ({self.log_std_min}), got {self.log_std_max}")
        return self

    def make(self, state: int, action: int, generator: torch.Generator) -> "GaussianNets":
        return GaussianNets(self, state, action, generator)


class GaussianNets(PolicyNets):
    """See `GaussianPolicy`. Actions are in (-1, 1)."""

    def __init__(self, config: GaussianPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.net = config.trunk.make(state, 2 * action, generator, last=1e-2)

    def moments(self, state_BS: Tensor) -> tuple[Tensor, Tensor]:
        """[B, A] mean and logarithm of the standard deviation, before the squashing."""
        mean_BA, log_std_BA = self.net(state_BS)[0].chunk(2, -1)
        return mean_BA, log_std_BA.clamp(self.config.log_std_min, self.config.log_std_max)

    def sample_with_density(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> tuple[Tensor, Tensor]:
        """[B, K, A] actions, with gradient in the weights, and their [B, K] log-densities."""
        mean_BA, log_std_BA = self.moments(state_BS)
        b, a = mean_BA.shape[-2:]
        noise_BKA, log_std_B1A = noise.normal(b, count, a), log_std_BA.unsqueeze(-2)
        before_BKA = mean_BA.unsqueeze(-2) + log_std_B1A.exp() * noise_BKA
        normal_BKA = -0.5 * noise_BKA**2 - log_std_B1A - 0.5 * math.log(2 * math.pi)
        return before_BKA.tanh(), (normal_BKA - _log_slope(before_BKA)).sum(-1)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        return self.sample_with_density(state_BS, noise, count)[0]

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """tanh of the mean."""
        return self.moments(state_BS)[0].tanh()

    def log_density(self, state_BS: Tensor, action_BA: Tensor) -> Tensor:
        """[B] log-densities of given actions; coordinates beyond `LARGEST` count as `LARGEST`."""
        mean_BA, log_std_BA = self.moments(state_BS)
        before_BA = action_BA.clamp(-LARGEST, LARGEST).atanh()
        z_BA = (before_BA - mean_BA) * (-log_std_BA).exp()
        normal_BA = -0.5 * z_BA**2 - log_std_BA - 0.5 * math.log(2 * math.pi)
        return (normal_BA - _log_slope(before_BA)).sum(-1)

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] -log pi(a | s)."""
        return -self.log_density(state_BS, action_BA)


class SoftNets(PolicyNets):
    """A policy whose actions are worth their entropy too, -temperature * log pi (SAC, arXiv 1812.05905, section 4).

    Args:
        policy: what acts.
        temperature: a scalar, or one a run.
    """

    def __init__(self, policy: GaussianNets, temperature: Tensor) -> None:
        super().__init__()
        self.policy, self.temperature = policy, temperature

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        return self.policy.sample(state_BS, noise, count)

    def sample_valued(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> tuple[Tensor, Tensor | None]:
        action_BKA, log_density_BK = self.policy.sample_with_density(state_BS, noise, count)
        return action_BKA, -self.temperature[..., None, None] * log_density_BK

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        return self.policy.greedy(state_BS, noise)

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        return self.policy.imitation_loss(state_BS, action_BA, noise)


class NormalPolicy(NetworkPolicy):
    """A Gaussian whose mean is in (-1, 1) and whose standard deviation is the same in every state (as in the released
    code of IQL, arXiv 2110.06169). What is drawn beyond the box is moved to its border. So actions of the data at the
    border are as dense as others, which those of a squashed Gaussian are not."""

    side_by_side = True

    log_std_min: float = -5.0
    """Least logarithm of the standard deviation."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "NormalNets":
        return NormalNets(self, state, action, generator)


class NormalNets(PolicyNets):
    """See `NormalPolicy`. The standard deviation starts at 1."""

    def __init__(self, config: NormalPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config = config
        self.net = config.trunk.make(state, action, generator, last=1e-2)
        self.log_std = nn.Parameter(torch.zeros(1, 1, action))  # members, rows, A: as the biases of the network

    def moments(self, state_BS: Tensor) -> tuple[Tensor, Tensor]:
        """[B, A] mean, and the logarithm of the standard deviation, which broadcasts to it."""
        return self.net(state_BS)[0].tanh(), self.log_std[0].clamp(min=self.config.log_std_min)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        mean_BA, log_std_BA = self.moments(state_BS)
        b, a = mean_BA.shape[-2:]
        drawn_BKA = mean_BA.unsqueeze(-2) + log_std_BA.unsqueeze(-2).exp() * noise.normal(b, count, a)
        return drawn_BKA.clamp(-1, 1)

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """The mean."""
        return self.moments(state_BS)[0]

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] -log pi(a | s), before anything is moved to the border."""
        mean_BA, log_std_BA = self.moments(state_BS)
        z_BA = (action_BA - mean_BA) * (-log_std_BA).exp()
        return (0.5 * z_BA**2 + log_std_BA + 0.5 * math.log(2 * math.pi)).sum(-1)


class DeterministicPolicy(NetworkPolicy):
    """One action a state, with Gaussian noise around it where it explores (TD3, arXiv 1802.09477)."""

    side_by_side = True

    noise: Weight = 0.1
    """Standard deviation of the noise; an action goes from -1 to 1."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "DeterministicNets":
        return DeterministicNets(self, state, action, generator)


class DeterministicNets(PolicyNets):
    """See `DeterministicPolicy`. `std` and `clip` are the standard deviation and the bound of its noise."""

    def __init__(self, config: DeterministicPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.std, self.clip = config.noise, math.inf
        self.net = config.trunk.make(state, action, generator, last=1e-2)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        action_BA = self.greedy(state_BS, noise)
        noise_BKA = self.std * noise.normal(action_BA.shape[-2], count, action_BA.shape[-1])
        return (action_BA.unsqueeze(-2) + noise_BKA.clamp(-self.clip, self.clip)).clamp(-1, 1)

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """tanh of the network."""
        return self.net(state_BS)[0].tanh()

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] mean over the coordinates of the squared distance."""
        return (self.greedy(state_BS, noise) - action_BA).square().mean(-1)


class FlowPolicy(NetworkPolicy):
    """A flow from noise to actions, trained by flow matching on straight lines and integrated by Euler's method
    (as in SHARSA, arXiv 2506.04168)."""

    boxed = False
    side_by_side = True

    steps: Count = 10
    """Euler steps from noise to action."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "FlowNets":
        return FlowNets(self, state, action, generator)


class FlowNets(PolicyNets):
    """See `FlowPolicy`. Actions are unbounded, since a subgoal can be an action."""

    def __init__(self, config: FlowPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.steps, self.action = config.steps, action
        self.net = config.trunk.make(state + action + 1, action, generator, last=1e-2)

    def velocity(self, state_BS: Tensor, x_BA: Tensor, time_B1: Tensor) -> Tensor:
        """[B, A] velocity of a point at `time` (0 is noise, 1 an action)."""
        return self.net(torch.cat((state_BS, x_BA, time_B1), -1))[0]

    def integrate(self, state_BS: Tensor, noise_BA: Tensor) -> Tensor:
        """[B, A] the actions that noise becomes: x <- x + v(x, k / steps) / steps."""
        x_BA = noise_BA
        for k in range(self.steps):
            time_B1 = torch.full((*x_BA.shape[:-1], 1), k / self.steps)
            x_BA = x_BA + self.velocity(state_BS, x_BA, time_B1) / self.steps
        return x_BA

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        drawn = noise.normal(state_BS.shape[-2] * count, self.action)
        return self.integrate(state_BS.repeat_interleave(count, -2), drawn).unflatten(-2, (-1, count))

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """A sample: the mode of a flow cannot be computed."""
        return self.sample(state_BS, noise).squeeze(-2)

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] |v((1 - t) x0 + t a, t) - (a - x0)|^2, averaged over the A coordinates; x0 normal, t uniform."""
        noise_BA, time_B1 = noise.normal(*action_BA.shape[-2:]), noise.uniform(action_BA.shape[-2], 1)
        x_BA = torch.lerp(noise_BA, action_BA, time_B1)
        return (self.velocity(state_BS, x_BA, time_B1) - (action_BA - noise_BA)).square().mean(-1)


class BinNets(nn.Module):
    """E networks that take the coordinates of an action one after the other: from a state and the coordinates before,
    numbers for each bin of the next one. The bins of a coordinate lie evenly from -1 to 1, both ends among them.

    Args:
        trunk: hidden layers.
        sizes: of a state and of an action.
        bins: of a coordinate.
        outputs: N, the numbers for each bin.
        generator: where the initial weights come from.
        members: E.
        last: factor of the variance of the last layer.
    """

    def __init__(
        self,
        trunk: Trunk,
        sizes: tuple[int, int],
        bins: int,
        outputs: int,
        generator: torch.Generator,
        members: int = 1,
        last: float = 1.0,
    ) -> None:
        super().__init__()
        state, self.action = sizes
        self.bins = bins
        self.net = trunk.make(state + 2 * self.action, bins * outputs, generator, members, last)

    def forward(self, state_BS: Tensor, action_BA: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, A, bins, N] for each coordinate of an action, given those before it."""
        before_BAA = action_BA.unsqueeze(-2) * torch.ones(self.action, self.action).tril(-1)
        state_BAS = state_BS.unsqueeze(-2).expand(*before_BAA.shape[:-1], -1)
        x = torch.cat((state_BAS, before_BAA, torch.eye(self.action).expand_as(before_BAA)), -1)
        return self.net(x.flatten(-3, -2), frozen).unflatten(-2, (-1, self.action)).unflatten(-1, (self.bins, -1))

    def build(self, state_BS: Tensor, choose: Callable[[Tensor], Tensor]) -> Tensor:
        """[B, A] actions; `choose` gives the [B] number of a coordinate's bin from [E, B, bins, N]."""
        action_BA = torch.zeros(*state_BS.shape[:-1], self.action)
        for k, one_A in enumerate(torch.eye(self.action)):  # coordinates that are not chosen yet are 0
            raw = self.net(torch.cat((state_BS, action_BA, one_A.expand_as(action_BA)), -1))
            action_BA[..., k] = self.place(choose(raw.unflatten(-1, (self.bins, -1))))
        return action_BA

    def number(self, action_BA: Tensor) -> Tensor:
        """[B, A] numbers of the bins that are nearest; what is beyond the box is moved to its border."""
        return ((action_BA.clamp(-1, 1) + 1) / 2 * (self.bins - 1)).round().long()

    def place(self, number: Tensor) -> Tensor:
        """[...] where the bins of these numbers lie."""
        return 2 * number / (self.bins - 1) - 1


class BinsPolicy(NetworkPolicy):
    """A softmax over the bins of each coordinate, given the coordinates before it: any distribution of whole actions,
    as fine as its bins."""

    side_by_side = True

    bins: Annotated[int, Field(ge=2)] = 32
    """Of a coordinate."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "BinsNets":
        return BinsNets(self, state, action, generator)


class BinsNets(PolicyNets):
    """See `BinsPolicy`."""

    def __init__(self, config: BinsPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.net = BinNets(config.trunk, (state, action), config.bins, 1, generator, last=1e-2)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        state_NS = state_BS.repeat_interleave(count, -2)
        drawn = self.net.build(state_NS, lambda raw: noise.choice(raw[0, ..., 0].softmax(-1), 1).squeeze(-1))
        return drawn.unflatten(-2, (-1, count))

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """The likeliest bin of each coordinate, given those before it."""
        return self.net.build(state_BS, lambda raw: raw[0, ..., 0].argmax(-1))

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] -log pi(a | s) of the nearest bins: the sum over coordinates."""
        number_BA = self.net.number(action_BA)
        log_BAN = self.net(state_BS, self.net.place(number_BA))[0, ..., 0].log_softmax(-1)
        return -log_BAN.take_along_dim(number_BA[..., None], -1)[..., 0].sum(-1)


class BoxPolicy(ControlPolicy):
    """Every action between -1 and 1 alike. It has nothing to learn: what explores where a critic acts."""

    side_by_side = True

    def make(self, state: int, action: int, generator: torch.Generator) -> "BoxNets":
        return BoxNets(action)


class BoxNets(PolicyNets):
    """See `BoxPolicy`."""

    def __init__(self, action: int) -> None:
        super().__init__()
        self.action = action

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        return 2 * noise.uniform(state_BS.shape[-2], count, self.action) - 1

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """A sample."""
        return self.sample(state_BS, noise).squeeze(-2)

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] -log pi(a | s)."""
        return torch.full(action_BA.shape[:-1], self.action * math.log(2))


class DiscreteNets(PolicyNets):
    """The network of a policy over A discrete actions.

    Args:
        action: A.
    """

    def __init__(self, action: int) -> None:
        super().__init__()
        self.action = action

    @abstractmethod
    def logits(self, state_BS: Tensor) -> Tensor:
        """[B, A] logarithms of the probabilities, up to a constant."""

    def every(self, state_BS: Tensor) -> Tensor:
        """[B, A, A] all actions, for each state."""
        return torch.eye(self.action).expand(*state_BS.shape[:-1], -1, -1)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        share_BA = self.logits(state_BS).softmax(-1)
        return torch.eye(self.action)[noise.choice(share_BA, count)]

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """The likeliest action."""
        return torch.eye(self.action)[self.logits(state_BS).argmax(-1)]

    def imitation_loss(self, state_BS: Tensor, action_BA: Tensor, noise: RunNoise) -> Tensor:
        """[B] -log pi(a | s)."""
        return -(self.logits(state_BS).log_softmax(-1) * action_BA).sum(-1)


class CategoricalPolicy(NetworkPolicy):
    """Discrete actions with the probabilities of a softmax."""

    discrete = True
    side_by_side = True

    def make(self, state: int, action: int, generator: torch.Generator) -> "CategoricalNets":
        return CategoricalNets(self, state, action, generator)


class CategoricalNets(DiscreteNets):
    """See `CategoricalPolicy`."""

    def __init__(self, config: CategoricalPolicy, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__(action)
        self.net = config.trunk.make(state, action, generator, last=1e-2)

    def logits(self, state_BS: Tensor) -> Tensor:
        return self.net(state_BS)[0]


class UniformPolicy(ControlPolicy):
    """Every discrete action alike. It has nothing to learn: what explores where a critic acts (`extraction.Greedy`)."""

    discrete = True
    side_by_side = True

    def make(self, state: int, action: int, generator: torch.Generator) -> "UniformNets":
        return UniformNets(action)


class UniformNets(DiscreteNets):
    """See `UniformPolicy`."""

    def logits(self, state_BS: Tensor) -> Tensor:
        return torch.zeros(*state_BS.shape[:-1], self.action)


def _log_slope(x: Tensor) -> Tensor:
    """log(1 - tanh(x)^2), which as written would round to log 0 for large x."""
    return 2 * (math.log(2) - x - F.softplus(-2 * x))
