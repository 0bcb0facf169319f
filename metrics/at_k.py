"""Several samples of one question: pass@k, avg@k and maj@k. Over all questions see `metrics.statistics`.

Sources: M. Chen et al. 2021, arXiv 2107.03374, section 2.1 (unbiased pass@k); X. Wang et al. 2023, arXiv 2203.11171
(majority of sampled answers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metrics.normalise import normalise_strict
from signatures.errors import OptionError


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased chance that at least one of k samples of a question is right.

    Args:
        n: Samples drawn.
        c: Right ones among them.
        k: Samples allowed, 1 to n.

    Returns:
        1 - C(n - c, k) / C(n, k), as a product, so that no binomial coefficient is ever too large.

    Raises:
        OptionError: The three counts do not fit together.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise OptionError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, not n={n}, c={c}, k={k}; draw at least k samples")
    if n - c < k:
        return 1.0
    # The quotient is the same with c and k exchanged; the shorter product is taken.
    short, long = sorted((c, k))
    if short == 1:
        return long / n
    missed = math.fsum(math.log1p(-long / count) for count in range(n - short + 1, n + 1))
    # Not 1 - exp: a small chance would lose its digits. Without a right sample the sum is 0, and 0 must have no sign.
    return -math.expm1(missed) if missed else 0.0


def avg_at_k(values: Sequence[float]) -> float:
    """Return the mean outcome over the k samples of one question.

    Args:
        values: Outcome of each sample.

    Returns:
        Their mean; NaN for none.
    """
    return math.fsum(values) / len(values) if len(values) else math.nan


def maj_at_k(answers: Sequence[str], values: Sequence[float], key: Callable[[str], str] = normalise_strict) -> float:
    """Return the outcome of the answer that most of a question's k samples give.

    Ties are not broken by order, which would be luck: the outcome is the expected one when one of the equally frequent
    answers is drawn.

    Args:
        answers: One answer a sample; samples without an answer have no vote.
        values: Outcome of each sample, 0 to 1. Samples of one answer differ only if the scorer sees more than
            `key` keeps; then their mean counts.
        key: What makes two answers the same.

    Returns:
        The outcome, 0 to 1; 0 when no sample has an answer, NaN for no samples.

    Raises:
        OptionError: There are not as many answers as outcomes.
    """
    if len(answers) != len(values):
        raise OptionError(f"maj@k needs an outcome an answer, not {len(values)} for {len(answers)} answers")
    if not answers:
        return math.nan
    outcomes: dict[str, list[float]] = {}
    for answer, value in zip(answers, values, strict=True):
        if answer.strip():
            outcomes.setdefault(key(answer), []).append(value)
    most = max(map(len, outcomes.values()), default=0)
    winners = [avg_at_k(group) for group in outcomes.values() if len(group) == most]
    return math.fsum(winners) / len(winners) if winners else 0.0


def majority_at_k(answers: Sequence[str], key: Callable[[str], str] = str.strip) -> str:
    """Return the answer that most of a question's samples give, to be shown; `maj_at_k` is its score.

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
