"""Open question answering: exact match, containment and token F1, each the best over the labels.

Source: `official` gives the results of the published scorer (github.com/sunnynexus/Search-o1, scripts/evaluate.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from metrics.extraction import is_valid
from metrics.normalise import normalise_official, strict_tokens
from metrics.overlap import best_of, contains, f1

_YES = frozenset({"yes", "true", "是"})
_NO = frozenset({"no", "false", "否"})
_METRICS = ("em", "acc", "f1")


def official_qa(prediction_text: str, answers: Sequence[str]) -> dict[str, float]:
    """Score an answer as the published scorer does.

    A label that shares no token with the prediction contributes nothing, not even containment.

    Args:
        prediction_text: The extracted answer; empty when there is none.
        answers: The labels, of which any is right.

    Returns:
        `em`, `acc` (the label is contained in the prediction, by characters) and `f1` (by tokens), each the maximum
        over the labels, and `valid` (not empty); all 0 to 1.
    """
    prediction = normalise_official(prediction_text)
    words = prediction.split()
    scores = []
    for answer in answers:
        label = normalise_official(answer)
        overlap = f1(words, label.split())
        if overlap:
            scores.append({"em": prediction == label, "acc": label in prediction, "f1": overlap})
    return {**best_of(scores, _METRICS), "valid": float(prediction_text != "")}


def strict_qa(prediction_text: str, answers: Sequence[str]) -> dict[str, float]:
    """Score an answer strictly: what means the same counts, parts of words do not.

    Answers are compared as `metrics.normalise.normalise_strict` leaves them, Chinese and Japanese by character. To a
    label that is yes or no, the prediction's first word decides, whatever follows it.

    Args:
        prediction_text: The extracted answer; empty when there is none.
        answers: The labels, of which any is right.

    Returns:
        `em`, `acc` (the label's tokens stand in the prediction, in one piece) and `f1` (by tokens), each the maximum
        over the labels, and `valid` (an answer at all); all 0 to 1.
    """
    prediction = strict_tokens(prediction_text)
    scores = []
    for answer in answers:
        label = strict_tokens(answer)
        verdict = _verdict(label) if len(label) == 1 else None
        if verdict is not None:
            scores.append(dict.fromkeys(_METRICS, float(_verdict(prediction) is verdict)))
        elif label:
            scores.append({"em": prediction == label, "acc": contains(prediction, label), "f1": f1(prediction, label)})
    return {**best_of(scores, _METRICS), "valid": float(is_valid(prediction_text, "open_qa"))}


def _verdict(tokens: Sequence[str]) -> bool | None:
    """Return True for yes, False for no, None when the first word is neither or both words occur."""
    if not tokens or {"yes", "no"} <= set(tokens):
        return None
    return True if tokens[0] in _YES else False if tokens[0] in _NO else None
