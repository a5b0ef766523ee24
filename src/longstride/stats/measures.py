"""Point estimates and the interval of a share.

What always holds: closed forms, no randomness. `scipy.stats` takes half a second to import, which reading a recipe must
not: it is imported by what calls it.
"""

from math import comb

import numpy as np
from numpy.typing import ArrayLike, NDArray


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that one of k attempts is right, from n attempts of which c were: 1 - C(n - c, k) / C(n, k)
    (Chen et al., 2021, arXiv 2107.03374, equation 1).

    Raises:
        ValueError: not 0 <= c <= n and 1 <= k <= n.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, got n={n}, c={c}, k={k}")
    return 1 - comb(n - c, k) / comb(n, k)


def wilson_interval(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (1927): sound where a bootstrap has no width, at 0 and n successes.

    Raises:
        ValueError: not 0 <= successes <= n with n >= 1.
    """
    if not (0 <= successes <= n and n >= 1):
        raise ValueError(f"a share needs 0 <= successes <= n and n >= 1, got {successes} of {n}")
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)


def sign_test(higher: int, lower: int) -> float:
    """Two-sided p value of the exact sign test: whether pairs that differ are as often higher as lower. Sound where a
    bootstrap has no width, at differences that are all equal; 1 where none differ."""
    from scipy.stats import binomtest

    return float(binomtest(higher, higher + lower).pvalue) if higher + lower else 1.0


def chance_above(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """Share of pairs in which the value of `a` is above that of `b`, a tie counting half: Mann and Whitney's U (1947)
    divided by the number of pairs, along the first axis.

    Args:
        a: (N, ...)
        b: (M, ...)

    Returns:
        (...)
    """
    from scipy.stats import rankdata

    left, right = np.asarray(a, np.float64), np.asarray(b, np.float64)
    n, m = len(left), len(right)
    ranks = rankdata(np.concatenate([left, right]), axis=0)[:n]
    return (ranks.sum(0) - n * (n + 1) / 2) / (n * m)
