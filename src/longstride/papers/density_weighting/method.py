"""Weights of steps that are learned as a ratio of densities (`DensityRatio`)."""

import torch
from torch import Tensor, nn

from longstride.control import Batch, RowWeights
from longstride.core.numbers import Positive, Weight
from longstride.models.mlp import Trunk


class RatioNets(nn.Module):
    """f(s) and g(s, a): the logarithm of the ratio is their sum."""

    def __init__(self, trunk: Trunk, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.f = trunk.make(state, 1, generator, last=1e-2)
        self.g = trunk.make(state + action, 1, generator, last=1e-2)

    def logs(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """[B] f(s), g(s, a) and f(s')."""
        here_B, next_B = self.f(torch.cat((batch.state_BS, batch.next_state_BS), -2))[0, ..., 0].chunk(2, -1)
        return here_B, self.g(torch.cat((batch.state_BS, batch.action_BA), -1))[0, ..., 0], next_B


class DensityRatio(RowWeights):
    """w = softmax over the batch of f(s) + g(s, a), each cut to [-cut, cut]; see the paper's page for the loss."""

    side_by_side = True

    trunk: Trunk = Trunk(width=64, depth=2, norm=False, activation="relu")
    """Hidden layers of f and g."""
    kl: Weight = 0.2
    """Factor of sum w log w: the larger, the more alike the weights."""
    flow: Weight = 5.0
    """Factor of the squared difference of what flows out of a state and into the next one."""
    cut: Positive = 1.2
    """The largest |f| and |g| that weights see; so no weight is more than exp(4 cut) times another."""

    def make(self, state: int, action: int, generator: torch.Generator) -> RatioNets:
        return RatioNets(self.trunk, state, action, generator)

    def shares(self, nets: RatioNets, batch: Batch) -> Tensor:
        here_B, action_B, _ = nets.logs(batch)
        return self.log_shares(here_B, action_B).exp()

    def log_shares(self, here_B: Tensor, action_B: Tensor) -> Tensor:
        """[B] log w of f(s) and g(s, a)."""
        return (here_B.clamp(-self.cut, self.cut) + action_B.clamp(-self.cut, self.cut)).log_softmax(-1)

    def loss(self, nets: RatioNets, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        here_B, action_B, next_B = nets.logs(batch)
        log_B = self.log_shares(here_B, action_B)
        share_B = log_B.exp()
        earned = (share_B * batch.return_B).sum(-1)
        spread = (share_B * log_B).sum(-1)
        flow = ((here_B + action_B).exp() - next_B.exp()).square().mean(-1)
        # the share of a batch that would have as much to say if all of it weighed alike
        used = 1 / (share_B.shape[-1] * share_B.square().sum(-1))
        return self.flow * flow + self.kl * spread - earned, {"earned": earned, "flow": flow, "used": used}
