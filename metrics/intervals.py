"""Intervals of 95 %: of a share (Wilson), of a difference of paired shares (Agresti and Min), of any mean (bootstrap).

Sources: E. B. Wilson 1927, "Probable inference, the law of succession, and statistical inference"; A. Agresti & Y. Min
2005, "Simple improved confidence intervals for comparing matched proportions"; B. Efron 1979 (bootstrap), with the
correction for few values of T. Hesterberg 2015, arXiv 1411.5279, section 3.4 ("expanded percentile").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""

RESAMPLES = 10_000
"""Bootstrap resamples: with them the ends of an interval are known to about 1 % of its width."""

_SEED = 20250109
_CHUNK = 2_000_000
_NAN = math.nan


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean.

    Args:
        values: Independent values, any unit.

    Returns:
        The sample standard deviation over the root of their number, in the same unit; NaN for fewer than two.
    """
    n = len(values)
    if n < 2:
        return _NAN
    mean = math.fsum(values) / n
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def wilson(share: float, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a share, which stays within 0 and 1 and is honest at the ends.

    Args:
        share: Observed share, 0 to 1.
        n: Observations, at least 1.

    Returns:
        Lower and upper end.
    """
    z2 = Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the formula gives exactly 0 or 1; rounding must not push the share out of its own interval.
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def agresti_min(only_first: int, only_second: int, n: int) -> tuple[float, float]:
    """Return the interval of the difference of two shares of the same questions.

    Half a question is added to each of the four cells, so that it does not shrink to nothing where the runs agree.

    Args:
        only_first: Questions that only the first run has right.
        only_second: Questions that only the second run has right.
        n: All questions, at least 1.

    Returns:
        Lower and upper end of first minus second, within -1 and 1.
    """
    total = n + 2
    centre = (only_first - only_second) / total
    half = Z95 * math.sqrt((only_first + only_second + 1) / total - centre**2) / math.sqrt(total)
    return max(-1.0, centre - half), min(1.0, centre + half)


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap interval of a mean.

    The percentile interval of resampled means, its percentiles moved outwards so that few values get Student's width.
    It never leaves the range of the values. The resamples are seeded and drawn from the sorted values: the same values
    give the same interval in any order. With under 20 values, or where nearly all are alike, it is too narrow.

    Args:
        values: Independent values, any unit.

    Returns:
        Lower and upper end in the same unit; NaN for fewer than two values, or where one is not finite.
    """
    n = len(values)
    if n < 2 or not all(math.isfinite(value) for value in values):
        return _NAN, _NAN
    if min(values) == max(values):
        return float(values[0]), float(values[0])
    import numpy as np
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(math.sqrt(n / (n - 1)) * stdtrit(n - 1, 0.025)))
    low, high = np.quantile(_resampled_means(values), (tail, 1 - tail))
    mean = math.fsum(values) / n
    return min(float(low), mean), max(float(high), mean)


def mirrored_bootstrap(differences: Sequence[float]) -> tuple[float, float]:
    """Return the bootstrap interval of a mean difference, such that swapping the sides only turns it round.

    Args:
        differences: First minus second, one a question.

    Returns:
        Lower and upper end: the mean of the bootstrap's and of its mirror image from the negated differences.
    """
    low, high = bootstrap(differences)
    other_low, other_high = bootstrap([-value for value in differences])
    return (low - other_high) / 2, (high - other_low) / 2


def _resampled_means(values: Sequence[float]) -> Any:
    """Return the means of `RESAMPLES` resamples with replacement."""
    import numpy as np

    n = len(values)
    generator = np.random.default_rng(_SEED)
    distinct, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    # Scores take few values: how often each is drawn says all, and is far less to draw than the questions themselves.
    few = 5 * len(distinct) <= n
    ordered = np.repeat(distinct, counts)
    rows = max(1, _CHUNK // (len(distinct) if few else n))
    means = []
    for start in range(0, RESAMPLES, rows):
        size = min(rows, RESAMPLES - start)
        if few:
            means.append(generator.multinomial(n, counts / n, size=size) @ distinct / n)
        else:
            means.append(ordered[generator.integers(0, n, (size, n), dtype=np.int32)].mean(axis=1))
    return np.concatenate(means)
