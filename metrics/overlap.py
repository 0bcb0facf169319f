"""What scorers of every kind share: token F1, containment in one piece, and the best over the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def f1(answer: Sequence[str], label: Sequence[str]) -> float:
    """Return the F1 of two bags of tokens.

    Args:
        answer: Tokens of the answer.
        label: Tokens of the label.

    Returns:
        Harmonic mean of precision and recall, 0 when they share no token.
    """
    shared = sum((Counter(answer) & Counter(label)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(answer), shared / len(label)
    return 2 * precision * recall / (precision + recall)


def contains(answer: Sequence[str], label: Sequence[str]) -> bool:
    """Tell whether the label's tokens stand in the answer side by side.

    Args:
        answer: Tokens of the answer.
        label: Tokens of the label.

    Returns:
        Whether they do; an empty label is contained in nothing.
    """
    width, wanted = len(label), list(label)
    if not width:
        return False
    starts = range(len(answer) - width + 1)
    return any(answer[start] == wanted[0] and list(answer[start : start + width]) == wanted for start in starts)


def best_of(scores: Sequence[Mapping[str, float]], names: Sequence[str]) -> dict[str, float]:
    """Return the best value of each metric over the labels.

    Args:
        scores: Metrics by name, one mapping a label.
        names: The metrics to report.

    Returns:
        The maximum of each; 0 when there is no label.
    """
    return {name: max((float(score[name]) for score in scores), default=0.0) for name in names}
