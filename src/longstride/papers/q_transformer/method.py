"""Values of actions coordinate by coordinate (`CoordinateQ`), and what acts by them (`GreedyByCoordinate`)."""

from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor

from longstride.control import Batch, CriticNets, Greedy, PolicyNets, QCritic, QNets
from longstride.control.critics import QEnsemble
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.control.policies import BinNets
from longstride.control.targets import bellman_target, reduce_ensemble
from longstride.core.numbers import Count, Weight
from longstride.models.heads import Head


class CoordinateEnsemble(QEnsemble):
    """E networks from a state and the first coordinates of an action to the values of all bins of the next one. The
    value of an action is that of its last coordinate's bin."""

    net: BinNets  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, head: Head, net: BinNets) -> None:
        super().__init__(head, net)  # pyright: ignore[reportArgumentType]

    def bins(self, state_BS: Tensor, action_BA: Tensor, frozen: bool = False) -> Tensor:
        """[E, B, A, bins, outputs] of each coordinate, given those before it."""
        return self.net(state_BS, self.net.place(self.net.number(action_BA)), frozen)

    def raw(self, state_BS: Tensor, action: Tensor, frozen: bool = False) -> Tensor:
        if action.dim() > state_BS.dim():
            state_NS = state_BS.repeat_interleave(action.shape[-2], -2)
            return self.raw(state_NS, action.flatten(-3, -2), frozen).unflatten(-2, action.shape[-3:-1])
        return taken(self.bins(state_BS, action, frozen), self.net.number(action))[..., -1, :]


def taken(raw: Tensor, number_BA: Tensor) -> Tensor:
    """[E, B, A, outputs] of the bins with these numbers, of [E, B, A, bins, outputs]."""
    return raw.take_along_dim(number_BA[None, ..., None, None], -2).squeeze(-2)


class CoordinateNets(QNets):
    """The networks of a `CoordinateQ`."""

    q: CoordinateEnsemble
    target: CoordinateEnsemble

    def best(self, state_BS: Tensor) -> Tensor:
        """[B, A] the actions whose coordinates have the greatest values, one after the other."""

        def choose(raw: Tensor) -> Tensor:
            return reduce_ensemble(self.q.head.score(raw), self.config.reduction).argmax(-1)

        return self.q.net.build(state_BS, choose)


class CoordinateQ(QCritic):
    """Q-learning with one coordinate of an action at a time, each cut into bins: the value of a coordinate is moved to
    the greatest of the next one, and that of the last one to the reward and the greatest of the first one in the next
    state. So the best of all bins^A actions is found by looking at A times as many as there are bins."""

    side_by_side = True
    slopes = False

    ensemble: Count = 1
    """E: one network, as in the paper."""
    bins: Annotated[int, Field(ge=2)] = 32
    """Of a coordinate."""
    floored: bool = True
    """Whether targets are raised to the return of the data where they are below it."""
    pull: Weight = 1.0
    """Weight of the mean squared distance between `least` and the values of bins that the data did not take, where
    squared errors of the others weigh 1."""
    least: float = 0.0
    """The least return that is possible."""

    @property
    def needs_returns(self) -> bool:
        return self.floored

    def make(self, state: int, action: int, generator: torch.Generator) -> CoordinateNets:
        q, target = (self.make_q(state, action, generator) for _ in range(2))
        return CoordinateNets(self, q, target, None)

    def make_q(self, state: int, action: int, generator: torch.Generator) -> CoordinateEnsemble:
        sizes, outputs = (state, action), self.head.outputs
        net = BinNets(self.trunk, sizes, self.bins, outputs, generator, self.ensemble, last=1e-2)
        return CoordinateEnsemble(self.head, net)

    def loss(
        self, nets: CoordinateNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        number_BA = nets.q.net.number(batch.action_BA)
        raw = nets.q.bins(batch.state_BS, batch.action_BA)
        value, loss = self.head.value(raw), self.head.loss(taken(raw, number_BA), self.target(nets, batch))
        q_loss = loss.mean((-2, -1)).sum(0)
        metrics = {"q": value.take_along_dim(number_BA[None, ..., None], -1).mean((0, -3, -2, -1)), "q_loss": q_loss}
        if not conservative or not self.pull:
            return q_loss, metrics
        other = 1 - torch.nn.functional.one_hot(number_BA, self.bins)
        below = (other * (value - self.least).square()).sum(-1) / (self.bins - 1)
        pulled = below.mean((-2, -1)).sum(0)
        return q_loss + self.pull * pulled, metrics | {"pulled": pulled}

    @torch.no_grad()
    def target(self, nets: CoordinateNets, batch: Batch) -> Tensor:
        """[E, B, A] what the values of each coordinate are moved to."""
        inner = reduce_ensemble(self.head.value(nets.target.bins(batch.state_BS, batch.action_BA)), self.reduction)
        first = nets.target.bins(batch.next_state_BS, batch.action_BA)[..., 0, :, :]  # reads no coordinate
        next_B = reduce_ensemble(self.head.value(first), self.reduction).amax(-1)
        last_B = bellman_target(batch.reward_B, batch.discount_B, next_B)
        target_BA = torch.cat((inner.amax(-1)[..., 1:], last_B[..., None]), -1)
        if self.floored:
            target_BA = target_BA.maximum(batch.return_B[..., None])
        return target_BA.expand(self.ensemble, *target_BA.shape)


class GreedyByCoordinate(Greedy):
    """The best action by `CoordinateQ`; in training one of the policy's with probability `epsilon`: any at all, with
    `BoxPolicy`."""

    needs_discrete = False
    needs_real = True
    reads = (CoordinateQ,)
    side_by_side = True

    def best(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor) -> Tensor:
        assert isinstance(critic, CoordinateNets)
        return critic.best(state_BS)
