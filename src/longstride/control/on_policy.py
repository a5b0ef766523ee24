"""On-policy learning: from what the policy has just done, and from nothing else (PPO).

What always holds: an iteration learns from its own episodes alone; during its updates densities and advantages are
compared with those of the networks as they were before the first of them.
"""

import copy

import numpy as np
import torch
from torch import Tensor

from longstride.control.batches import Batch, NStep
from longstride.control.critics import ControlCritic, CriticNets
from longstride.control.data import TransitionStore
from longstride.control.extraction import Actor, Extraction
from longstride.control.noise import RunNoise
from longstride.control.policies import CategoricalPolicy, GaussianPolicy, PolicyNets
from longstride.core.numbers import Positive, Share
from longstride.models.mlp import MLP, Trunk


class ReturnNets(CriticNets):
    """V, and V as it was before the updates of an iteration."""

    def __init__(self, v: MLP) -> None:
        super().__init__()
        self.v, self.before = v, copy.deepcopy(v).requires_grad_(False)
        self.returned: dict[TransitionStore, np.ndarray] = {}
        """[R] lambda-returns of the stores that the updates of an iteration have drawn from."""

    @torch.no_grad()
    def advantage(self, batch: Batch, policy: PolicyNets, noise: RunNoise) -> Tensor:
        """[B] generalised advantages: the return to go over what the state was worth."""
        return batch.return_B - self.before(batch.state_BS)[0, ..., 0]

    def worth(self, state_BS: Tensor) -> Tensor:
        return self.v(state_BS)[0, ..., 0]


class LambdaReturns(ControlCritic):
    """V(s) toward the lambda-return of the episode (see `TransitionStore.lambda_returns`)."""

    scores = False
    on_policy = True
    reads_store = True
    single_steps = True
    side_by_side = True

    trunk: Trunk = Trunk()
    """Hidden layers of V."""
    lam: Share = 0.95
    """lambda: 0 is the reward and the value of the next state, 1 the return of the episode."""

    @property
    def needs_returns(self) -> bool:
        return True

    def make(self, state: int, action: int, generator: torch.Generator) -> ReturnNets:
        return ReturnNets(self.trunk.make(state, 1, generator))

    def returns(self, nets: ReturnNets, data: NStep, store: TransitionStore) -> np.ndarray:
        if store not in nets.returned:
            row_R = np.arange(store.rows)
            state_RS = data.states(store, row_R, store.goal[store.episode_of(row_R)])
            with torch.no_grad():
                value_R = nets.before(torch.from_numpy(state_RS))[0, :, 0].numpy()
            if data.finite:
                value_R[store.last] = 0
            nets.returned[store] = store.lambda_returns(
                value_R, data.discount, self.lam, data.reward_scale, data.reward_shift
            )
        return nets.returned[store]

    def before_updates(self, nets: ReturnNets) -> None:
        nets.before.load_state_dict(nets.v.state_dict())
        nets.returned.clear()

    def loss(
        self, nets: ReturnNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        v_B = nets.v(batch.state_BS)[0, ..., 0]
        loss = (v_B - batch.return_B).square().mean(-1)
        return loss, {"v": v_B.mean(-1), "v_target": batch.return_B.mean(-1), "v_loss": loss}


class Proximal(Extraction):
    """Proximal policy optimisation (arXiv 1707.06347, equation 7): -min(ratio A, clip(ratio, 1 - clip, 1 + clip) A).
    The ratio is that of an action's density now to the one before the updates of the iteration; advantages A are
    centred and scaled in each batch."""

    trains = (GaussianPolicy, CategoricalPolicy)
    needs_scores = False
    on_policy = True
    side_by_side = True

    clip: Positive = 0.2
    """How far a ratio may go from 1 before it counts no more."""

    def make(self, policy: PolicyNets) -> Actor:
        return Actor(policy, target=copy.deepcopy(policy))

    def before_updates(self, actor: Actor) -> None:
        assert actor.target is not None
        actor.target.load_state_dict(actor.policy.state_dict())

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert critic is not None and actor.target is not None
        advantage_B = critic.advantage(batch, actor.policy, noise)
        scaled_B = (advantage_B - advantage_B.mean(-1, keepdim=True)) / (advantage_B.std(-1, keepdim=True) + 1e-8)
        with torch.no_grad():
            before_B = actor.target.imitation_loss(batch.state_BS, batch.action_BA, noise)
        log_ratio_B = before_B - actor.policy.imitation_loss(batch.state_BS, batch.action_BA, noise)
        ratio_B = log_ratio_B.exp()
        loss = -(ratio_B * scaled_B).minimum(ratio_B.clamp(1 - self.clip, 1 + self.clip) * scaled_B).mean(-1)
        clipped = ((ratio_B - 1).abs() > self.clip).float().mean(-1)
        kl = (ratio_B - 1 - log_ratio_B).mean(-1)  # of the policy before to the one now, estimated without bias
        return loss, {"ppo_loss": loss, "advantage": advantage_B.mean(-1), "clipped": clipped, "kl": kl}
