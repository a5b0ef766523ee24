"""A critic that also knows what looks like its data (`Adversarial`), and a policy that stays there (`Supported`)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from longstride.control import Batch, Extraction, GaussianPolicy, PolicyNets, QNets, TDCritic
from longstride.control.critics import CriticNets, QEnsemble
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.control.policies import GaussianNets
from longstride.core.numbers import Share, Weight
from longstride.models.mlp import MLP


class AdversarialNets(QNets):
    """Q, its target network, the discriminator and the second generator."""

    def __init__(
        self, config: "Adversarial", q: QEnsemble, target: QEnsemble, discriminator: MLP, other: GaussianNets
    ) -> None:
        super().__init__(config, q, target, None)
        self.discriminator, self.other = discriminator, other

    def likeness(self, state_BS: Tensor, action_BA: Tensor, frozen: bool = False) -> Tensor:
        """[B] logits of D.

        Args:
            state_BS: states.
            action_BA: actions, which take a gradient.
            frozen: D takes none.
        """
        return self.discriminator(torch.cat((state_BS, action_BA), -1), frozen)[0, ..., 0]


class Adversarial(TDCritic):
    """The values of the policy, and beside them a discriminator of its data and a second generator."""

    side_by_side = True

    generator: GaussianPolicy = GaussianPolicy()
    """The second generator."""
    other: Share = 0.5
    """Its share of the mixture that has to look like the data; 0: the policy has to, alone."""

    def make(self, state: int, action: int, generator: torch.Generator) -> AdversarialNets:
        q, target = (self.make_q(state, action, generator) for _ in range(2))
        discriminator = self.trunk.make(state + action, 1, generator, last=1e-2)
        return AdversarialNets(self, q, target, discriminator, self.generator.make(state, action, generator))

    def loss(
        self, nets: AdversarialNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = super().loss(nets, batch, policy, noise, conservative)
        with torch.no_grad():
            policy_BA = policy.sample(batch.state_BS, noise).squeeze(-2)
        other_BA = nets.other.sample(batch.state_BS, noise).squeeze(-2)
        told = self.told(
            nets.likeness(batch.state_BS, batch.action_BA),
            nets.likeness(batch.state_BS, policy_BA),
            nets.likeness(batch.state_BS, other_BA.detach()),
        )
        made = -F.logsigmoid(nets.likeness(batch.state_BS, other_BA, frozen=True)).mean(-1)
        return loss + told + made, metrics | {"told": told, "made": made}

    def told(self, data_B: Tensor, policy_B: Tensor, other_B: Tensor) -> Tensor:
        """The cross-entropy of D, a scalar, by its logits of the data's actions and of both generators'."""
        mixture = (1 - self.other) * F.logsigmoid(-policy_B).mean(-1) + self.other * F.logsigmoid(-other_B).mean(-1)
        return -F.logsigmoid(data_B).mean(-1) - mixture


class Supported(Extraction):
    """Follows the gradient of the critic where the action looks like the data, and that of D everywhere."""

    trains = (GaussianPolicy,)
    reads = (Adversarial,)
    side_by_side = True

    weight: Weight = 1.0
    """Weight of log D, beside Q in units of mean |Q|."""

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(critic, AdversarialNets)
        action_BA = actor.policy.sample(batch.state_BS, noise).squeeze(-2)
        like_B = F.logsigmoid(critic.likeness(batch.state_BS, action_BA, frozen=True))
        score_B = critic.score(batch.state_BS, action_BA)
        with torch.no_grad():
            known_B = F.logsigmoid(critic.likeness(batch.state_BS, batch.action_BA))
            ratio_B = (like_B - known_B).exp()
            scale = 1 / score_B.abs().mean(-1).clamp(min=1e-6)
        loss = -scale * (ratio_B * score_B).mean(-1) - self.weight * like_B.mean(-1)
        return loss, {"score": score_B.mean(-1), "like": like_B.mean(-1), "ratio": ratio_B.mean(-1)}
