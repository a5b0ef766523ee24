"""Random numbers of losses and actions, of one run or of R runs side by side.

What always holds: a run draws from its own generator alone, so it draws the same numbers alone and beside others.
"""

from collections.abc import Iterable

import torch
from torch import Tensor


class RunNoise:
    """Random numbers; with several generators all shapes have an axis of runs, R, in front.

    Args:
        generators: one a run; None: torch's own.
    """

    def __init__(self, *generators: torch.Generator | None) -> None:
        self.generators = generators

    @classmethod
    def seeded(cls, *seeds: int) -> "RunNoise":
        """With a new generator for each seed."""
        return cls(*(torch.Generator().manual_seed(seed) for seed in seeds))

    @classmethod
    def of_torch(cls) -> "RunNoise":
        """Drawn by torch's own generator, as what is exported does."""
        return cls(None)

    @property
    def runs(self) -> tuple[int, ...]:
        """(R,) where there are several runs, () where there is one."""
        return (len(self.generators),) if len(self.generators) > 1 else ()

    def normal(self, *shape: int) -> Tensor:
        """Independent normal numbers."""
        return self._each(torch.randn(shape, generator=g) for g in self.generators)

    def uniform(self, *shape: int) -> Tensor:
        """Independent uniform numbers from [0, 1)."""
        return self._each(torch.rand(shape, generator=g) for g in self.generators)

    def permutation(self, count: int) -> Tensor:
        """[count] numbers from 0 on, shuffled."""
        return self._each(torch.randperm(count, generator=g) for g in self.generators)

    def choice(self, share_BA: Tensor, count: int) -> Tensor:
        """[B, count] numbers of entries, drawn with probabilities that are proportional to [B, A] shares."""

        def drawn(share_BA: Tensor, g: torch.Generator | None) -> Tensor:
            return torch.multinomial(share_BA, count, replacement=True, generator=g)

        if not self.runs:
            return drawn(share_BA, self.generators[0])
        return torch.stack([drawn(share, g) for share, g in zip(share_BA, self.generators, strict=True)])

    def _each(self, drawn: Iterable[Tensor]) -> Tensor:
        return torch.stack(list(drawn)) if self.runs else next(iter(drawn))
