"""How sure a mean is: standard errors, intervals, paired differences, and several samples a question.

No input is too small for a report: a quantity that is undefined (the mean of nothing, the spread of one value) is NaN.
Sources: E. B. Wilson 1927 (interval of a share); Q. McNemar 1947 and A. Agresti & Y. Min 2005 (paired shares); M. Chen
et al. 2021, arXiv 2107.03374 (unbiased pass@k); E. Miller 2024, arXiv 2411.00640 (errors clustered by question).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from signatures.errors import OptionError

_NAN = math.nan
_Z95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A mean with its error.

    Attributes:
        mean: The mean; NaN for no values.
        standard_error: Its standard error; NaN for fewer than two values.
        low: Lower end of the 95 % interval; NaN where there is none.
        high: Upper end of the 95 % interval; NaN where there is none.
        n: How many independent values it rests on.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    n: int

    def to_dict(self) -> dict[str, Any]:
        """Return the estimate as a plain dict with the same keys."""
        return asdict(self)


@dataclass(frozen=True)
class PairedDifference:
    """How two runs differ on the same questions.

    Attributes:
        difference: Mean of the first run minus mean of the second; NaN for no questions.
        standard_error: Its standard error from the differences by question; NaN for fewer than two questions.
        low: Lower end of the 95 % interval.
        high: Upper end of the 95 % interval.
        n: Number of questions.
        mcnemar_p: Two-sided exact p that the runs are equally often right where they disagree; None when the outcomes
            are not all 0 or 1, or there are none.
        only_a: Questions on which only the first run is right (on graded outcomes: on which it is better).
        only_b: Questions on which only the second run is right (or better).
    """

    difference: float
    standard_error: float
    low: float
    high: float
    n: int
    mcnemar_p: float | None
    only_a: int
    only_b: int

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as a plain dict with the same keys."""
        return asdict(self)


def mean_with_error(values: Sequence[float]) -> Estimate:
    """Return the mean with its standard error and 95 % interval.

    Outcomes that are all 0 or 1 get Wilson's interval, which stays within 0 and 1 and is honest at the ends; others get
    Student's.

    Args:
        values: One value a question, any unit.

    Returns:
        The estimate in the same unit.
    """
    n = len(values)
    if n == 0:
        return Estimate(_NAN, _NAN, _NAN, _NAN, 0)
    mean = math.fsum(values) / n
    error = _standard_error(values, mean)
    if _binary(values):
        low, high = _wilson(mean, n)
    else:
        low, high = _student(mean, error, n)
    return Estimate(mean, error, low, high, n)


def clustered_mean_with_error(samples: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean over questions when each was sampled several times.

    Samples of one question are not independent, so the error is that of the question means.

    Args:
        samples: For each question the values of its samples; a question without samples was not measured and is left
            out.

    Returns:
        The estimate; `n` counts questions, not samples.
    """
    return mean_with_error([avg_at_k(values) for values in samples if len(values)])


def paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Compare two runs question by question.

    Args:
        a: Outcomes of the first run, one a question.
        b: Outcomes of the second run on the same questions in the same order.

    Returns:
        First minus second. On 0/1 outcomes the interval is Agresti and Min's (half a question added to each cell), so
        that it does not shrink to nothing where the runs agree; on others Student's.

    Raises:
        OptionError: The runs have different numbers of outcomes.
    """
    n = len(a)
    if n != len(b):
        raise OptionError(f"cannot pair {n} outcomes with {len(b)}; give both runs on the same questions")
    only_a = sum(x > y for x, y in zip(a, b, strict=True))
    only_b = sum(x < y for x, y in zip(a, b, strict=True))
    if n == 0:
        return PairedDifference(_NAN, _NAN, _NAN, _NAN, 0, None, 0, 0)
    differences = [x - y for x, y in zip(a, b, strict=True)]
    difference = math.fsum(differences) / n
    error = _standard_error(differences, difference)
    if _binary(a) and _binary(b):
        low, high = _agresti_min(only_a, only_b, n)
        return PairedDifference(difference, error, low, high, n, _mcnemar(only_a, only_b), only_a, only_b)
    low, high = _student(difference, error, n)
    return PairedDifference(difference, error, low, high, n, None, only_a, only_b)


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that at least one of k samples of a question is right.

    Args:
        n: Samples drawn.
        c: Right ones among them.
        k: Samples allowed, 1 to n.

    Returns:
        1 - C(n - c, k) / C(n, k).

    Raises:
        OptionError: The three counts do not fit together.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise OptionError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, not n={n}, c={c}, k={k}; draw at least k samples")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def avg_at_k(values: Sequence[float]) -> float:
    """Return the mean outcome over the k samples of one question.

    Args:
        values: Outcome of each sample.

    Returns:
        Their mean; NaN for none.
    """
    return math.fsum(values) / len(values) if len(values) else _NAN


def majority_at_k(answers: Sequence[str], key: Callable[[str], str] = str.strip) -> str:
    """Return the answer that most of a question's samples give.

    Args:
        answers: One answer a sample; samples without an answer have no vote.
        key: What makes two answers the same, for example `metrics.normalise_strict`.

    Returns:
        The winning answer as it was first written; of equally frequent ones the first seen. Empty when no sample has an
        answer.
    """
    votes: dict[str, int] = {}
    written: dict[str, str] = {}
    for answer in answers:
        if answer.strip():
            same = key(answer)
            votes[same] = votes.get(same, 0) + 1
            written.setdefault(same, answer)
    return written[max(votes, key=votes.__getitem__)] if votes else ""


def _binary(values: Sequence[float]) -> bool:
    return all(value in (0, 1) for value in values)


def _standard_error(values: Sequence[float], mean: float) -> float:
    n = len(values)
    if n < 2:
        return _NAN
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1) / n)


def _wilson(share: float, n: int) -> tuple[float, float]:
    z2 = _Z95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    # At the ends the formula gives exactly 0 or 1; rounding must not push the share out of its own interval.
    return max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share))


def _student(mean: float, error: float, n: int) -> tuple[float, float]:
    if n < 2:
        return _NAN, _NAN
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, 0.975)) * error
    return mean - half, mean + half


def _agresti_min(only_a: int, only_b: int, n: int) -> tuple[float, float]:
    total = n + 2
    centre = (only_a - only_b) / total
    half = _Z95 * math.sqrt((only_a + only_b + 1) / total - centre**2) / math.sqrt(total)
    return max(-1.0, centre - half), min(1.0, centre + half)


def _mcnemar(only_a: int, only_b: int) -> float:
    """Return the two-sided exact p: a fair coin thrown once for each question on which the runs disagree."""
    disagreements = only_a + only_b
    tail = sum(math.comb(disagreements, count) for count in range(min(only_a, only_b) + 1))
    share: float = 2 * tail / (1 << disagreements)
    return min(1.0, share)
