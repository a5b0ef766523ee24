"""Episodes drawn by their returns (`ByReturn`)."""

import numpy as np

from longstride.control import EpisodeWeights, TransitionStore
from longstride.core.numbers import Positive


class ByReturn(EpisodeWeights):
    """exp(x / temperature) for each step of an episode, where x is its return, scaled to [0, 1] over all episodes."""

    temperature: Positive = 0.1
    """alpha: the lower, the more the best episodes are drawn."""
    over_start: bool = False
    """Whether x is what the return is above the one that a linear regression expects of the first observation (and of
    the goal, where there is one): AW instead of RW. It tells luck of the start from skill."""

    def __call__(self, store: TransitionStore) -> np.ndarray:
        x_E = store.earned
        if self.over_start:
            start = np.concatenate((store.observation[store.first], store.goal, np.ones((len(x_E), 1))), 1)
            x_E = x_E - start @ np.linalg.lstsq(start, x_E)[0]
        scaled_E = (x_E - x_E.min()) / max(float(np.ptp(x_E)), 1e-12)
        return np.exp((scaled_E - 1) / self.temperature)
