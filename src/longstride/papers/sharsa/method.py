"""A critic of what the data do (`Sarsa`), and goals some steps ahead (`SubgoalAhead`)."""

import torch
from torch import Tensor

from longstride.control import Ahead, Batch, QCritic, QNets
from longstride.control.noise import RunNoise
from longstride.control.policies import PolicyNets
from longstride.control.targets import bellman_target, reduce_ensemble
from longstride.core.numbers import Count
from longstride.models.mlp import MLP

N = 25
"""Steps of an n-step return, and to a subgoal."""


class Sarsa(QCritic):
    """The value of what the data does: V(s) toward Q(s, a) of the target network, Q(s, a) toward r + gamma^h V(s'), and
    no maximum anywhere."""

    side_by_side = True

    def make_v(self, state: int, generator: torch.Generator) -> MLP:
        return self.trunk.make(state, self.head.outputs, generator)

    def loss(
        self, nets: QNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert nets.v is not None
        raw_v, raw_next = nets.v(torch.cat((batch.state_BS, batch.next_state_BS), -2))[0].chunk(2, -2)
        with torch.no_grad():
            target_v_B = reduce_ensemble(nets.target.value(batch.state_BS, batch.action_BA), self.reduction)
            target_q_B = bellman_target(batch.reward_B, batch.discount_B, self.head.value(raw_next))
        raw_q = nets.q.raw(batch.state_BS, batch.action_BA)
        loss_v = self.head.loss(raw_v, target_v_B).mean(-1)
        loss_q = self.head.loss(raw_q, target_q_B.expand(raw_q.shape[:-1])).mean(-1).sum(0)
        means = {"v": target_v_B.mean(-1), "q_target": target_q_B.mean(-1)}
        metrics = means | {"v_loss": loss_v, "q_loss": loss_q}
        return loss_v + loss_q, metrics


class SubgoalAhead(Ahead):
    """What the episode reaches `steps` later."""

    steps: Count = N
