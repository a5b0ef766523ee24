"""Replay of all successes so far that prefers new ones and rare classes (`TTIReplay`)."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Literal

from longstride.core.experience import Experience
from longstride.core.numbers import Count, Share
from longstride.core.trajectory import EpisodeRecord
from longstride.methods import Replay
from longstride.methods.replay import without_replacement


class TTIReplay(Replay):
    """All successes so far; when there are more than `keep`, a draw that prefers new ones and rare classes.

    With k = 1..n the position in time (n the newest) and c_k the inverse frequency of the class of k, normalised: p_k
    = mix * k / sum(k) + (1 - mix) * c_k. Two quirks of the released code are not copied: there k counts in groups by
    task (only roughly in time), and every data-parallel rank draws its own set. The paper's Algorithm 1 has mix = 1.
    """

    keep: Count = 512
    """Trajectories of one update."""
    mix: Share = 0.5
    """Share of recency in p; the rest balances classes."""
    balance: Literal["source", "difficulty", "template_id"] = "source"
    """Field of the task that is the class (TTI: the site)."""
    top_p: Share = 1.0
    """Of the successes of one task only those no longer than this percentile of their lengths; 1 keeps all."""

    def wants(self, episode: EpisodeRecord) -> bool:
        # An `answer n/a` is the cheapest way to be right: cloned, it would be the answer to everything.
        return episode.success and not episode.infeasible

    def weights(self, kept: Sequence[EpisodeRecord]) -> list[float]:
        """The p_k of `kept`, oldest first; they sum to 1."""
        classes = [getattr(t.task, self.balance) for t in kept]
        count, n = Counter(classes), len(kept)
        # Inverse frequencies add up to the number of classes: each class has the same share.
        rare = {c: (1 - self.mix) / (size * len(count)) for c, size in count.items()}
        return [self.mix * k / (n * (n + 1) / 2) + rare[c] for k, c in enumerate(classes, 1)]

    def draw(
        self, kept: Sequence[EpisodeRecord], fresh: int, rng: random.Random, experience: Experience
    ) -> list[EpisodeRecord]:
        """`keep` of the short successes without replacement (`fresh` makes no difference: TTI replays all of history)."""
        short = self._short(kept)
        if len(short) <= self.keep:
            return short
        return [short[k] for k in without_replacement(self.weights(short), self.keep, rng)]

    def _short(self, kept: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
        if self.top_p == 1:
            return list(kept)
        lengths: defaultdict[str, list[int]] = defaultdict(list)
        for t in kept:
            lengths[t.task.id].append(t.length)
        # No length lies between two neighbours in order, so the lower neighbour serves as the interpolated percentile.
        longest = {
            task: sorted(found)[math.floor((len(found) - 1) * self.top_p + 1e-9)] for task, found in lengths.items()
        }
        return [t for t in kept if t.length <= longest[t.task.id]]
