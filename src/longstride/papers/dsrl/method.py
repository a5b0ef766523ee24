"""A flow whose noise is chosen (`SteeredFlow`), values of that noise (`NoiseAliased`), and what chooses it by them
(`LatentSAC`)."""

import torch
from torch import Tensor

from longstride.control import Batch, CriticNets, Extraction, FlowPolicy, GaussianPolicy, PolicyNets, TDCritic
from longstride.control.critics import QEnsemble, QNets
from longstride.control.extraction import Actor, soft_loss
from longstride.control.noise import RunNoise
from longstride.control.policies import FlowNets
from longstride.control.targets import reduce_ensemble
from longstride.core.numbers import Positive


class SteeredFlow(FlowPolicy):
    """A flow, and a squashed Gaussian over the noise that it starts from. The flow is what imitates; once it stays as
    it is, an action of any noise is one that the data could have had."""

    side_by_side = True

    steering: GaussianPolicy = GaussianPolicy()
    """What chooses the noise."""
    bound: Positive = 1.5
    """Largest noise in each coordinate, in standard deviations of what the flow was trained from."""

    def make(self, state: int, action: int, generator: torch.Generator) -> "SteeredNets":
        return SteeredNets(self, state, action, generator)


class SteeredNets(FlowNets):
    """See `SteeredFlow`. A choice is noise in units of the bound, so it is in (-1, 1)."""

    def __init__(self, config: SteeredFlow, state: int, action: int, generator: torch.Generator) -> None:
        super().__init__(config, state, action, generator)
        self.bound = config.bound
        self.steering = config.steering.make(state, action, generator)

    def follow(self, state_BS: Tensor, choice_BA: Tensor) -> Tensor:
        """[B, A] the actions that the flow makes of chosen noise."""
        return self.integrate(state_BS, self.bound * choice_BA)

    def sample(self, state_BS: Tensor, noise: RunNoise, count: int = 1) -> Tensor:
        choice_NA = self.steering.sample(state_BS, noise, count).flatten(-3, -2)
        return self.follow(state_BS.repeat_interleave(count, -2), choice_NA).unflatten(-2, (-1, count))

    def greedy(self, state_BS: Tensor, noise: RunNoise) -> Tensor:
        """What the flow makes of the steering's own choice."""
        return self.follow(state_BS, self.steering.greedy(state_BS, noise))


class NoiseNets(QNets):
    """Q of actions with its target network, and Q of noise."""

    def __init__(self, config: "NoiseAliased", q: QEnsemble, target: QEnsemble, of_noise: QEnsemble) -> None:
        super().__init__(config, q, target, None)
        self.of_noise = of_noise

    def choice_score(self, state_BS: Tensor, choice_BA: Tensor) -> Tensor:
        """[B] scores of chosen noise, with gradient in it alone."""
        return reduce_ensemble(self.of_noise.score(state_BS, choice_BA), self.config.followed or self.config.reduction)


class NoiseAliased(TDCritic):
    """Q of the actions that are done, and Q of the noise that the flow makes them of. Each member of the second is
    moved to what the same member of the first says of the action, for noise of the flow's own distribution: so it is
    known for all noise from what is known of actions, which several noises may share."""

    side_by_side = True
    values = (SteeredFlow,)

    def make(self, state: int, action: int, generator: torch.Generator) -> NoiseNets:
        q, target, of_noise = (self.make_q(state, action, generator) for _ in range(3))
        return NoiseNets(self, q, target, of_noise)

    def loss(
        self, nets: NoiseNets, batch: Batch, policy: SteeredNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        loss, metrics = super().loss(nets, batch, policy, noise, conservative)
        with torch.no_grad():
            choice_BA = noise.normal(*batch.action_BA.shape[-2:]) / policy.bound
            q_EB = nets.q.value(batch.state_BS, policy.follow(batch.state_BS, choice_BA))
        raw = nets.of_noise.raw(batch.state_BS, choice_BA)
        distilled = self.head.loss(raw, q_EB).mean(-1).sum(0)
        return loss + distilled, metrics | {"noise_loss": distilled}


class LatentSAC(Extraction):
    """SAC over the noise of a flow: tau log pi(noise) - Q(s, noise). The flow stays as it was cloned."""

    trains = (SteeredFlow,)
    reads = (NoiseAliased,)
    side_by_side = True

    target_entropy: float = 0.0
    """Target of the entropy, per coordinate of the noise in units of its bound; evenly spread it would be log 2."""
    temperature: Positive = 1.0
    """Where the temperature tau starts; its unit is that of the reward."""

    def make(self, policy: PolicyNets) -> Actor:
        return Actor(policy, torch.tensor(self.temperature).log().item())

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(actor.policy, SteeredNets) and isinstance(critic, NoiseNets)
        assert actor.log_temperature is not None
        choice_BKA, log_density_BK = actor.policy.steering.sample_with_density(batch.state_BS, noise)
        score_B = critic.choice_score(batch.state_BS, choice_BKA.squeeze(-2))
        target = self.target_entropy * choice_BKA.shape[-1]
        return soft_loss(score_B, log_density_BK.squeeze(-1), actor.log_temperature, target)
