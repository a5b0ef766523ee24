"""The critic of turns at work: it estimates what is still to be earned before each turn, and learns from what was.

What always holds: values are those of the policy's weights as they are when it is asked; every process of several that
makes the same calls has the same critic. It computes on the CPU: two layers behind hidden states that the policy made.
"""

import random
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from longstride.core.implementation import implements
from longstride.core.trajectory import Trajectory, Turn
from longstride.learner.batching import shuffled, steps_of
from longstride.learner.critics import CriticBatch, HiddenStates, TurnValue
from longstride.learner.networks import TrainedNetworks
from longstride.methods.base import ADVANTAGES, Sample, demonstration
from longstride.models.heads import BCE, Head, HLGauss, Scalar
from longstride.models.mlp import Trunk


@implements(TurnValue)
class TurnCritic:
    """Network and optimiser of a `TurnValue`.

    Args:
        config: the numbers.
        policy: whose hidden states are read.
        seed: of the initial weights, whose values are all but equal.
    """

    def __init__(self, config: TurnValue, policy: HiddenStates, seed: int) -> None:
        self.config, self._policy = config, policy
        self._head: Head = {
            "scalar": Scalar(),
            "bce": BCE(),
            "hl_gauss": HLGauss(low=config.low, high=config.high),
        }[config.head]
        size = policy.features([demonstration([0], [0])]).shape[1]
        trunk, generator = Trunk(width=config.width, depth=config.depth), torch.Generator().manual_seed(seed)
        self._net = trunk.make(size, self._head.outputs, generator, last=1e-2)
        self._trained = TrainedNetworks({"value": self._net}, config.lr)

    @torch.no_grad()
    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        turns = [turn for t in trajectories for turn in t.turns]
        if turns:
            for turn, value in zip(turns, self._head.value(self._raw(self._features(turns))).tolist(), strict=True):
                turn.estimates["value"] = value

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        self.estimate(batch.trajectories)
        return {}

    def after_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns what the values should have been by the credit's `targets`."""
        return self.fit(batch.trajectories, batch.credit.targets(batch.trajectories), batch.rng)

    def fit(
        self, trajectories: Sequence[Trajectory], targets: Sequence[Sequence[float]], rng: random.Random
    ) -> dict[str, float]:
        """Learns for `config.epochs` what the values should have been, from what the policy makes of the prompts now:
        after its update, as `before_update` will read them next.

        Args:
            trajectories: with the values that the targets were made with.
            targets: one a turn of each trajectory, or none (see `GAE.targets`).
            rng: of the order of turns.

        Returns:
            `value_loss` (mean over the last epoch) and `value_explained`: the share of the targets' variance that the
            values had explained before; below 0 where a constant would have done better.
        """
        known = [
            (turn, y)
            for t, ys in zip(trajectories, targets, strict=True)
            if ys
            for turn, y in zip(t.turns, ys, strict=True)
        ]
        before_N = torch.tensor([turn.estimates["value"] for turn, _ in known])
        feature_ND = self._features([turn for turn, _ in known])
        return self._learn(feature_ND, torch.tensor([y for _, y in known]), before_N, rng)

    def _learn(self, feature_ND: Tensor, target_N: Tensor, before_N: Tensor, rng: random.Random) -> dict[str, float]:
        """See `fit`: from hidden states, what values there should have been, and what they were."""
        target_N = target_N.clamp(self.config.low, self.config.high)
        error_N, known, total = target_N - before_N, len(target_N), 0.0
        for _ in range(self.config.epochs):
            total = 0.0
            for part in steps_of([[n] for n in shuffled(range(known), rng)], self.config.batch_turns):
                loss_B = self._head.loss(self._raw(feature_ND[part]), target_N[part])
                self._trained.step(loss_B.mean())
                total += loss_B.sum().item()
        spread = target_N.var(correction=0).item() if known else 0.0
        unexplained = error_N.var(correction=0).item() / spread if spread else 1.0
        return {"value_loss": total / max(known, 1), "value_explained": 1 - unexplained}

    def state(self) -> dict[str, Tensor]:
        return self._trained.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        self._trained.load_state(tensors)

    def _features(self, turns: Sequence[Turn]) -> Tensor:
        """Hidden state at the last token of each prompt."""
        after = [turn.sampled_ids or [0] for turn in turns]  # a place is one with a token after it
        return self._policy.features(
            [
                Sample(turn.prompt_ids, ids, {ADVANTAGES: [1.0] + [0.0] * (len(ids) - 1)}, media=turn.media)
                for turn, ids in zip(turns, after, strict=True)
            ]
        )

    def _raw(self, feature_ND: Tensor) -> Tensor:
        return self._net(feature_ND)[0]
