"""Replay of states, the numbers of a critic of turns, and the advantage of a turn by it."""

import random
from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean
from typing import ClassVar

from longstride.core.experience import Experience
from longstride.core.numbers import Count, CountOrZero, Positive, Share
from longstride.core.trajectory import EpisodeRecord, Trajectory, Turn
from longstride.learner.critics import Critic, CriticConfig, HiddenStates
from longstride.methods import Advantage, Credit, Replay


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
        """See `critic.DoubleCritic`; it reads nothing of the policy, and computes where that does."""
        from longstride.papers.archer.critic import DoubleCritic

        return DoubleCritic(self, seed, str(policy.device))


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
