"""Open question answering: exact match, containment and token F1, each the best over the labels.

Source: `official` gives the results of the published scorer (github.com/sunnynexus/Search-o1, scripts/evaluate.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from metrics.extraction import is_valid, official_box, strict_box
from metrics.normalise import normalise_official, strict_tokens
from metrics.scores import Score

_YES = frozenset({"yes", "true", "是"})
_NO = frozenset({"no", "false", "否"})


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
    best = {"em": 0.0, "acc": 0.0, "f1": 0.0}
    for answer in answers:
        label = normalise_official(answer)
        f1 = _f1(prediction.split(), label.split())
        if f1:
            _raise_to(best, em=prediction == label, acc=label in prediction, f1=f1)
    return {**best, "valid": float(prediction_text != "")}


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
    best = {"em": 0.0, "acc": 0.0, "f1": 0.0}
    for answer in answers:
        label = strict_tokens(answer)
        verdict = _verdict(label) if len(label) == 1 else None
        if verdict is not None:
            same = _verdict(prediction) is verdict
            _raise_to(best, em=same, acc=same, f1=same)
        elif label:
            _raise_to(best, em=prediction == label, acc=_contains(prediction, label), f1=_f1(prediction, label))
    return {**best, "valid": float(is_valid(prediction_text, "open_qa"))}


def score_open_qa(chain: str, answers: Sequence[str]) -> Score:
    """Score a chain that answers an open question.

    Args:
        chain: The whole chain, injected blocks with their markers.
        answers: The labels, of which any is right.

    Returns:
        Both families; the headline is `em`.
    """
    official_answer, strict_answer = official_box(chain, "open_qa"), strict_box(chain)
    return Score(
        official=official_qa(official_answer, answers),
        strict=strict_qa(strict_answer, answers),
        official_answer=official_answer,
        strict_answer=strict_answer,
        headline="em",
    )


def _raise_to(best: dict[str, float], **values: float) -> None:
    for name, value in values.items():
        best[name] = max(best[name], float(value))


def _f1(prediction: Sequence[str], label: Sequence[str]) -> float:
    """Return the F1 of two token bags, 0 when they share none."""
    shared = sum((Counter(prediction) & Counter(label)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction), shared / len(label)
    return 2 * precision * recall / (precision + recall)


def _contains(prediction: Sequence[str], label: Sequence[str]) -> bool:
    """Tell whether the label's tokens stand in the prediction side by side."""
    width = len(label)
    return any(list(prediction[start : start + width]) == list(label) for start in range(len(prediction) - width + 1))


def _verdict(tokens: Sequence[str]) -> bool | None:
    """Return True for yes, False for no, None when the first word is neither or both words occur."""
    if not tokens or {"yes", "no"} <= set(tokens):
        return None
    return True if tokens[0] in _YES else False if tokens[0] in _NO else None
