"""Offline design: find a better design than any in the data, and ask the function never.

All methods fit a network to the data and climb it from the best designs of the data, as COMs does (arXiv 2107.06882);
what differs is the loss of the fit, and the space that is climbed in. The first `fit` iterations of a run train the
network, every later one is a step of the climb: a run's curve shows what climbing is worth, step by step.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from longstride.core.numbers import Count, Positive, Share, Weight
from longstride.design.models import climb, overestimation
from longstride.exact.experiment import ExactMethod, ExactProblem, State
from longstride.exact.worlds.designs import FunctionName, Landscape
from longstride.models import flat
from longstride.models.mlp import Trunk


class Designs(ExactProblem):
    """Designs of which the data hold the worst. A solution is `designs` [K, D] in the space of the function, `predicted`
    [K] values, and `span`."""

    function: FunctionName = "ackley"
    """What a design is worth."""
    dims: Count = 16
    """Numbers of a design."""
    inner: Count = 4
    """How many of them, in a rotated basis, decide."""
    optimum: float = 1.0
    """Each inner coordinate of the best design; the pool is standard normal."""
    penalty: Weight = 1.0
    """Cost of a squared length in the other coordinates."""
    pool: Count = 1000
    """Designs that were ever made."""
    kept: Share = 0.6
    """Share of them that is shown: the worst."""
    noise: Weight = 0.05
    """Deviation of the coordinates of the pool."""

    @cached_property
    def landscape(self) -> Landscape:
        """The function."""
        return Landscape(self.function, self.dims, self.inner, self.optimum, self.penalty)

    def measures(self, solution: Mapping[str, np.ndarray]) -> dict[str, float]:
        """Design-Bench's: the best and the median of the designs, 0 and 1 being the worst and the best of the pool;
        `overestimated`: how much more was predicted than is true, on the same scale, on average."""
        low, high = solution["span"]
        true = self.landscape.value(solution["designs"])
        return {
            "best": float(true.max() - low) / float(high - low),
            "median": float(np.median(true) - low) / float(high - low),
            "overestimated": float((solution["predicted"] - true).mean()) / float(high - low),
        }


class Ascent(ExactMethod[Designs]):
    """Gradient ascent on a network that was fitted by least squares: the baseline of Design-Bench."""

    trunk: Trunk = Trunk(width=64, depth=2, norm=False, activation="relu")
    """Hidden layers of every network (the paper: 2 of 2048)."""
    fit: Count = 40
    """Iterations of training; all later ones climb."""
    updates: Count = 10
    """Updates of an iteration of training."""
    batch: Count = 128
    """Designs of an update."""
    lr: Positive = 1e-3
    """Rate of Adam."""
    designs: Count = 128
    """Designs that climb: the best of the data."""
    rate: Positive = 0.05
    """Rate of a step of the climb, times the root of the size of a design (COMs, appendix)."""

    def nets(self, problem: Designs, generator: torch.Generator) -> nn.ModuleDict:
        """All that is trained; `value` maps a point of the space that is climbed in to a standardised value."""
        return nn.ModuleDict({"value": self.trunk.make(problem.dims, 1, generator)})

    def loss(self, nets: nn.ModuleDict, x: Tensor, y: Tensor, state: State, rng: np.random.Generator) -> Tensor:
        """A scalar: the loss of a batch [B, D] with standardised values [B]; may write numbers of its own in `state`."""
        return (self.predict(nets, self.encode(nets, x).detach()) - y).square().mean()

    def predict(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        """[B] standardised values of points of the space that is climbed in."""
        return nets["value"](point)[0, :, 0]

    def encode(self, nets: nn.ModuleDict, x: Tensor) -> Tensor:
        """Points of the space that is climbed in, of [B, D] designs: the designs themselves."""
        return x

    def decode(self, nets: nn.ModuleDict, point: Tensor) -> Tensor:
        """[B, D] designs."""
        return point

    def climb(self, nets: nn.ModuleDict, point: Tensor, steps: int) -> Tensor:
        """Points after steps of gradient ascent on the prediction, each point by its own gradient."""
        return climb(lambda p: self.predict(nets, p), point, steps, self.rate)

    def start(self, problem: Designs, rng: np.random.Generator) -> State:
        data = problem.landscape.draw(problem.pool, problem.kept, problem.noise, rng)
        nets = self.nets(problem, torch.Generator().manual_seed(int(rng.integers(2**31))))
        best = data.x[np.argsort(-data.y)[: self.designs]]
        return {
            "x": data.x,
            "y": data.y,
            "span": data.span,
            "iteration": np.zeros((), int),
            "designs": best,
            "point": self.encode(nets, _tensor(best)).detach().numpy(),
            **flat.arrays(nets),
        }

    def step(self, problem: Designs, state: State, rng: np.random.Generator) -> State:
        nets, state = self._nets(problem, state), dict(state)
        if state["iteration"] < self.fit:
            self._train(nets, state, rng)
        else:
            if state["iteration"] == self.fit:
                state["point"] = self.encode(nets, _tensor(state["designs"])).detach().numpy()
            state["point"] = self.climb(nets, _tensor(state["point"]), 1).numpy()
        state["iteration"] = state["iteration"] + 1
        return state

    def solution(self, problem: Designs, state: State) -> Mapping[str, np.ndarray]:
        nets, y = self._nets(problem, state), state["y"]
        climbing = state["iteration"] > self.fit
        with torch.no_grad():
            point = _tensor(state["point"]) if climbing else self.encode(nets, _tensor(state["designs"]))
            designs = self.decode(nets, point).double().numpy() if climbing else state["designs"]
            predicted = self.predict(nets, point).double().numpy() * y.std() + y.mean()
        return {"designs": designs, "predicted": predicted, "span": state["span"]}

    def _nets(self, problem: Designs, state: State) -> nn.ModuleDict:
        return flat.loaded(self.nets(problem, torch.Generator().manual_seed(0)), state)

    def _train(self, nets: nn.ModuleDict, state: State, rng: np.random.Generator) -> None:
        x, y = _tensor(state["x"]), _tensor((state["y"] - state["y"].mean()) / state["y"].std())
        adam = flat.adam(nets, state, self.lr)
        for _ in range(self.updates):
            rows = torch.from_numpy(rng.integers(len(x), size=self.batch))
            adam.zero_grad()
            self.loss(nets, x[rows], y[rows], state, rng).backward()
            adam.step()
        state |= flat.arrays(nets, adam)


class COM(Ascent):
    """Conservative objective models (arXiv 2107.06882, equation 2): the loss grows by alpha (f(x') - f(x)), x' being what
    the climb makes of the data, and alpha is raised while f(x') - f(x) is above `tau` and lowered while it is below."""

    tau: float = 0.5
    """Overestimation that is tolerated, in deviations of the values."""
    steps: Count = 10
    """Steps of the climb that makes x' (the paper: 50)."""
    alpha_lr: Positive = 0.05
    """Rate of log alpha, which starts at 0."""

    def start(self, problem: Designs, rng: np.random.Generator) -> State:
        return {**super().start(problem, rng), "log_alpha": np.zeros(())}

    def loss(self, nets: nn.ModuleDict, x: Tensor, y: Tensor, state: State, rng: np.random.Generator) -> Tensor:
        point = self.encode(nets, x).detach()
        gap = overestimation(lambda p: self.predict(nets, p), point, self.steps, self.rate)
        alpha = float(np.exp(state["log_alpha"]))
        state["log_alpha"] = state["log_alpha"] + self.alpha_lr * np.sign(gap.item() - self.tau)
        return super().loss(nets, x, y, state, rng) + alpha * gap


def _tensor(array: np.ndarray) -> Tensor:
    return torch.as_tensor(array, dtype=torch.float32)
