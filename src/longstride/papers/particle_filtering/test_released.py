"""Particles beside the paper's own code: the weights that `softmax` of `inverse_sigmoid` of
probabilistic-inference-scaling (`src/sal/search/particle_gibbs.py`, commit f75d461) gives for these scores. It draws
independently, ours are systematic draws, which take each particle as often as its share, rounded."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from longstride.core.generators import driven
from longstride.strategies.search import Partial, Particles

SCORES = [0.05, 0.3, 0.5, 0.85, 0.99]
RELEASED = {
    1.0: [0.00049583, 0.00403749, 0.00942082, 0.05338465, 0.9326612],
    2.0: [0.01613965, 0.0460556, 0.07035109, 0.1674691, 0.69998455],
}
"""By the temperature of its softmax."""


@pytest.mark.parametrize("temperature", RELEASED)
def test_particles_go_on_as_often_as_the_released_weights_say(temperature: float) -> None:
    n, asked = 5000, list[Counter[str]]()

    def extend(words: Sequence[Partial]) -> list[Partial]:
        """A letter for each; its score is that of the first one."""
        asked.append(Counter(p.state for p in words))
        first = [p.state or "abcde"[k * 5 // n] for k, p in enumerate(words)]
        return [Partial(w, SCORES["abcde".index(w[0])], p.state != "", w) for w, p in zip(first, words, strict=True)]

    driven(Particles(n=n, temperature=temperature).run(Partial(""), np.random.default_rng(0)), extend)
    assert [asked[1][letter] for letter in "abcde"] == pytest.approx([n * w for w in RELEASED[temperature]], abs=1.01)
