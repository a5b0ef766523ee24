"""Critics that read a value out of a velocity field, in several steps (`FlowReturns`).

What always holds: the field is trained along straight lines from noise to the target, a number; what policies follow is a
plain network that is trained toward the read-out, so a policy's gradient goes through no integration.
"""

import torch
from torch import Tensor, nn

from longstride.control import Batch, ControlCritic, CriticNets, PolicyNets
from longstride.control.critics import Pace, QEnsemble
from longstride.control.noise import RunNoise
from longstride.control.targets import Reduction, bellman_target, reduce_ensemble
from longstride.core.numbers import Count, Positive
from longstride.models.heads import HLGauss, Scalar
from longstride.models.mlp import MLP, Trunk, polyak


class Field(nn.Module):
    """E velocity fields that carry a number, by the state and the action.

    Args:
        seen: how networks see a number.
        net: takes state, action, cosine of the time and what is seen of the number.
        steps: of Euler's method.
    """

    def __init__(self, seen: HLGauss, net: MLP, steps: int) -> None:
        super().__init__()
        self.seen, self.net, self.steps = seen, net, steps

    def velocity(self, state_BS: Tensor, action_BA: Tensor, number_EB: Tensor, time_B: Tensor) -> Tensor:
        """[E, B] velocities of numbers, those of members apart, at a time from 0 (noise) to 1 (value)."""
        given_BI = torch.cat((state_BS, action_BA, time_B.cos()[..., None]), -1)
        given_EBI = given_BI.expand(len(number_EB), *given_BI.shape)
        return self.net(torch.cat((given_EBI, self.seen.encode(number_EB)), -1), apart=True)[..., 0]

    @torch.no_grad()
    def carried(self, state_BS: Tensor, action_BA: Tensor, number_EB: Tensor) -> Tensor:
        """[E, B] what numbers become: x <- x + v(x, k / steps) / steps."""
        for k in range(self.steps):
            time_B = torch.full_like(number_EB[0], k / self.steps)
            number_EB = number_EB + self.velocity(state_BS, action_BA, number_EB, time_B) / self.steps
        return number_EB


class FlowValues(CriticNets):
    """The networks of `FlowReturns`: the field, its target network, and what policies follow."""

    def __init__(self, field: Field, target: Field, q: QEnsemble) -> None:
        super().__init__()
        self.field, self.target, self.q = field, target.requires_grad_(False), q
        target.load_state_dict(field.state_dict())

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        return self.q.score(state_BS, action).mean(0)


class FlowReturns(ControlCritic):
    """Q by flow matching (floq, arXiv 2509.06863): noise x0, uniform on a part of the range of values, is carried by a field
    v to Q(s, a), which is the mean over several x0. With y = r + gamma^h Q'(s', a') of the target field, a number,

        sum over x0 of (v((1 - t) x0 + t y, t) - (y - x0))^2,   t uniform

    A plain network of each member, in the squared error to the current Q, is what policies raise.
    """

    side_by_side = True

    trunk: Trunk = Trunk()
    """Hidden layers of each network."""
    seen: HLGauss = HLGauss(bins=50, sigma=16.0)
    """How the field sees a number; its range has to hold all values."""
    coverage: Positive = 0.1
    """Share of that range, in both directions from 0, that noise is drawn from."""
    noises: Count = 8
    """Numbers x0 of a value."""
    steps: Count = 8
    """Of Euler's method, from x0 to the value."""
    ensemble: Count = 2
    """Fields, and plain networks."""
    reduction: Reduction = "mean"
    """How the fields' numbers become one, in targets."""
    tau: Pace = 0.005
    """Share of the way to the field that its target network moves after each step."""

    def make(self, state: int, action: int, generator: torch.Generator) -> FlowValues:
        def field() -> Field:
            net = self.trunk.make(state + action + 1 + self.seen.bins, 1, generator, self.ensemble)
            return Field(self.seen, net, self.steps)

        plain = self.trunk.make(state + action, 1, generator, self.ensemble)
        return FlowValues(field(), field(), QEnsemble(Scalar(), plain))

    def loss(
        self, nets: CriticNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert isinstance(nets, FlowValues)
        b, m = batch.reward_B.shape[-1], self.noises
        state_NS, action_NA, next_NS = (
            x.repeat_interleave(m, -2) for x in (batch.state_BS, batch.action_BA, batch.next_state_BS)
        )
        start_N, next_start_N = (self._start(noise.uniform(b * m)) for _ in range(2))
        time_N = noise.uniform(b * m)
        with torch.no_grad():
            next_NA = policy.sample(batch.next_state_BS, noise, m).flatten(-3, -2)
            next_EN = nets.target.carried(next_NS, next_NA, self._each(next_start_N))
            next_B = reduce_ensemble(next_EN, self.reduction).unflatten(-1, (b, m)).mean(-1)
            target_B = bellman_target(batch.reward_B, batch.discount_B, next_B)
            target_N = target_B.repeat_interleave(m, -1)
            q_B = nets.field.carried(state_NS, action_NA, self._each(start_N)).mean(0).unflatten(-1, (b, m)).mean(-1)
        number_N = torch.lerp(start_N, target_N, time_N)
        off_EN = nets.field.velocity(state_NS, action_NA, self._each(number_N), time_N) - (target_N - start_N)
        flow = off_EN.square().unflatten(-1, (b, m)).sum(-1).mean(-1).sum(0)
        plain = (nets.q.value(batch.state_BS, batch.action_BA) - q_B).square().mean(-1).sum(0)
        td_error = (q_B - target_B).square().mean(-1)
        metrics = {"q": q_B.mean(-1), "q_target": target_B.mean(-1), "flow": flow, "plain": plain, "td_error": td_error}
        return flow + plain, metrics

    def after_step(self, nets: CriticNets) -> None:
        assert isinstance(nets, FlowValues)
        polyak(nets.target, nets.field, self.tau)

    def _start(self, share_N: Tensor) -> Tensor:
        """[N] noise, of uniform shares."""
        low, high = share_N.new_tensor([self.seen.low, self.seen.high])
        return self.coverage * torch.lerp(low, high, share_N)

    def _each(self, number_N: Tensor) -> Tensor:
        """[E, N] the same for each member."""
        return number_N.expand(self.ensemble, *number_N.shape)
