"""Replay of states, a critic of turns with two pairs of Q and V, and the advantage of a turn by it."""

import random
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from longstride.core.experience import Experience
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn
from longstride.learner.critics import Critic, CriticBatch, CriticConfig, HiddenStates, Moves
from longstride.methods import Advantage, Credit, Replay

if TYPE_CHECKING:
    from torch import Tensor


class StateReplay(Replay):
    """Stored turns of all iterations, each with new actions of the policy as it is now. States are off-policy and
    actions on-policy, so nothing is weighed anew; what such an action is worth only a critic can say."""

    keep: Count = 192
    """Episodes of one update, all as likely."""
    proposals: Count = 4
    """New actions in each of their turns. One is the paper's; see `TurnAdvantage`."""

    def wants(self, episode: EpisodeRecord) -> bool:
        return True

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        return [kept[k] for k in sorted(rng.sample(range(len(kept)), min(self.keep, len(kept))))]

    def renew(self, drawn: list[Trajectory], rng: random.Random, experience: Experience) -> list[Trajectory]:
        return [t for _ in range(self.proposals) for t in experience.propose(drawn, rng.getrandbits(62))]


class DoubleValue(CriticConfig):
    """Q of a turn's action and V of the state before it, learnt from the episodes of all iterations."""

    estimates: ClassVar[frozenset[str]] = frozenset({"action_value", "value"})
    encoder: str = "base-puzzles"
    """The model that reads prompts and actions, trained too: as `Recipe.model`, and of its tokenizer."""
    discount: Share = 0.95
    """Weight of what is one turn later."""
    tau: Share = 0.1
    """Part of the way that targets move to the networks after each step."""
    lr: Positive = 5e-4
    """Learning rate of Adam."""
    episodes: Count = 384
    """Stored episodes that are drawn in an iteration, at most."""
    steps: Count = 60
    """Optimiser steps of an iteration."""
    batch_episodes: Count = 32
    """Episodes of a step."""
    warmup: CountOrZero = 4
    """Iterations at the start of a run in which the critic alone learns."""

    @property
    def reads_by(self) -> str:
        return self.encoder

    def make(self, policy: HiddenStates, seed: int) -> Critic:
        """See `DoubleCritic`; it reads nothing of the policy, and computes where that does."""
        return DoubleCritic(self, seed, str(policy.device))


class DoubleCritic:
    """A `DoubleValue` at work. Each of its two pairs minimises, over stored turns (s, a, r, s') of whatever policy,

        (Q(s, a) - r - discount V_target(s'))^2 + (V(s) - Q_target(s, a'))^2,   a' proposed in s by the policy as it is

    An estimate is the smaller of the two. An episode that a budget truncated goes on from its last state (see `GAE`).
    """

    def __init__(self, config: DoubleValue, seed: int, device: str = "cpu") -> None:
        from longstride.learner.networks import ActionValues, TrainedNetworks

        self.config = config
        self.online = ActionValues(config.encoder, seed, device)
        self.target = ActionValues(config.encoder, seed, device).requires_grad_(False)
        self._trained = TrainedNetworks({"online": self.online, "target": self.target}, config.lr, clip=1.0)
        self.state, self.load_state = self._trained.state, self._trained.load_state

    def estimate(self, trajectories: Sequence[Trajectory]) -> None:
        self.online.estimate([turn for t in trajectories for turn in t.turns])

    def before_update(self, batch: CriticBatch) -> dict[str, float]:
        """Learns from what is stored, and then estimates what is trained."""
        from longstride.models.mlp import polyak

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

    def targets(self, episodes: Sequence[tuple[Trajectory, Trajectory]]) -> "tuple[list[Turn], Tensor, Tensor]":
        """The N turns that were played, and what Q and V should be there, [2, N] each."""
        moves = Moves.of([played for played, _ in episodes], self.config.discount)
        q_2_N, v_2_N = self.target([turn for _, proposed in episodes for turn in proposed.turns])  # of the same prompts
        rewards_N, discounts_N = v_2_N.new_tensor(moves.rewards), v_2_N.new_tensor(moves.discounts)
        return moves.turns, rewards_N + discounts_N * v_2_N[:, moves.following], q_2_N


class TurnAdvantage(Credit):
    """All tokens of a turn have the advantage of its action: Q less the mean Q of all actions proposed in its place.
    That has the same error as Q, and V one of its own. With a single proposal it is Q less V, as in the paper."""

    @property
    def estimates(self) -> frozenset[str]:
        return DoubleValue.estimates

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        places = defaultdict[tuple[int, int], list[float]](list)
        for t in played:
            for k, turn in enumerate(t.turns):
                if turn.sampled_ids:
                    places[t.ordinal, k].append(turn.estimates["action_value"])

        def advantage(turn: Turn, proposed: Sequence[float]) -> Advantage:
            if not turn.sampled_ids:
                return None
            baseline = fmean(proposed) if len(proposed) > 1 else turn.estimates["value"]
            return turn.estimates["action_value"] - baseline

        return [[advantage(turn, places[t.ordinal, k]) for k, turn in enumerate(t.turns)] for t in played]
