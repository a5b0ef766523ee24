"""Where designs and their scores come from, and what designs are really worth."""

from abc import abstractmethod
from itertools import pairwise
from typing import Annotated

import numpy as np
from pydantic import Field

from longstride.control.envs import ControlTasks, play
from longstride.control.envs.gymnasium import GymnasiumTasks
from longstride.core.component import Component
from longstride.core.errors import OwnCodeError
from longstride.core.numbers import Count, CountOrZero
from longstride.core.seeds import derive
from longstride.design.data import DesignPool, read


class DesignOracle(Component):
    """Family: what designs are really worth. A user's own is a class with `score` in a module, named by
    `tasks.oracle.type=module:Class`."""

    @abstractmethod
    def score(self, designs: np.ndarray) -> np.ndarray:
        """[N] scores of [N, D] designs, which have the form of the file: numbers, or choices."""


class DesignTasks(Component):
    """Family: a pool of designs with scores, of which the worst are shown."""

    kept: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of the pool that is shown to the model: the worst. The rest is held out: it says what more there is, and a
    judge that is learned sees it."""

    @abstractmethod
    def pool(self, seed: int) -> DesignPool:
        """All designs that were ever made: the same for the same seed."""

    @abstractmethod
    def score(self, designs: np.ndarray, seed: int) -> np.ndarray:
        """[N] what [N, D] designs are really worth."""

    @property
    def known(self) -> bool:
        """Whether `score` knows; if not, it is never asked, and a judge is learned from the pool."""
        return True

    @property
    def inside(self) -> bool:
        """Whether numbers of designs stay inside the range of those that are shown."""
        return False


class FileDesigns(DesignTasks):
    """Designs and scores of a file (see `design.data`)."""

    data: str
    """A file `*.npz` or `*.csv`."""
    column: str = "score"
    """The column of scores of a csv; more is better."""
    oracle: DesignOracle | None = None
    """What designs are really worth; None: a network is fitted to the whole file and asked, which is a guess."""
    within: bool = False
    """Whether numbers of proposals stay between the least and the greatest of the file's shown designs, place by
    place."""

    @property
    def known(self) -> bool:
        return self.oracle is not None

    @property
    def inside(self) -> bool:
        return self.within

    def pool(self, seed: int) -> DesignPool:
        """What stands in the file, whatever the seed.

        Raises:
            RunError: it cannot be read.
        """
        return read(self.data, self.column)

    def score(self, designs: np.ndarray, seed: int) -> np.ndarray:
        """What the oracle says.

        Raises:
            OwnCodeError: it answers with no finite number for each design.
        """
        assert self.oracle
        found = np.asarray(self.oracle.score(designs), float)
        if found.shape != (len(designs),) or not np.isfinite(found).all():
            raise OwnCodeError(
                f"{self.oracle.reference()}.score: expected {len(designs)} finite numbers, got the shape {found.shape}"
            )
        return found


class Controllers(DesignTasks):
    """Designs are the weights of controllers, in any environment of control. A controller is worth its mean return; the
    pool was drawn at random. In the kind of Design-Bench's hopper, whose 5,126 weights are those of policies on their
    way through training."""

    tasks: ControlTasks = GymnasiumTasks(id="CartPole-v1")
    """Where controllers act; of discrete actions the largest output is taken."""
    units: CountOrZero = 0
    """Of the layer of tanh; 0: none, outputs are linear in what is observed."""
    horizon: Count = 200
    """Steps of an episode."""
    episodes: Count = 3
    """Of each controller that is valued."""
    designs: Count = 1000
    """Controllers of the pool, with normal weights."""

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Inputs and outputs of the linear maps; the last input of each is a constant."""
        spec = self.tasks.spec
        sizes = [spec.observation, *[self.units] * (self.units > 0), spec.action]
        return [(i + 1, o) for i, o in pairwise(sizes)]

    def pool(self, seed: int) -> DesignPool:
        rng = np.random.default_rng(seed)
        maps = [rng.normal(size=(self.designs, i * o)) / i**0.5 for i, o in self.shapes]
        designs = np.concatenate(maps, axis=1)
        return DesignPool(designs, self.score(designs, derive(seed, "pool")))

    def score(self, designs: np.ndarray, seed: int) -> np.ndarray:
        """Mean return of the episodes of each controller; the starts are the same for the same seed and number."""
        weights = np.repeat(designs, self.episodes, axis=0)
        parts = np.split(weights, np.cumsum([i * o for i, o in self.shapes])[:-1], axis=1)
        maps = [part.reshape(-1, *shape) for part, shape in zip(parts, self.shapes, strict=True)]
        one, spec = np.ones((len(weights), 1)), self.tasks.spec

        def act(observation: np.ndarray, *_: np.ndarray) -> np.ndarray:
            out = observation
            for k, linear in enumerate(maps):
                out = np.einsum("bi,bio->bo", np.concatenate((np.tanh(out) if k else out, one), 1), linear)
            return np.eye(spec.action)[out.argmax(1)] if spec.discrete else np.tanh(out)

        env = self.tasks.training(len(weights), self.horizon)
        try:
            played = play(env, act, seed)
        finally:
            env.close()
        returns = np.array([episode.reward.sum(dtype=float) for episode in played])
        return returns.reshape(-1, self.episodes).mean(1)
