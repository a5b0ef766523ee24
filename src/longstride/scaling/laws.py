"""Laws: what a measure is expected to do as more is spent, as functions of few parameters.

What always holds: given its *shape* parameters a law is a sum of columns, one a *weight*, so a fit searches the shapes
alone and solves for the weights (variable projection); all functions take batches of parameters. No torch.

Shapes are searched in coordinates in which they may take any value within the bounds of `search`: logarithms, unless a
law says otherwise.
"""

from abc import abstractmethod
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator
from scipy.special import betaln

from longstride.core.component import Component
from longstride.core.errors import LongstrideError

Range = tuple[float, float]
ANY: Range = (-np.inf, np.inf)
UP: Range = (0.0, np.inf)


class FitError(LongstrideError):
    """Points that a law cannot be fitted to: too few, or not numbers."""


class Law(Component):
    """Family: y as a function of x. `weights` and `shapes` are the names of its parameters, in this order."""

    weights: ClassVar[tuple[str, ...]]
    shapes: ClassVar[tuple[str, ...]]
    inputs: ClassVar[int] = 1
    """Numbers that x consists of."""
    logarithmic: ClassVar[bool] = False
    """Whether the columns add up to log y."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all parameters, weights first."""
        return self.weights + self.shapes

    @property
    def free(self) -> int:
        """Parameters that are fitted."""
        return len(self.shapes) + sum(lo < hi for lo, hi in self.bounds)

    @property
    def bounds(self) -> tuple[Range, ...]:
        """Of each weight; one that is held fixed has equal bounds."""
        return (ANY,) * len(self.weights)

    @property
    def values(self) -> Range:
        """Between which the law's own values lie, where it is a law of shares or levels."""
        return ANY

    @abstractmethod
    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        """Of each shape, in its coordinate, where it is searched for points at x."""

    @abstractmethod
    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        """[..., n, weights] for x [n] or [n, inputs] and shapes [..., shapes]."""

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        """[..., shapes] from coordinates of that shape."""
        return np.exp(coordinates)

    def __call__(self, x: np.ndarray, parameters: np.ndarray) -> np.ndarray:
        """y [..., n] at x for parameters [..., names]."""
        k = len(self.weights)
        total = np.einsum("...nj,...j->...n", self.columns(x, parameters[..., k:]), parameters[..., :k])
        return np.exp(total) if self.logarithmic else total

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        """What points at x cannot settle, given what was fitted to them: a sentence each."""
        return []


class Sigmoid(Law):
    """Success by compute: start + (asymptote - start) / (1 + (midpoint / x)^exponent) (Khatri et al., 2025, "The Art of
    Scaling Reinforcement Learning Compute for LLMs", arXiv 2510.13786, equation 1)."""

    start: Annotated[float | None, Field(ge=0)] = None
    """Success before training, where it is known; fitted if left out."""
    most: Annotated[float, Field(gt=0)] = 1.0
    """Start and asymptote lie between 0 and this."""

    weights = ("start", "asymptote")
    shapes = ("midpoint", "exponent")

    @model_validator(mode="after")
    def _starts_below_the_most(self) -> Self:
        if self.start is not None and self.start > self.most:
            raise ValueError(f"start is {self.start:g}, above the most that success can be, {self.most:g}")
        return self

    @property
    def values(self) -> Range:
        return (0.0, self.most)

    @property
    def bounds(self) -> tuple[Range, ...]:
        whole = (0.0, self.most)
        return (whole if self.start is None else (self.start, self.start), whole)

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return (np.log(x.min() / 10), np.log(x.max() * 10)), (np.log(0.3), np.log(5.0))

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        return _rise(x, shapes)

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        beyond = len(np.unique(x[x > values["midpoint"]]))
        if beyond < 2:
            return [
                f"{beyond or 'no'} point{'' if beyond == 1 else 's'} beyond the midpoint, fitted at "
                f"{values['midpoint']:.3g}: the asymptote is not settled; measure beyond {2 * values['midpoint']:.3g}"
            ]
        return []


class LogSigmoid(Law):
    """What grows as a power for a while and then no more, such as the best number of rollouts a problem by compute
    (Cheng et al., 2026, "IsoCompute Playbook", arXiv 2603.12151): log y is a `Sigmoid` in x. `log_low` and `log_high`
    are natural logarithms of the ends."""

    weights = ("log_low", "log_high")
    shapes = ("midpoint", "exponent")
    logarithmic = True

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return (np.log(x.min() / 10), np.log(x.max() * 10)), (np.log(0.3), np.log(5.0))

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        return _rise(x, shapes)

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        if values["midpoint"] > x.max():
            return [
                f"all points lie before the midpoint, fitted at {values['midpoint']:.3g}: where the growth ends is not "
                f"settled; measure beyond {2 * values['midpoint']:.3g}"
            ]
        return []


