"""The numbers of low-rank adapters, apart from what makes them (`models.adapters`)."""

from longstride.core.component import Component
from longstride.core.numbers import Count, Positive


class LoRA(Component):
    """W + (alpha / rank) B A for the chosen linear layers, with A and B trained. There is no dropout: what is trained
    is the distribution that was sampled from."""

    rank: Count = 16
    """Rows of A, columns of B."""
    alpha: Positive = 32.0
    """Scale: the learning rate of the adapters in other words."""
    targets: str | tuple[str, ...] = "all-linear"
    """Names of the linear layers (such as `q_proj`), a regular expression over their paths, or all but the head."""
    seed: int = 0
    """Of A's first values, together with the seed of the run; B begins as 0."""
