"""The behaviour whose actions DPT labels: a distribution over choices that a trial keeps."""

import random

from longstride.strategies.learners import Learning, TrialLearner


class FixedDraw(TrialLearner):
    """Chooses by a distribution that is drawn once a trial and never moves: (1 - c) Dirichlet(1, ..., 1) + c (a single
    choice), c uniform on 0, 0.1, ..., 1 (released code of DPT, `rollin_bandit`). So contexts are of all kinds, from
    even to a single arm."""

    def begin(self, env: object) -> Learning:
        return _FixedDraw(env)


class _FixedDraw(Learning):
    def __init__(self, env: object) -> None:
        super().__init__(env)
        self._weights: list[float] = []

    def choose(self, seen: str, env: object, rng: random.Random) -> str:
        if not self._weights:
            alone, drawn = rng.randrange(11) / 10, [rng.expovariate(1.0) for _ in self.choices]
            self._weights = [(1 - alone) * x / sum(drawn) for x in drawn]
            self._weights[rng.randrange(len(drawn))] += alone
        return rng.choices(self.choices, self._weights)[0]
