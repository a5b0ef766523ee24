"""Losses of pairs: what is preferred against what is not.

What always holds: the gradient of a pair's loss f(h) is f'(h) (d log pi(preferred) - d log pi(other)), which is exactly
the gradient of `Reinforce` with the advantages that `reweigh` makes, so the learner does not know that there are pairs;
the samples of a pair have the same `Sample.pair` and are in one optimiser step. A side of a pair is one sample, or
several: the turns of an episode. The logged `loss` is the surrogate's.

With h = log pi(w) / ref(w) - log pi(l) / ref(l), summed over the sampled tokens of each side:

| loss | of a pair | |
|---|---|---|
| `DPO` | -log sigmoid(beta h) | Rafailov et al., arXiv 2305.18290, equation 7 |
| `IPO` | (h - 1 / (2 tau))^2 | Azar et al., arXiv 2310.12036, equation 17 |
| `INPO` | that of `IPO`; ref a mixture of the start and an earlier self | Zhang et al., arXiv 2407.00617, section 3 |
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import tanh
from typing import TYPE_CHECKING, TypeVar

from longstride.core.errors import ConfigError
from longstride.core.numbers import Count, Positive, Share
from longstride.methods.aggregation import Aggregation, Constant
from longstride.methods.base import ADVANTAGES, ANCHOR, REFERENCE, Sample
from longstride.methods.kl import Anchor, Latest
from longstride.methods.losses import Reinforce

if TYPE_CHECKING:
    import numpy as np

T = TypeVar("T", float, "np.ndarray")

PREFERRED = "preferred"
"""Stream that is 1 on every token of the preferred sequence of a pair, and 0 on the other's."""


def pair(preferred: Sample, other: Sample, number: int) -> list[Sample]:
    """Two samples as a pair; `number` is that of no other pair."""
    return sides([preferred], [other], number)


def sides(preferred: Sequence[Sample], other: Sequence[Sample], number: int) -> list[Sample]:
    """A pair of which each side is several samples, such as the turns of an episode. A loss that knows no pairs, such
    as `Reinforce`, is that of the preferred side alone."""
    found: list[Sample] = []
    for side, value in ((preferred, 1.0), (other, 0.0)):
        for s in side:
            marks = [value] * len(s.sampled_ids)
            found.append(replace(s, pair=number, streams=s.streams | {ADVANTAGES: marks, PREFERRED: marks}))
    return found


class PairLoss(Reinforce):
    """Family of losses of a pair, in h."""

    aggregation: Aggregation = Constant()

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {REFERENCE}

    @property
    def depends_on_policy(self) -> bool:
        return True

    def held(self, sample: Sample) -> float:
        """Log-probability of a sample under what the margin is against, up to what a pair shares."""
        return sum(sample.streams[REFERENCE])

    @abstractmethod
    def slope(self, margin: float) -> float:
        """d loss / d h at h = `margin`."""

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> list[Sample]:
        """Every token of the preferred side of a pair weighs -slope, every token of the other one +slope. With
        `Constant()` the step's loss is the mean over its samples; the weights are scaled so that it is the mean over
        its pairs.

        Raises:
            ConfigError: a sample has no partner.
        """
        sides: defaultdict[int, dict[bool, float]] = defaultdict(dict)
        for s, logps in zip(samples, logprobs, strict=True):
            if s.pair < 0 or PREFERRED not in s.streams:
                raise ConfigError(f"loss {self.type_name()} compares pairs; the credit made a sample that is in none")
            ratios, side = sides[s.pair], _preferred(s)
            ratios[side] = ratios.get(side, 0.0) + sum(logps) - self.held(s)
        if any(len(ratios) != 2 for ratios in sides.values()):
            raise ConfigError(f"loss {self.type_name()} compares pairs; a side of a pair is missing from its step")
        slopes = {number: self.slope(ratios[True] - ratios[False]) for number, ratios in sides.items()}
        scale = len(samples) / max(len(slopes), 1)
        weights = [scale * slopes[s.pair] * (-1 if _preferred(s) else 1) for s in samples]
        return [
            replace(s, streams=s.streams | {ADVANTAGES: [weight] * len(s.sampled_ids)})
            for s, weight in zip(samples, weights, strict=True)
        ]


def _preferred(sample: Sample) -> bool:
    return any(sample.streams[PREFERRED])


class DPO(PairLoss):
    """Direct preference optimisation."""

    beta: Positive = 0.1
    """Strength of the hold on the reference."""

    def slope(self, margin: float) -> float:
        return -self.beta * (1 - tanh(self.beta * margin / 2)) / 2  # -beta sigmoid(-beta h), without overflow


class IPO(PairLoss):
    """Identity preference optimisation."""

    tau: Positive = 0.1
    """Regularisation: the margin that is aimed at is 1 / (2 tau)."""

    def slope(self, margin: float) -> float:
        return 2 * (margin - 1 / (2 * self.tau))


def mixed(share: float, reference: T, policy: T) -> T:
    """Log-probabilities of the geometric mixture of a reference and a policy, up to its normaliser."""
    return share * reference + (1 - share) * policy


class INPO(IPO):
    """IPO against the geometric mixture of the start and of the policy as it was when a phase began.

    On pairs of one policy, labelled by a preference, its minimum is the mixture times exp(P(y > sampler) / tau), P the
    chance to be preferred to an answer of the sampler: the step of mirror descent from the policy at the beginning of
    the phase, against the sampler, with a hold of strength share tau on the start. With phases of one iteration the two
    are one (INPO). With phases of two, the first iteration is the trial step of mirror prox, and the second one is the
    step from the same place against the policy that the trial led to (Nash-MP, arXiv 2505.19731).
    """

    share: Share = 0.1
    """Of the start in the mixture; the paper's tau / eta."""
    every: Count = 1
    """Iterations of a phase."""

    @property
    def needs(self) -> frozenset[str]:
        return super().needs | {ANCHOR}

    @property
    def anchors(self) -> Mapping[str, Anchor]:
        return {**super().anchors, ANCHOR: Latest(every=self.every)}

    def held(self, sample: Sample) -> float:
        return mixed(self.share, sum(sample.streams[REFERENCE]), sum(sample.streams[ANCHOR]))
