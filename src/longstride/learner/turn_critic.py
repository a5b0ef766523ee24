"""The critic of turns at work: it says what is still to be earned before each turn, and learns from what was.

What always holds: it reads the policy and never moves it; values are those of the weights as they are when it is asked;
what it learns depends on its seed, on what it is given and on the order of calls alone, so that every process of
several that makes the same calls has the same critic. It computes on the CPU: it is small beside a policy.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from longstride.core.errors import RunError
from longstride.core.trajectory import Trajectory, Turn
from longstride.learner.batching import shuffled, steps_of
from longstride.learner.critic import Critic
from longstride.methods.base import Sample
from longstride.models.heads import BCE, Head, HLGauss, Scalar
from longstride.models.mlp import Trunk

PREFIX = "critic/"
"""What the names of its tensors begin with, among those of a checkpoint."""


class Reads(Protocol):
    """Whose hidden states are read: a `learner.learner.Learner`, or the ranks of a cluster."""

    def features(self, samples: Sequence[Sample]) -> Tensor:
        """See `Learner.features`."""
        ...


class TurnCritic:
    """Network and optimiser of a `Critic`.

    Args:
        config: the numbers.
        policy: whose hidden states are read.
        seed: of the initial weights, whose values are all but equal.
    """

    def __init__(self, config: Critic, policy: Reads, seed: int) -> None:
        self.config, self._policy = config, policy
        self._head: Head = {
            "scalar": Scalar(), "bce": BCE(), "hl_gauss": HLGauss(low=config.low, high=config.high),
        }[config.head]  # fmt: skip
        size = policy.features([Sample([0], [0], [1.0], [0.0])]).shape[1]
        trunk, generator = Trunk(width=config.width, depth=config.depth), torch.Generator().manual_seed(seed)
        self._net = trunk.make(size, self._head.outputs, generator, last=1e-2)
        self._parameters = dict(self._net.named_parameters())
        self._optimiser = torch.optim.Adam(self._parameters.values(), config.lr, fused=True)

    @torch.no_grad()
    def values(self, trajectories: Sequence[Trajectory]) -> None:
        """Fills in `Turn.value` of every turn. All ranks must ask for it."""
        turns = [turn for t in trajectories for turn in t.turns]
        if turns:
            for turn, value in zip(turns, self._head.value(self._raw(self._features(turns))).tolist(), strict=True):
                turn.value = value

    def fit(
        self, trajectories: Sequence[Trajectory], targets: Sequence[Sequence[float]], rng: random.Random
    ) -> dict[str, float]:
        """Learns for `config.epochs` what the values should have been, from what the policy makes of the prompts now:
        after its update, as `values` will read them next. All ranks must ask for it.

        Args:
            trajectories: with the values that the targets were made with.
            targets: one a turn of each trajectory, or none (see `GAE.targets`).
            rng: of the order of turns.

        Returns:
            `value_loss` (mean over the last epoch) and `value_explained`: the share of the targets' variance that the
            values had explained before; below 0 where a constant would have done better.
        """
        known = [
            (turn, y) for t, ys in zip(trajectories, targets, strict=True) if ys
            for turn, y in zip(t.turns, ys, strict=True)
        ]  # fmt: skip
        feature_ND = self._features([turn for turn, _ in known])
        target_N = torch.tensor([y for _, y in known]).clamp(self.config.low, self.config.high)
        error_N = target_N - torch.tensor([turn.value for turn, _ in known])
        total = 0.0
        for _ in range(self.config.epochs):
            total = 0.0
            for part in steps_of([[n] for n in shuffled(range(len(known)), rng)], self.config.batch_turns):
                loss_B = self._head.loss(self._raw(feature_ND[part]), target_N[part])
                self._optimiser.zero_grad()
                loss_B.mean().backward()
                self._optimiser.step()
                total += loss_B.sum().item()
        spread = target_N.var(correction=0).item() if known else 0.0
        unexplained = error_N.var(correction=0).item() / spread if spread else 1.0
        return {"value_loss": total / max(len(known), 1), "value_explained": 1 - unexplained}

    def state(self) -> dict[str, Tensor]:
        """Weights and moments, under names that begin with `PREFIX`."""
        moments = {
            f"{PREFIX}{key}/{name}": value
            for name, p in self._parameters.items()
            for key, value in self._optimiser.state.get(p, {}).items()
        }
        return moments | {f"{PREFIX}weight/{name}": p.detach() for name, p in self._parameters.items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes back what `state` gave, which may stand among other tensors.

        Raises:
            RunError: it belongs to another critic.
        """
        try:
            self._net.load_state_dict({name: tensors[f"{PREFIX}weight/{name}"] for name in self._parameters})
        except (KeyError, RuntimeError) as e:
            raise RunError(f"the checkpoint is of another critic: {e}") from e
        self._optimiser.state.clear()
        for name, p in self._parameters.items():
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if (value := tensors.get(f"{PREFIX}{key}/{name}")) is not None:
                    self._optimiser.state[p][key] = value.clone()

    def _features(self, turns: Sequence[Turn]) -> Tensor:
        """Hidden state at the last token of each prompt."""
        said = [turn.sampled_ids or [0] for turn in turns]  # a place is one with a token after it
        return self._policy.features([
            Sample(turn.prompt_ids, ids, [1.0] + [0.0] * (len(ids) - 1), [0.0] * len(ids))
            for turn, ids in zip(turns, said, strict=True)
        ])  # fmt: skip

    def _raw(self, feature_ND: Tensor) -> Tensor:
        return self._net(feature_ND)[0]
