"""Codes of actions that know the state (`VQCodes`)."""

import math

import torch
from torch import Tensor, nn

from longstride.control import ActionCodes, Batch, CodeNets
from longstride.core.numbers import Count, Weight
from longstride.models.mlp import Trunk


class VQCodes(ActionCodes):
    """A VQ-VAE of actions, given the state: an encoder makes a vector of state and action, the nearest of K vectors is
    its code, and a decoder makes an action of state and code. So a few codes are enough: they may mean other actions in
    other states."""

    side_by_side = True

    size: Count = 128
    """D, of a vector."""
    trunk: Trunk = Trunk(width=512, depth=2, norm=False, activation="relu")
    """Hidden layers of encoder and decoder."""
    commitment: Weight = 1.0
    """Weight of the encoder's squared distance to the code, where the code's to the encoder weighs 1."""
    knows_state: bool = True
    """Whether encoder and decoder see the state; if not, a code is the same action everywhere."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "VQNets":
        return VQNets(self, state, action, generator)


class VQNets(CodeNets):
    """See `VQCodes`."""

    def __init__(self, config: VQCodes, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__()
        self.config, size = config, config.size
        self.encoder = config.trunk.make(state + action, size, generator)
        self.decoder = config.trunk.make(state + size, action, generator)
        limit = math.sqrt(3 / config.count)
        drawn = torch.rand(1, config.count, size, generator=generator)  # members, K, D: as the weights of a network
        self.codebook = nn.Parameter((2 * drawn - 1) * limit)

    def seen(self, state_BS: Tensor) -> Tensor:
        """[B, S] what is known of the state."""
        return state_BS if self.config.knows_state else torch.zeros_like(state_BS)

    def vector(self, state_BS: Tensor, action_BA: Tensor) -> Tensor:
        """[B, D] what the encoder makes of an action."""
        return self.encoder(torch.cat((self.seen(state_BS), action_BA), -1))[0]

    def nearest(self, vector_BD: Tensor) -> Tensor:
        """[B, K] the code whose vector is nearest."""
        return torch.eye(self.config.count)[torch.cdist(vector_BD, self.codebook[0]).argmin(-1)]

    def made(self, state_BS: Tensor, vector_BD: Tensor) -> Tensor:
        """[B, A] what the decoder makes of a vector."""
        return self.decoder(torch.cat((self.seen(state_BS), vector_BD), -1))[0]

    def encode(self, state_BS: Tensor, action_BA: Tensor) -> Tensor:
        return self.nearest(self.vector(state_BS, action_BA))

    def decode(self, state_BS: Tensor, code_BK: Tensor) -> Tensor:
        return self.made(state_BS, code_BK @ self.codebook[0])

    def loss(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """|decoded - a|^2, a sum over coordinates, with the gradient of the code's vector given to the encoder's, and
        the mean squared distances between the two vectors, each with its gradient on one side."""
        vector_BD = self.vector(batch.state_BS, batch.action_BA)
        code_BK = self.nearest(vector_BD.detach())
        nearest_BD = code_BK @ self.codebook[0]
        made_BA = self.made(batch.state_BS, vector_BD + (nearest_BD - vector_BD).detach())
        error = (made_BA - batch.action_BA).square().sum(-1).mean(-1)
        commitment = (nearest_BD.detach() - vector_BD).square().mean((-2, -1))
        moved = (nearest_BD - vector_BD.detach()).square().mean((-2, -1))
        share_K = code_BK.mean(-2)
        used = torch.special.entr(share_K).sum(-1).exp()  # as many codes as would be used if all of them were alike
        return error + self.config.commitment * commitment + moved, {"error": error, "used": used}
