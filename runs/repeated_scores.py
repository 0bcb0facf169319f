"""pass@k and maj@k of a run whose questions were answered several times each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from metrics import math_official, math_strict
from metrics.normalise import normalise_strict
from metrics.statistics import Estimate, maj_at_k_with_error, pass_at_k_with_error
from runs.journal import Record

_ANSWERS = {"official": "official_prediction", "strict": "prediction"}
_MATH_VOTES = {"official": math_official.vote_key, "strict": math_strict.vote_key}


def repeated_scores(by_question: Mapping[str, Sequence[Record]], headline: str) -> dict[str, dict[str, Estimate]]:
    """Summarise the samples of each question.

    Args:
        by_question: Records by question id.
        headline: Name of the headline metric; 1 is right.

    Returns:
        Family to `pass@k` for k = 2, 4, 8, ... up to the fewest samples that a question has, and `maj@k` for that
        number; empty where a question has one sample only. Math answers are one vote where they have the same value
        (official: the same string), others where they read the same. With a program as the answer there is no majority.
    """
    fewest = min(map(len, by_question.values()), default=0)
    if fewest < 2:
        return {}
    found: dict[str, dict[str, Estimate]] = {}
    for family, answer in _ANSWERS.items():
        outcomes = [[float(r[family][headline]) for r in records] for records in by_question.values()]
        powers = [2**n for n in range(1, fewest.bit_length()) if 2**n < fewest]
        found[family] = {f"pass@{k}": pass_at_k_with_error(outcomes, k) for k in (*powers, fewest)}
        if headline != "pass@1":
            first = [[r[answer] for r in records[:fewest]] for records in by_question.values()]
            key: Callable[[str], str] = _MATH_VOTES[family] if headline == "math_equal" else normalise_strict
            found[family][f"maj@{fewest}"] = maj_at_k_with_error(first, [values[:fewest] for values in outcomes], key)
    return found
