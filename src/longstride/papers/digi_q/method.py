"""Q by temporal differences on frozen features (`FrozenQ`), candidates for each stored turn (`Candidates`), and the best of
them as what is imitated (`BestCandidate`)."""

import random
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from longstride.core.experience import Experience
from longstride.core.numbers import Count, CountOrZero, Positive, Weight
from longstride.core.trajectory import Trajectory
from longstride.learner.critics import Moves, StoredEstimates, StoredValues
from longstride.methods import Advantage, Credit, OnPolicy

if TYPE_CHECKING:
    from torch import Tensor

    from longstride.learner.networks import TurnEncoder


class FrozenQ(StoredValues):
    """Each of two pairs minimises, over stored turns (s, a, r, s'),

        (Q(s, a) - r - discount V_target(s'))^2 + (V(s) - Q_target(s, a))^2

    on features of a language model, which is first taught whether an action changes what is seen, and frozen then."""

    change_steps: CountOrZero = 100
    """Optimiser steps of that, before the first values are learnt. None leaves the language model as it is."""
    change_lr: Positive = 3e-4
    """Their learning rate."""
    change_episodes: Count = 8
    """Episodes of each of them."""

    def prepare(self, encoder: "TurnEncoder", stored: Sequence[Trajectory], rng: random.Random) -> dict[str, float]:
        """Whether what is seen after a turn differs from what was seen before it, by the hidden state behind the action:
        binary cross-entropy. Returns its mean over the last tenth of the steps, `change_loss`."""
        from torch import nn
        from torch.nn import functional as F

        from longstride.learner.networks import TrainedNetworks

        head, losses = nn.utils.skip_init(nn.Linear, encoder.size, 1), list[float]()
        for p in head.parameters():
            nn.init.zeros_(p)
        trained = TrainedNetworks({"encoder": encoder, "head": head}, self.change_lr, clip=1.0)
        for _ in range(self.change_steps):
            turns = [u for t in rng.sample(stored, min(self.change_episodes, len(stored))) for u in t.turns]
            logit_N = head(encoder(turns)[:, 1].cpu())[:, 0]
            loss = F.binary_cross_entropy_with_logits(logit_N, logit_N.new_tensor([float(u.changed) for u in turns]))
            trained.step(loss)
            losses.append(loss.item())
        last = losses[-max(len(losses) // 10, 1) :]
        return {"change_loss": fmean(last)} if last else {}

    def losses(self, said: StoredEstimates, moves: Moves) -> "dict[str, Tensor]":
        rewards_N = said.q_2_N.new_tensor(moves.rewards)
        discounts_N = said.q_2_N.new_tensor(moves.discounts)
        q_goal_2_N = rewards_N + discounts_N * said.target_v_M_N[:, moves.following]
        return {
            "action_value_loss": (said.q_2_N - q_goal_2_N).square().mean(1).sum(),
            "value_loss": (said.v_M_N - said.target_q_2_N).square().mean(1).sum(),
        }

    def of_two(self, value_M_N: "Tensor") -> "Tensor":
        """The greater one, as in the release."""
        return value_M_N.amax(0)


class Candidates(OnPolicy):
    """This iteration's episodes, and behind them copies with another action of the policy in every turn."""

    proposals: Count = 15
    """Copies: with the action that was taken, one more candidate in each turn."""

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        return drawn + experience.propose([t for t in drawn for _ in range(self.proposals)], rng.getrandbits(62))


class BestCandidate(Credit):
    """Of the candidates of a turn the one of the largest Q is imitated, where Q less V is above a threshold."""

    threshold: Weight = 0.05
    """What an action has to be better than the state's value."""

    @property
    def estimates(self) -> frozenset[str]:
        return StoredValues.estimates

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        best: dict[tuple[int, int], tuple[float, int]] = {}
        for n, t in enumerate(played):
            for k, turn in enumerate(t.turns):
                if turn.sampled_ids:
                    q, place = turn.estimates["action_value"], (t.ordinal, k)
                    best[place] = max(
                        best.get(place, (q, n)), (q, n), key=lambda found: found[0]
                    )  # the first of equals
        found: list[list[Advantage]] = [[None] * t.length for t in played]
        for (_, k), (q, n) in best.items():
            found[n][k] = float(q - played[n].turns[k].estimates["value"] > self.threshold)
        return found
