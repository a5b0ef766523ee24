"""Point estimates and the interval of a share.

What always holds: closed forms, no randomness.
"""

from collections.abc import Sequence
from math import comb, sqrt
from statistics import NormalDist, fmean


def iqm(values: Sequence[float]) -> float:
    """Interquartile mean: the mean without the floor(n / 4) lowest and as many highest (Agarwal et al., 2021, arXiv
    2108.13264).

    Raises:
        ValueError: no values.
    """
    if not values:
        raise ValueError("the interquartile mean of no values")
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


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
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
