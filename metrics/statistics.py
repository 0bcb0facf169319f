"""How sure a number is: means with their errors, several samples a question, and two runs on the same questions.

No input is too small for a report: a quantity that is undefined (the mean of nothing, the spread of one value) is NaN.
Sources: those of `metrics.intervals` and `metrics.at_k`; Q. McNemar 1947 (paired shares); R. A. Fisher 1935 (signs
exchanged at random); E. Miller 2024, arXiv 2411.00640 (errors clustered by question).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from metrics.at_k import avg_at_k, maj_at_k, majority_at_k, pass_at_k
from metrics.intervals import agresti_min, bootstrap, mirrored_bootstrap, standard_error, wilson
from metrics.normalise import normalise_strict
from metrics.sign_flips import mcnemar_p, sign_flip_p
from signatures.errors import OptionError

__all__ = [
    "Estimate",
    "PairedDifference",
    "avg_at_k",
    "clustered_mean_with_error",
    "maj_at_k",
    "maj_at_k_with_error",
    "majority_at_k",
    "mean_with_error",
    "paired_difference",
    "pass_at_k",
    "pass_at_k_with_error",
]

_NAN = math.nan


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
        p: Two-sided p of exchanging the runs question by question at random: on 0/1 outcomes McNemar's exact one, on
            others Fisher's, exact or from seeded draws. None for no questions.
    """

    difference: float
    standard_error: float
    low: float
    high: float
    n: int
    mcnemar_p: float | None
    only_a: int
    only_b: int
    p: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as a plain dict with the same keys."""
        return asdict(self)


def mean_with_error(values: Sequence[float]) -> Estimate:
    """Return the mean with its standard error and 95 % interval.

    Outcomes that are all 0 or 1 get Wilson's interval, others the bootstrap's.

    Args:
        values: One value a question, any unit.

    Returns:
        The estimate in the same unit; with a NaN among the values all of it is NaN.
    """
    n = len(values)
    if n == 0:
        return Estimate(_NAN, _NAN, _NAN, _NAN, 0)
    mean = math.fsum(values) / n
    low, high = wilson(mean, n) if _binary(values) else bootstrap(values)
    return Estimate(mean, standard_error(values), low, high, n)


def clustered_mean_with_error(samples: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean over questions when each was sampled several times: avg@k.

    Samples of one question are not independent, so the error is that of the question means, and the bootstrap draws
    questions.

    Args:
        samples: For each question the values of its samples; a question without samples was not measured and is left
            out.

    Returns:
        The estimate; every question weighs the same, and `n` counts questions, not samples.
    """
    return mean_with_error([avg_at_k(values) for values in samples if len(values)])


def pass_at_k_with_error(samples: Sequence[Sequence[float]], k: int) -> Estimate:
    """Return the mean unbiased pass@k over questions.

    Args:
        samples: For each question the outcomes of its samples, at least k; 1 (or True) is right, anything less wrong.
        k: Samples allowed.

    Returns:
        The estimate; `n` counts questions.

    Raises:
        OptionError: A question has fewer than k samples.
    """
    return mean_with_error([pass_at_k(len(values), sum(value >= 1 for value in values), k) for values in samples])


def maj_at_k_with_error(
    answers: Sequence[Sequence[str]],
    samples: Sequence[Sequence[float]],
    key: Callable[[str], str] = normalise_strict,
) -> Estimate:
    """Return the mean maj@k over questions, k being the number of samples that each has.

    Args:
        answers: For each question the answers of its samples.
        samples: For each question their outcomes, in the same order.
        key: What makes two answers the same.

    Returns:
        The estimate; a question without samples is left out.

    Raises:
        OptionError: Answers and outcomes do not match in number.
    """
    if len(answers) != len(samples):
        raise OptionError(
            f"maj@k needs the answers of as many questions as outcomes, not {len(answers)}, {len(samples)}"
        )
    pairs = zip(answers, samples, strict=True)
    return mean_with_error([maj_at_k(given, values, key) for given, values in pairs if len(given) or len(values)])


def paired_difference(a: Sequence[float], b: Sequence[float]) -> PairedDifference:
    """Compare two runs question by question.

    Args:
        a: Outcomes of the first run, one a question (with several samples, their mean).
        b: Outcomes of the second run on the same questions in the same order.

    Returns:
        First minus second. On 0/1 outcomes the interval is Agresti and Min's, on others the bootstrap's over questions.

    Raises:
        OptionError: The runs have different numbers of outcomes.
    """
    n = len(a)
    if n != len(b):
        raise OptionError(f"cannot pair {n} outcomes with {len(b)}; give both runs on the same questions")
    if n == 0:
        return PairedDifference(_NAN, _NAN, _NAN, _NAN, 0, None, 0, 0)
    differences = [float(x) - float(y) for x, y in zip(a, b, strict=True)]
    difference = math.fsum(differences) / n
    error = standard_error(differences)
    only_a, only_b = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    if _binary(a) and _binary(b):
        p = mcnemar_p(only_a, only_b)
        return PairedDifference(difference, error, *agresti_min(only_a, only_b, n), n, p, only_a, only_b, p)
    low, high = mirrored_bootstrap(differences)
    return PairedDifference(difference, error, low, high, n, None, only_a, only_b, sign_flip_p(differences))


def _binary(values: Sequence[float]) -> bool:
    return all(value in (0, 1) for value in values)
