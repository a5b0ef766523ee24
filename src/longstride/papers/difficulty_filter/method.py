"""Training on groups whose share of right answers lies in a band (`InBand`)."""

from collections.abc import Sequence

from longstride.core.numbers import Share
from longstride.core.trajectory import EpisodeRecord
from longstride.methods import OnPolicy

Band = tuple[Share, Share]
BALANCED: Band = (0.25, 0.75)


class InBand(OnPolicy):
    """`OnPolicy` of the groups whose share of right answers lies in a band, its ends included."""

    band: Band = BALANCED
    """Least and largest share."""

    def teaches(self, group: Sequence[EpisodeRecord]) -> bool:
        return self.band[0] <= sum(episode.success for episode in group) / len(group) <= self.band[1]
