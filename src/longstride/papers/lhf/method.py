"""The filter of LHF: histories that improve, and steadily, are drawn more often."""

import random
from collections.abc import Sequence
from statistics import fmean

from longstride.core.numbers import Weight
from longstride.run.histories import History, HistoryFilter


class ImprovingAndStable(HistoryFilter):
    """Draws histories by U = improvement + `stability` x stability, from its least (never) to its most (the paper's
    lambda). Improvement is the mean return of the later half of the episodes minus that of the earlier one; stability is
    minus the mean drop from one episode to the next."""

    stability: Weight = 1.0
    """lambda."""

    def __call__(self, histories: Sequence[History], rng: random.Random) -> list[History]:
        scores = [self.score(h.returns) for h in histories]
        least = min(scores)
        weights = [score - least for score in scores]
        return rng.choices(histories, weights, k=len(histories)) if any(weights) else list(histories)

    def score(self, returns: Sequence[float]) -> float:
        """U of a history with these returns, oldest first; 0 of a single episode."""
        if len(returns) < 2:
            return 0.0
        half = len(returns) // 2
        improvement = fmean(returns[-half:]) - fmean(returns[:half])
        drops = fmean(max(0.0, a - b) for a, b in zip(returns, returns[1:], strict=False))
        return improvement - self.stability * drops
