"""Observations as targets: samples of what was seen after each turn (`WithObservations`), and a loss of both (`EchoPPO`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from longstride.core.errors import ConfigError
from longstride.core.numbers import Positive
from longstride.core.trajectory import Trajectory
from longstride.methods import PPO, Credit, GroupRelative, Sample
from longstride.methods.base import ADVANTAGES, BEHAVIOUR, PROXIMAL, Advantage
from longstride.methods.losses import LossTerms
from longstride.methods.tokens import Tokens

if TYPE_CHECKING:
    from torch import Tensor

OBSERVED = "observed"
"""Stream of the samples of observations: 1 for each token. Samples of the policy have none."""


class WithObservations(Credit):
    """Another credit's samples, and for each turn but the last what was seen after it, whether the episode succeeded or
    not. All tokens of an observation together weigh `weight` (the mean of their log-likelihoods is what is raised)."""

    credit: Credit = GroupRelative()
    """What the policy's own tokens weigh."""
    weight: Positive = 0.05
    """Lambda: of an observation, beside the advantages of turns."""

    @property
    def estimates(self) -> frozenset[str]:
        return self.credit.estimates

    def advantages(self, played: Sequence[Trajectory]) -> Sequence[Sequence[Advantage]]:
        return self.credit.advantages(played)

    def streams(self, played: Sequence[Trajectory]) -> Mapping[str, Sequence[Sequence[Advantage]]]:
        return self.credit.streams(played)

    def targets(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        return self.credit.targets(trajectories)

    def __call__(self, trajectories: Sequence[Trajectory]) -> list[Sample]:
        """The samples of one update, those of an episode in the order in which it went: each prompt continues what stands
        before it, so the learner makes one row of all of them, in one optimiser step.

        Raises:
            ConfigError: a prompt does not continue the one before it, so what was seen has no place of its own there.
        """
        place = {t.ordinal: k for k, t in enumerate(trajectories)}
        samples = [*self.credit(trajectories), *(s for t in trajectories if not t.stop.failed for s in self._seen(t))]
        return sorted(samples, key=lambda s: (place[s.episode], s.turn, OBSERVED in s.streams))

    def _seen(self, t: Trajectory) -> list[Sample]:
        found = []
        for number, (turn, later) in enumerate(zip(t.turns, t.turns[1:], strict=False)):
            acted = turn.prompt_ids + turn.sampled_ids
            if later.prompt_ids[: len(acted)] != acted:
                raise ConfigError(
                    "observations are predicted where each prompt continues the one before it: set "
                    "context.type=full_history, and keep thoughts in the history"
                )
            ids = later.prompt_ids[len(acted) : len(later.prompt_ids) - later.given]
            if min(ids, default=-1) >= 0:  # images and data are no targets
                streams = {ADVANTAGES: [self.weight / len(ids)] * len(ids), OBSERVED: [1.0] * len(ids)}
                found.append(Sample(acted, ids, streams, t.ordinal, t.group, number, media=later.media))
        return found


@dataclass(slots=True)
class _OnPolicy:
    """Tokens of which those of observations are taken for sampled by the policy as it is now."""

    streams: "Mapping[str, Tensor]"
    sequence_P: "Tensor"
    entropy_P: "Tensor | None"


class EchoPPO(PPO):
    """`PPO` on what the policy sampled, and -w log pi on what it saw."""

    def coefficients(self, samples: Sequence[Sample]) -> dict[str, list[float]]:
        """As always, and 0 for observations: they are held to no reference, and their entropy is not raised."""
        return {
            name: [0.0 if OBSERVED in s.streams else value for s, value in zip(samples, values, strict=True)]
            for name, values in super().coefficients(samples).items()
        }

    def policy_terms(self, logp_P: "Tensor", tokens: Tokens) -> LossTerms:
        if (stream_P := tokens.streams.get(OBSERVED)) is None:
            return super().policy_terms(logp_P, tokens)
        observed_P = stream_P == 1
        now = {
            name: stream.where(~observed_P, logp_P.detach()) if name in (BEHAVIOUR, PROXIMAL) else stream
            for name, stream in tokens.streams.items()
        }
        terms = super().policy_terms(logp_P, _OnPolicy(now, tokens.sequence_P, tokens.entropy_P))
        terms.loss_P = terms.loss_P.where(~observed_P, -tokens.streams[ADVANTAGES] * logp_P)
        return terms
