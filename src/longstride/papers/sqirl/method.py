"""SQIRL with networks: values that a few backups make of those of the random policy (`FewStepQ`), and a policy that is
settled one step of the episode after the other (`SettledSoFar`)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from longstride.control import Batch, ControlCritic, CriticNets, Extraction, PolicyNets, UniformPolicy
from longstride.control.extraction import Actor
from longstride.control.noise import RunNoise
from longstride.control.policies import DiscreteNets
from longstride.core.errors import ConfigError
from longstride.core.numbers import Count
from longstride.models.mlp import MLP, Trunk


class FewStepNets(CriticNets):
    """Q of the step that is being settled, with K values of each action, and of each step that has been.

    Args:
        k: K.
        q: the network that learns.
        settled: a network for each step of an episode.
    """

    number: Tensor

    def __init__(self, k: int, q: MLP, settled: Sequence[MLP]) -> None:
        super().__init__()
        self.k, self.q = k, q
        self.settled = nn.ModuleList(settled).requires_grad_(False)
        self.register_buffer("number", torch.tensor(0))  # of steps that are settled, the one that learns among them

    def values(self, state_BS: Tensor, net: nn.Module) -> Tensor:
        """[B, K, A] Q^1 to Q^K of all actions."""
        time_B1 = state_BS[:, -1:] / len(self.settled)
        return net(torch.cat((state_BS[:, :-1], time_B1), -1))[0].unflatten(-1, (self.k, -1))

    def step(self, state_BS: Tensor) -> Tensor:
        """[B] which step of its episode a state is of, from 0 on.

        Raises:
            ConfigError: the last number of an observation does not say it.
        """
        step_B = state_BS[:, -1]
        if (step_B != step_B.round()).any() or (step_B < 0).any():
            raise ConfigError(
                f"few_step_q reads the step of an episode in the last number of an observation, which is {step_B[0]:g} "
                "here: set tasks.wrappers={TimeAwareObservation={normalize_time=false}}"
            )
        return step_B.long()

    def greedy(self, state_BS: Tensor) -> Tensor:
        """[B] the number of the best action by Q^K of its step, or by that of the step that learns where its own is not
        settled yet."""
        number_B = torch.zeros(len(state_BS), dtype=torch.long)
        step_B = self.step(state_BS)
        for step in step_B.unique().tolist():
            net = self.settled[step] if step < self.number - 1 else self.q
            here_B = step_B == step
            number_B[here_B] = self.values(state_BS[here_B], net)[:, -1].argmax(-1)
        return number_B

    def score(self, state_BS: Tensor, action: Tensor) -> Tensor:
        each_BA = self.values(state_BS, self.q)[:, -1].detach()
        return (each_BA * action).sum(-1) if action.dim() == 2 else torch.einsum("ba,bka->bk", each_BA, action)


class FewStepQ(ControlCritic):
    """Values for one step i of the episode in each iteration, from episodes that are random from step i on: Q^1 toward
    the return, Q^(j+1)(s, a) toward r + gamma max_a' Q^j(s', a'). What comes before step i is not learned from."""

    discrete = True
    on_policy = True

    trunk: Trunk = Trunk(width=64, depth=2, norm=False, activation="relu")
    """Hidden layers of each network."""
    k: Count = 3
    """K: Q^1 are the values of the random policy, and K - 1 backups follow."""
    steps: Count = 100
    """Most steps that are settled; in iterations beyond, the last of them goes on learning."""

    @property
    def needs_returns(self) -> bool:
        return True

    def make(self, state: int, action: int, generator: torch.Generator) -> FewStepNets:
        q, *settled = (self.trunk.make(state, self.k * action, generator) for _ in range(1 + self.steps))
        return FewStepNets(self.k, q, settled)

    def before_updates(self, nets: FewStepNets) -> None:
        """What has been learned settles its step, and the next one begins from it."""
        before = int(nets.number)
        if before < self.steps:
            if before:
                nets.settled[before - 1].load_state_dict(nets.q.state_dict())
            nets.number += 1

    def loss(
        self, nets: FewStepNets, batch: Batch, policy: PolicyNets, noise: RunNoise, conservative: bool
    ) -> tuple[Tensor, dict[str, Tensor]]:
        counts_B = (nets.step(batch.state_BS) >= nets.number - 1).float()
        taken_BK = torch.einsum("bka,ba->bk", nets.values(batch.state_BS, nets.q), batch.action_BA)
        with torch.no_grad():
            next_BK = nets.values(batch.next_state_BS, nets.q).amax(-1)[:, :-1]
            backed_BK = batch.reward_B[:, None] + batch.discount_B[:, None] * next_BK
            target_BK = torch.cat((batch.return_B[:, None], backed_BK), -1)
        share_B1 = (counts_B / counts_B.sum().clamp(min=1))[:, None]
        loss = (share_B1 * (taken_BK - target_BK).square()).sum()
        return loss, {"q": (share_B1 * taken_BK)[:, -1].sum(), "q_loss": loss, "settled": nets.number.float()}


class SettledSoFar(Extraction):
    """The best action by `FewStepQ` in steps that are settled; after them any action in training, and in tests the best
    by what is learned so far."""

    trains = (UniformPolicy,)
    reads = (FewStepQ,)
    needs_discrete = True
    on_policy = True

    def loss(
        self, actor: Actor, critic: CriticNets | None, batch: Batch, noise: RunNoise
    ) -> tuple[Tensor, dict[str, Tensor]]:
        return self.cloning(actor, batch, noise)

    def act(self, actor: Actor, critic: CriticNets | None, state_BS: Tensor, noise: RunNoise, explore: bool) -> Tensor:
        assert isinstance(critic, FewStepNets) and isinstance(actor.policy, DiscreteNets)
        best_BA = torch.eye(actor.policy.action)[critic.greedy(state_BS)]
        if not explore:
            return best_BA
        other_BA = actor.policy.sample(state_BS, noise).squeeze(-2)
        return torch.where((critic.step(state_BS) < critic.number)[:, None], best_BA, other_BA)
