"""Aggregation: how the loss terms of single tokens become the loss of an optimiser step.

What always holds: shares and denominator are made from all samples of the optimiser step, so that the loss does not
depend on how the step is cut into micro-batches; every sampled token of a sample counts, also one of weight 0; tokens
that the policy did not sample count nowhere. No torch.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Literal

from longstride.core.component import Component
from longstride.core.numbers import Positive
from longstride.methods.base import Sample


class Aggregation(Component):
    """Family: the loss of a step is `sum_samples share * sum_tokens term / denominator`."""

    @abstractmethod
    def __call__(self, samples: Sequence[Sample]) -> tuple[list[float], float]:
        """The share of each sample's tokens, and the denominator.

        Args:
            samples: all of the optimiser step, as `methods.base.Sample`; at least one.
        """


class Mean(Aggregation):
    """The mean over units of the mean over each unit's tokens.

    | over | a unit is | who |
    |---|---|---|
    | `token` | the step: a long answer has a large share | DAPO (arXiv 2503.14476, section 3.3) |
    | `sequence` | a sample: one turn | GSPO (arXiv 2507.18071) |
    | `episode` | an episode; with one turn each it is `sequence` | GRPO (arXiv 2402.03300, equation 3) |
    | `prompt` | a group of episodes | ScaleRL (arXiv 2510.13786) |

    Denominators are random, and what a token weighs depends on the length of its unit, so the expected gradient of a
    step is not that of the return: `Constant` per episode is.
    """

    over: Literal["token", "sequence", "episode", "prompt"] = "token"
    """The unit."""

    def __call__(self, samples: Sequence[Sample]) -> tuple[list[float], float]:
        units: list[Hashable] = [_unit(self.over, n, s) for n, s in enumerate(samples)]
        tokens: Counter[Hashable] = Counter()
        for unit, s in zip(units, samples, strict=True):
            tokens[unit] += len(s.sampled_ids)
        if self.over == "token":
            return [1.0] * len(samples), float(max(tokens.total(), 1))
        return [1 / max(tokens[unit], 1) for unit in units], float(len(tokens))


class Constant(Aggregation):
    """The sum over tokens, divided by a constant length and by the number of sequences or episodes (Dr.GRPO, arXiv
    2503.20783, section 3.2): no token's weight depends on how long its answer became."""

    length: Positive = 1.0
    """The constant, say the most tokens that may be sampled."""
    per: Literal["sequence", "episode"] = "sequence"
    """Whether turns or episodes are counted. Per episode the expected gradient is exactly that of the return."""

    def __call__(self, samples: Sequence[Sample]) -> tuple[list[float], float]:
        count = len({_unit(self.per, n, s) for n, s in enumerate(samples)})
        return [1.0] * len(samples), self.length * count


def _unit(over: str, number: int, sample: Sample) -> Hashable:
    """A key for the unit of a sample, the step's `number`-th: no other unit has it."""
    match over:
        case "sequence":
            return number
        case "episode":
            return sample.episode
        case "prompt":
            return sample.group
        case _:
            return None
