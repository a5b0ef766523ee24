"""A critic of turns with two pairs of Q and V at work."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from longstride.core.trajectory import Trajectory, Turn
from longstride.learner.critics import CriticBatch, Moves
from longstride.learner.networks import TrainedNetworks, TurnEncoder, TurnHeads, fill_in
from longstride.models.mlp import Trunk, polyak

if TYPE_CHECKING:
    from longstride.papers.archer.method import DoubleValue


class ActionValues(nn.Module):
    """Two independent values of the state before a turn, V, and of the action taken in it, Q, on one encoder, which is
    trained too: hidden layers are as wide as its hidden states.

    Args:
        encoder, device: see `TurnEncoder`.
        seed: see `TurnHeads`.
    """

    def __init__(self, encoder: str, seed: int, device: str = "cpu") -> None:
        super().__init__()
        self.encoder = TurnEncoder(encoder, device)
        self.heads = TurnHeads(self.encoder.size, seed, Trunk(width=self.encoder.size, depth=2)).to(device)

    def forward(self, turns: Sequence[Turn]) -> tuple[Tensor, Tensor]:
        """[2, N] values Q and V of N turns, at least one."""
        q_2_N, v_2_N = self.heads(self.encoder(turns))
        return q_2_N.cpu(), v_2_N.cpu()

    @torch.no_grad()
    def estimate(self, turns: Sequence[Turn]) -> None:
        """Fills in `action_value` and `value` of turns, each the smaller of the two."""
        if turns:
            fill_in(turns, *(value_2_N.amin(0) for value_2_N in self(turns)))


class DoubleCritic:
    """A `DoubleValue` at work. Each of its two pairs minimises, over stored turns (s, a, r, s') of whatever policy,

        (Q(s, a) - r - discount V_target(s'))^2 + (V(s) - Q_target(s, a'))^2,   a' proposed in s by the policy as it is

    An estimate is the smaller of the two. An episode that a budget truncated goes on from its last state (see `GAE`).
    """

    def __init__(self, config: "DoubleValue", seed: int, device: str = "cpu") -> None:
        self.config = config
        self.online = ActionValues(config.encoder, seed, device)
        self.target = ActionValues(config.encoder, seed, device).requires_grad_(False)
        self._trained = TrainedNetworks({"online": self.online, "target": self.target}, config.lr, clip=1.0)
        self.state, self.load_state = self._trained.state, self._trained.load_state

    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        self.online.estimate([turn for t in trajectories for turn in t.turns])

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from what is stored, and then estimates what is trained."""
        c, rng, losses = self.config, batch.rng, [0.0, 0.0]
        records = [record for record in batch.experience.records if record.length and not record.stop.failed]
        stored = batch.experience.read(rng.sample(records, min(c.episodes, len(records))))
        pairs = list(zip(stored, batch.experience.propose(stored, rng.getrandbits(62)), strict=True))
        for _ in range(c.steps if pairs else 0):
            turns, *targets = self.targets(rng.sample(pairs, min(c.batch_episodes, len(pairs))))
            errors = [(x - y).square().mean(1).sum() for x, y in zip(self.online(turns), targets, strict=True)]
            self._trained.step(errors[0] + errors[1])
            polyak(self.target, self.online, c.tau)
            losses = [total + error.item() / c.steps for total, error in zip(losses, errors, strict=True)]
        self.estimate(batch.trajectories)
        return {"action_value_loss": losses[0], "value_loss": losses[1]}

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        return {}

    def targets(self, episodes: Sequence[tuple[Trajectory, Trajectory]]) -> tuple[list[Turn], Tensor, Tensor]:
        """The N turns that were played, and what Q and V should be there, [2, N] each."""
        moves = Moves.of([played for played, _ in episodes], self.config.discount)
        q_2_N, v_2_N = self.target([turn for _, proposed in episodes for turn in proposed.turns])  # of the same prompts
        rewards_N, discounts_N = v_2_N.new_tensor(moves.rewards), v_2_N.new_tensor(moves.discounts)
        return moves.turns, rewards_N + discounts_N * v_2_N[:, moves.following], q_2_N