def _rise(x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
    """[..., n, 2] the shares of the lower and the upper end of a sigmoid, for shapes (midpoint, exponent)."""
    risen = 1 / (1 + (shapes[..., :1] / x) ** shapes[..., 1:])
    return np.stack([1 - risen, risen], -1)


class Power(Law):
    """A loss, or data to a threshold, that falls to a limit: limit + factor x^-exponent; what rises has factor < 0.

    With x the updates to a transition and y the transitions to a threshold it is the first law of Rybkin et al., 2025,
    "Value-Based Deep RL Scales Predictably", arXiv 2502.04327: D_min + (x / beta)^-alpha.
    """

    limit: float | None = None
    """Where it is known (0: a plain power law); fitted from 0 up if left out."""

    weights = ("limit", "factor")
    shapes = ("exponent",)

    @property
    def bounds(self) -> tuple[Range, ...]:
        return (UP if self.limit is None else (self.limit, self.limit), ANY)

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return ((np.log(0.02), np.log(8.0)),)

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        fallen = x**-shapes
        return np.stack([np.ones_like(fallen), fallen], -1)

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        last = values["factor"] * x.max() ** -values["exponent"]
        if self.limit is None and abs(last) > 0.5 * abs(values["factor"] * x.min() ** -values["exponent"]):
            return [
                f"less than half of the way to the limit is measured, at up to {x.max():.3g}: it is not settled; "
                "measure at larger amounts, or give the limit"
            ]
        return []


class RisingPower(Law):
    """What rises as a power, such as what training costs by the depth of its tasks: factor x^exponent (ScaleLogic,
    arXiv 2605.06638, fits T ~ D^g, with g from 1.04 to 2.60). `log_factor` is the natural logarithm of the factor."""

    weights = ("log_factor", "exponent")
    shapes = ()
    logarithmic = True

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return ()

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        own = np.stack([np.ones_like(x), np.log(x)], -1)
        return np.broadcast_to(own, (*shapes.shape[:-1], *own.shape))


class Geometric(Law):
    """That one of x attempts succeeds, each with one chance: ceiling (1 - (1 - chance)^x), for parallel samples and for
    rethinking until the first success alike (Wang et al., 2025, "Scaling over Scaling", arXiv 2505.20522)."""

    ceiling: Annotated[float | None, Field(gt=0, le=1)] = None
    """Share of tasks that can be solved at all; fitted if left out."""

    weights = ("ceiling",)
    shapes = ("chance",)

    @property
    def values(self) -> Range:
        return (0.0, 1.0)

    @property
    def bounds(self) -> tuple[Range, ...]:
        return ((0.0, 1.0) if self.ceiling is None else (self.ceiling, self.ceiling),)

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return ((np.log(0.01 / x.max()), np.log(10 / x.min())),)

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        return -np.expm1(-np.exp(coordinates))

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        return -np.expm1(x * np.log1p(-np.minimum(shapes, 1 - 1e-15)))[..., None]

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        if self.ceiling is None and values["chance"] * x.max() < 1:
            return [
                f"at {x.max():.3g} attempts less than one success is expected: only ceiling times chance is settled; "
                f"measure at {1 / values['chance']:.0f} attempts or more, or give the ceiling"
            ]
        return []


class MixedGeometric(Law):
    """As `Geometric`, with chances that differ between tasks as Beta(a, b): ceiling (1 - B(a, b + x) / B(a, b)). `mean`
    is a / (a + b) and `concentration` a + b; one chance for all is the limit of large concentrations."""

    ceiling: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Share of tasks that can be solved at all. Attempts cannot tell it from very small chances, so it is given."""

    weights = ("ceiling",)
    shapes = ("mean", "concentration")

    @property
    def values(self) -> Range:
        return (0.0, 1.0)

    @property
    def bounds(self) -> tuple[Range, ...]:
        return ((self.ceiling, self.ceiling),)

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return (np.log(0.01 / x.max()), np.log(10 / x.min())), (np.log(0.05), np.log(1000.0))

    def natural(self, coordinates: np.ndarray) -> np.ndarray:
        mean, concentration = np.moveaxis(np.exp(coordinates), -1, 0)
        return np.stack([-np.expm1(-mean), concentration], -1)

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        mean, both = shapes[..., :1], shapes[..., 1:]
        a, b = both * mean, both * (1 - mean)
        return -np.expm1(betaln(a, b + x) - betaln(a, b))[..., None]


class SizedPower(Law):
    """The loss of a model of some size after training on some amount: log y = -rate(size) log(amount) + offset + slope
    log(size), rate(size) = rate / (1 + half_size / size); x is [n, 2], size and amount (Tan et al., 2025, "Scaling
    Behaviors of LLM Reinforcement Learning Post-Training", arXiv 2509.25300).

    The paper gives each size an offset of its own; a line in log(size) predicts sizes that were not run.
    """

    weights = ("rate", "offset", "slope")
    shapes = ("half_size",)
    inputs = 2
    logarithmic = True

    @property
    def bounds(self) -> tuple[Range, ...]:
        return (UP, ANY, ANY)

    def search(self, x: np.ndarray) -> tuple[Range, ...]:
        return ((np.log(x[:, 0].min() / 100), np.log(x[:, 0].max() * 100)),)

    def columns(self, x: np.ndarray, shapes: np.ndarray) -> np.ndarray:
        size, amount = x.T
        steepness = -np.log(amount) / (1 + shapes / size)
        return np.stack([steepness, np.ones_like(steepness), np.log(size) + 0 * steepness], -1)

    def doubts(self, x: np.ndarray, values: dict[str, float]) -> list[str]:
        smallest, largest = x[:, 0].min(), x[:, 0].max()
        if values["rate"] == 0:
            return ["what was measured does not fall with the amount: there is no rate that size could change"]
        if values["half_size"] < smallest / 10:
            return [
                f"all sizes learn at one rate (half of it is fitted at {values['half_size']:.3g}): what size does to "
                "it is not settled; run smaller ones"
            ]
        if values["half_size"] > largest:
            return [
                f"all sizes lie below the one with half of the largest rate, fitted at {values['half_size']:.3g}: the "
                "rate of large models is not settled; run larger ones"
            ]
        return []
