"""The critic of stored turns at work: Q and V by temporal differences or returns, on hidden states of a language model.

What always holds: it learns from what is stored, whoever is trained on it, and never from the policy; only its encoder
computes where the policy does.
"""

import copy
import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from longstride.core.implementation import implements
from longstride.core.trajectory import Trajectory, Turn
from longstride.learner.critics import CriticBatch, Moves, StoredEstimates, StoredValues
from longstride.learner.networks import TrainedNetworks, TurnEncoder, TurnHeads, fill_in
from longstride.models.mlp import Trunk, polyak


@implements(StoredValues)
class StoredCritic:
    """Networks and optimiser of a `StoredValues`.

    Args:
        config: the numbers.
        seed: of the initial weights.
        device: where the encoder computes.
    """

    def __init__(self, config: StoredValues, seed: int, device: str = "cpu") -> None:
        self.config = config
        self.encoder = TurnEncoder(config.encoder, device).requires_grad_(not config.frozen)
        trunk = Trunk(width=config.width, depth=config.depth)
        self.online = TurnHeads(self.encoder.size, seed, trunk, config.value_networks)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        networks = {"encoder": self.encoder, "online": self.online, "target": self.target}
        self._trained = TrainedNetworks(networks, config.lr, clip=1.0)
        self.state = self._trained.state

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        self._trained.load_state(tensors)

    @torch.no_grad()
    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        if turns := [turn for t in trajectories for turn in t.turns]:
            q_2_N, v_M_N = self.online(self._read(turns))
            fill_in(turns, self.config.of_two(q_2_N), self.config.of_two(v_M_N))

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from all that is stored, and then estimates what is trained."""
        records = [record for record in batch.experience.records if record.length and not record.stop.failed]
        stored, metrics = batch.experience.read(records), dict[str, float]()
        if records and records[0].iteration == records[-1].iteration:
            metrics = self.config.prepare(self.encoder.requires_grad_(True), stored, batch.rng)
            self.encoder.requires_grad_(not self.config.frozen)
        metrics |= self.learn(stored, batch.rng)
        self.estimate(batch.trajectories)
        return metrics

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        return {}

    def learn(self, stored: Sequence[Trajectory], rng: random.Random) -> dict[str, float]:
        """Learns for `config.steps` from these episodes, of at least a turn each; returns the means of the losses."""
        c, totals = self.config, dict[str, float]()
        known = self._known(stored) if c.frozen else []
        for _ in range(c.steps if stored else 0):
            drawn = rng.sample(range(len(stored)), min(c.batch_episodes, len(stored)))
            moves = Moves.of([stored[k] for k in drawn], c.discount)
            ends_N_2_D = torch.cat([known[k] for k in drawn]) if c.frozen else self._read(moves.turns)
            with torch.no_grad():
                targets = self.target(ends_N_2_D)
            losses = c.losses(StoredEstimates(*self.online(ends_N_2_D), *targets), moves)
            self._trained.step(torch.stack(list(losses.values())).sum())
            polyak(self.target, self.online, c.tau)
            for name, loss in losses.items():
                totals[name] = totals.get(name, 0.0) + loss.item() / c.steps
        return totals

    @torch.no_grad()
    def _known(self, stored: Sequence[Trajectory]) -> Sequence[Tensor]:
        """What a frozen encoder says of each episode, [T, 2, D]."""
        turns = [turn for t in stored for turn in t.turns]
        return self._read(turns).split([t.length for t in stored]) if turns else []

    def _read(self, turns: Sequence[Turn]) -> Tensor:
        return self.encoder(turns).cpu()
