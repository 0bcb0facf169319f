"""Whether two runs differ by more than chance: the runs are exchanged question by question, as a fair coin says.

Where each outcome is right or wrong that is McNemar's exact test; for graded outcomes it is Fisher's randomisation test
of paired differences, of which McNemar's is the special case.
Sources: Q. McNemar 1947, "Note on the sampling error of the difference between correlated proportions"; R. A. Fisher
1935, The Design of Experiments, section 21; B. Phipson & G. K. Smyth 2010 (a p from random draws is never 0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_DRAWS = 20_000
_SEED = 20250109
_EXACT = 14
"""Up to so many differing questions all exchanges are looked at, which are fewer than the draws."""
_COLUMNS = 200


def mcnemar_p(only_a: int, only_b: int) -> float:
    """Return the two-sided exact p: a fair coin thrown once for each question on which the runs disagree.

    Args:
        only_a: Questions that only the first run has right.
        only_b: Questions that only the second run has right.

    Returns:
        The p; 1 when they never disagree.
    """
    from scipy.special import bdtr

    disagreements = only_a + only_b
    return min(1.0, 2 * float(bdtr(min(only_a, only_b), disagreements, 0.5))) if disagreements else 1.0


def sign_flip_p(differences: Sequence[float]) -> float:
    """Return the two-sided p of a mean difference of zero.

    Args:
        differences: First minus second, one a question.

    Returns:
        The p, the same for second minus first and in any order: exact where few questions differ, else from seeded
        draws; 1 where none does, NaN where a difference is not finite.
    """
    if not all(math.isfinite(value) for value in differences):
        return math.nan
    sizes = sorted(abs(value) for value in differences if value)
    if not sizes:
        return 1.0
    import numpy as np

    # Sums that are equal on paper may differ in their last digit.
    observed = abs(math.fsum(differences)) * (1 - 1e-9)
    if len(sizes) <= _EXACT:
        numbers = np.arange(2 ** len(sizes))[:, None]
        signs = 1 - 2 * ((numbers >> np.arange(len(sizes))) & 1)
        return float(np.mean(np.abs(signs @ np.asarray(sizes)) >= observed))
    generator = np.random.default_rng(_SEED)
    distinct, counts = np.unique(np.asarray(sizes), return_counts=True)
    sums = np.zeros(_DRAWS)
    for start in range(0, len(distinct), _COLUMNS):
        count = counts[start : start + _COLUMNS]
        sums += (2 * generator.binomial(count, 0.5, size=(_DRAWS, len(count))) - count) @ distinct[
            start : start + _COLUMNS
        ]
    return float((1 + np.sum(np.abs(sums) >= observed)) / (1 + _DRAWS))
