"""Bandits: arms that pay 1 or 0, each with a chance of its own, or around a mean of their own (`GaussianBandits`,
`GaussianLinearBandits`).

An episode is some pulls; nothing is seen but what a pull earned. What always holds: the chances are the task's, so all
episodes of a trial have the same ones, and luck is an episode's own (`trial.start = "new"`).

| as in | settings |
|---|---|
| DPT, bandits | `type="gaussian_bandits", pulls=500` |
| DPT, bandits that pay 1 or 0 | `type="bandits", pulls=500` |
| DPT, linear bandits | `type="gaussian_linear_bandits", pulls=200` |
| arXiv 2310.08566, linear bandits, but for their noise | `type="linear_bandits", dimensions=5, pulls=200` |
"""

import math
import random
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from longstride.core.numbers import Count, Weight
from longstride.core.seeds import stream
from longstride.core.trajectory import Trajectory
from longstride.envs.hidden.base import HiddenWorlds, Life, Rule, source_of

ARMS = "abcdefghijklmnopqrst"
"""Names of arms, a token each."""
PLACES = 2
"""Decimals of a reward that is no whole number."""
Chance = Annotated[float, Field(ge=0, le=1)]
Arms = Annotated[int, Field(ge=2, le=len(ARMS))]


class Bandit(Rule):
    """The chance of each arm."""

    chances: tuple[Chance, ...] = Field(min_length=2, max_length=len(ARMS))
    features: tuple[tuple[float, ...], ...] = ()
    """What is known of each arm; nothing if empty."""

    @model_validator(mode="after")
    def _fits(self) -> "Bandit":
        if self.features and len(self.features) != len(self.chances):
            raise ValueError(f"expected features of {len(self.chances)} arms, got {len(self.features)}")
        return self

    @property
    def goal(self) -> str:
        return "pull arms"

    @property
    def key(self) -> str:
        return str(self.chances)

    @property
    def most(self) -> float:
        return self.turns * max(self.chances)

    def start(self, rng: random.Random) -> Life:
        return Pulling(self, rng)

    def regret(self, played: Trajectory) -> float:
        """Of the arms that were pulled, whatever they happened to pay: the pseudo-regret."""
        pulled = [self.chances[ARMS.index(turn.action)] if turn.action else 0.0 for turn in played.turns]
        return sum(max(self.chances) - chance for chance in pulled)


class Pulling(Life):
    """Pulls of a bandit's arms."""

    def __init__(self, bandit: Bandit, rng: random.Random) -> None:
        self._bandit, self._rng = bandit, rng
        self.choices = tuple(ARMS[: len(bandit.chances)])

    def look(self) -> str:
        return ""

    def act(self, choice: str) -> float:
        return float(self._rng.random() < self._bandit.chances[ARMS.index(choice)])

    def best(self) -> list[str]:
        best = max(self._bandit.chances)
        return [arm for arm, chance in zip(self.choices, self._bandit.chances, strict=True) if chance == best]

    def features(self) -> Sequence[Sequence[float]]:
        return self._bandit.features


class Bandits(HiddenWorlds):
    """Arms whose chances are drawn uniformly, each for itself."""

    kind: ClassVar[type[Rule]] = Bandit
    arms: Arms = 5
    """Arms of a bandit; DPT has 5."""
    pulls: Count = 10
    """Pulls of an episode."""

    def make(self, rng: random.Random) -> Bandit:
        return Bandit(turns=self.pulls, chances=tuple(round(rng.random(), 3) for _ in range(self.arms)))


class GaussianBandit(Bandit):
    """The mean that each arm pays (`chances`), around which it does."""

    deviation: Weight
    """Of what an arm pays."""

    def start(self, rng: random.Random) -> Life:
        return PullingAround(self, rng)


class PullingAround(Pulling):
    """Pulls of arms that pay around their means."""

    def __init__(self, bandit: GaussianBandit, rng: random.Random) -> None:
        super().__init__(bandit, rng)
        self._deviation = bandit.deviation

    def act(self, choice: str) -> float:
        mean = self._bandit.chances[ARMS.index(choice)]
        return round(self._rng.gauss(mean, self._deviation), PLACES)


class GaussianBandits(Bandits):
    """Arms whose means are drawn uniformly between 0 and 1, and which pay them with Gaussian noise, in hundredths. The
    vocabulary of `base-trials` has whole numbers alone: take a model of your own, which reads
    `context.turn="reward: {reward:g}"`."""

    kind: ClassVar[type[Rule]] = GaussianBandit
    deviation: Weight = 0.3
    """Of what an arm pays; DPT has 0.3 (its code calls it `var`)."""

    def make(self, rng: random.Random) -> GaussianBandit:
        return GaussianBandit(**super().make(rng).model_dump(), deviation=self.deviation)


class LinearBandits(Bandits):
    """Arms with features x that are known and always the same, and pay with chance 1/2 + <x, theta> / 2: what is hidden
    is theta, of length 1, so that one arm says something of the others."""

    arms: Arms = 10
    """Arms of a bandit; arXiv 2310.08566 has 10."""
    dimensions: Annotated[int, Field(ge=1, le=16)] = 2
    """Of features and theta, which are uniform on the sphere."""
    seed: int = 0
    """Of the features."""

    def make(self, rng: random.Random) -> Bandit:
        known = stream(self.seed, "features")
        features = [_direction(known, self.dimensions) for _ in range(self.arms)]
        theta = _direction(rng, self.dimensions)
        means = (sum(map(float.__mul__, x, theta)) for x in features)
        chances = tuple(min(1.0, max(0.0, round((1 + mean) / 2, 3))) for mean in means)
        return Bandit(turns=self.pulls, chances=chances, features=tuple(features))


class GaussianLinearBandit(GaussianBandit):
    """As `GaussianBandit`, with means that may be below 0 and above 1."""

    chances: tuple[float, ...] = Field(min_length=2, max_length=len(ARMS))


class GaussianLinearBandits(LinearBandits):
    """Arms with features x that are known and always the same, and pay <x, theta> with Gaussian noise, in hundredths.
    Features and theta are Gaussian, with a variance of 1 over their dimensions, as in the code of DPT's authors.
    Rewards are read as those of `GaussianBandits`; the prior of `gaussian_thompson` there is `mean=0 variance=1`."""

    kind: ClassVar[type[Rule]] = GaussianLinearBandit
    deviation: Weight = 0.3
    """Of what an arm pays; DPT has 0.3 (its code calls it `var`)."""

    def make(self, rng: random.Random) -> GaussianLinearBandit:
        known = stream(self.seed, "features")
        features = [_gaussian(known, self.dimensions) for _ in range(self.arms)]
        theta = _gaussian(rng, self.dimensions)
        means = tuple(round(sum(map(float.__mul__, x, theta)), 3) for x in features)
        return GaussianLinearBandit(turns=self.pulls, chances=means, features=tuple(features), deviation=self.deviation)


def _gaussian(rng: random.Random, dimensions: int) -> tuple[float, ...]:
    return tuple(round(rng.gauss(0, dimensions**-0.5), 4) for _ in range(dimensions))


def _direction(rng: random.Random, dimensions: int) -> tuple[float, ...]:
    drawn = [rng.gauss(0, 1) for _ in range(dimensions)]
    length = math.hypot(*drawn)
    return tuple(round(x / length, 4) for x in drawn)


source_of(Bandit)
source_of(GaussianBandit)
source_of(GaussianLinearBandit)
