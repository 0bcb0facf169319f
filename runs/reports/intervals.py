"""Intervals of what is put together from several means: averages over benchmarks, differences, relative gains.

Sources: R. G. Newcombe 1998 (difference of two shares from their Wilson intervals); G. Y. Zou & A. Donner 2008 (for any
sum of independent means).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metrics.statistics import Estimate, mean_with_error

_Z95 = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % interval.

    Attributes:
        value: The number.
        low: Lower end; NaN where there is none.
        high: Upper end; NaN where there is none.
    """

    value: float
    low: float = math.nan
    high: float = math.nan


def average(estimates: Sequence[Estimate]) -> Interval:
    """Return the mean over benchmarks, each counting the same.

    Args:
        estimates: One a benchmark, measured on different questions.

    Returns:
        The mean with its interval, put together from theirs.
    """
    k = len(estimates)
    if not k:
        return Interval(math.nan)
    value = math.fsum(e.mean for e in estimates) / k
    below = math.sqrt(math.fsum((e.mean - e.low) ** 2 for e in estimates)) / k
    above = math.sqrt(math.fsum((e.high - e.mean) ** 2 for e in estimates)) / k
    return Interval(value, value - below, value + above)


def published_estimate(share: float, questions: int) -> Estimate:
    """Return a published share with the error that so many questions give it.

    Args:
        share: The share, 0 to 1, as printed.
        questions: How many questions it was measured on.

    Returns:
        The share as printed, with Wilson's interval of the nearest count.
    """
    right = round(share * questions)
    found = mean_with_error([1.0] * right + [0.0] * (questions - right))
    return Estimate(share, found.standard_error, min(found.low, share), max(found.high, share), questions)


def difference(ours: Estimate, theirs: Estimate) -> Interval:
    """Return how far a mean lies above another, as if the two were independent.

    For two runs on the same questions the interval is on the cautious side; where the answers of both are at hand, use
    `metrics.statistics.paired_difference`.

    Args:
        ours: One mean.
        theirs: The other; an exact number has its interval at itself.

    Returns:
        Ours minus theirs.
    """
    value = ours.mean - theirs.mean
    below = math.hypot(ours.mean - ours.low, theirs.high - theirs.mean)
    above = math.hypot(ours.high - ours.mean, theirs.mean - theirs.low)
    return Interval(value, value - below, value + above)


def relative_gain(a: Sequence[Mapping[str, float]], b: Sequence[Mapping[str, float]], *, paired: bool) -> Interval:
    """Return by what share the average of one system exceeds that of another.

    Args:
        a: For each benchmark the outcome of each question by id.
        b: The same of the system it is compared with, in the same order of benchmarks.
        paired: Whether equal ids are the same questions, whose outcomes then go together.

    Returns:
        a / b - 1, with the interval of the logarithm of a / b; NaN where b has nothing right.
    """
    of_a, of_b = [mean_with_error(list(x.values())) for x in a], [mean_with_error(list(x.values())) for x in b]
    k = len(of_a)
    if not k:
        return Interval(math.nan)
    mean_a, mean_b = (math.fsum(e.mean for e in es) / k for es in (of_a, of_b))
    if not mean_b > 0:
        return Interval(math.nan)
    gain = mean_a / mean_b - 1
    if not mean_a > 0:
        return Interval(gain)
    common = math.fsum(_covariance(x, y) for x, y in zip(a, b, strict=True)) if paired else 0.0
    variances = [math.fsum(e.standard_error**2 for e in es) / k**2 for es in (of_a, of_b)]
    spread = variances[0] / mean_a**2 + variances[1] / mean_b**2 - 2 * common / (k**2 * mean_a * mean_b)
    half = _Z95 * math.sqrt(max(0.0, spread)) if spread == spread else math.nan
    return Interval(gain, (1 + gain) * math.exp(-half) - 1, (1 + gain) * math.exp(half) - 1)


def _covariance(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Return the covariance of two means through the questions that both were asked."""
    ids = [i for i in a if i in b]
    if len(ids) < 2:
        return 0.0
    mean_a, mean_b = (math.fsum(x[i] for i in ids) / len(ids) for x in (a, b))
    together = math.fsum((a[i] - mean_a) * (b[i] - mean_b) for i in ids) / (len(ids) - 1)
    return together * len(ids) / (len(a) * len(b))
