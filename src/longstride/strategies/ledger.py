"""What a strategy spends. No torch.

What always holds: a ledger never changes; two add up field by field. A strategy is compared by its curve of success
against the ledger, never by a point.
"""

from dataclasses import dataclass, fields
from typing import Self


@dataclass(frozen=True, slots=True)
class Ledger:
    """Tokens and calls."""

    sampled: int = 0
    """Tokens that the policy sampled, probes and dropped beginnings too."""
    scored: int = 0
    """Tokens that the scorer read and sampled."""
    calls: int = 0
    """Steps that were asked for."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.sampled + self.scored

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))
