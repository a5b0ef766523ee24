"""The step that Nash-MP is held against, for language models (`PairedNashMD`)."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from math import exp
from statistics import fmean

from longstride.methods import INPO, Sample
from longstride.methods.base import ADVANTAGES, ANCHOR, REFERENCE


class PairedNashMD(INPO):
    """`INPO` against the mixture in place of the sampler: a pair weighs as often as the geometric mixture of the start and
    the sampler would have drawn it, in the mean over the pairs of a step 1. Its minimum is the mixture times
    exp(P(y > mixture) / tau), the step of Nash-MD (Munos et al., arXiv 2312.00886, section 6).

    For phases of one iteration, in which the earlier self is the sampler.
    """

    def reweigh(self, samples: Sequence[Sample], logprobs: Sequence[Sequence[float]]) -> list[Sample]:
        """As `PairLoss.reweigh`."""
        log_odds = defaultdict[int, float](float)
        for s in samples:
            log_odds[s.pair] += self.share * (sum(s.streams[REFERENCE]) - sum(s.streams[ANCHOR]))
        most = max(log_odds.values(), default=0.0)
        odds = {number: exp(of - most) for number, of in log_odds.items()}
        mean = fmean(odds.values()) if odds else 1.0
        return [
            replace(s, streams=s.streams | {ADVANTAGES: [a * odds[s.pair] / mean for a in s.streams[ADVANTAGES]]})
            for s in super().reweigh(samples, logprobs)
        ]
