"""Statistics: intervals, paired differences, orderings. No torch."""

from longstride.stats.bootstrap import Effect, mean_interval, paired_difference, paired_difference_clustered
from longstride.stats.measures import pass_at_k, sign_test, wilson_interval
from longstride.stats.ordering import Finding, Judgement, Ordering, Relation, overall

__all__ = [
    "Effect",
    "Finding",
    "Judgement",
    "Ordering",
    "Relation",
    "mean_interval",
    "overall",
    "paired_difference",
    "paired_difference_clustered",
    "pass_at_k",
    "sign_test",
    "wilson_interval",
]
