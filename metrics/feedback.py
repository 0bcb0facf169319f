r"""Scores that say why: the text that a reflecting optimizer (DSPy's GEPA) learns from, and metrics in DSPy's form.

DSPy itself is not imported: its optimizers take any function of the right arguments, and any score that behaves as a
number and answers to `score` and `feedback`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from metrics.kinds import HEADLINE, compared_kind
from metrics.labels import as_labels, as_output
from metrics.normalise import normalise_official
from metrics.scores import Scores
from signatures.errors import DataError
from signatures.markup import segments

_BOX = "\\boxed"
_THINK_END = "</think>"
_SHOWN = 200
_LABELS_SHOWN = 5
_MISSING = object()


class ScoreWithFeedback(float):
    """A score that is a number to everyone, and to GEPA also a record of `score` and `feedback`.

    Args:
        score: The headline score, 0 to 1.
        feedback: What was wrong with the answer, in words.
    """

    def __new__(cls, score: float, feedback: str = "") -> ScoreWithFeedback:
        """Make the number; the text is kept beside it."""
        return super().__new__(cls, score)

    def __init__(self, score: float, feedback: str = "") -> None:
        self.score = float(score)
        self.feedback = feedback

    def __getitem__(self, name: str) -> Any:
        if name not in ("score", "feedback"):
            raise KeyError(name)
        return getattr(self, name)

    def __setitem__(self, name: str, value: Any) -> None:
        self[name]
        setattr(self, name, value)

    def __reduce__(self) -> tuple[type[ScoreWithFeedback], tuple[float, str]]:
        return type(self), (self.score, self.feedback)


class Metric(Protocol):
    """A metric as DSPy calls it: evaluation with two arguments, bootstrapping with three, GEPA with five."""

    def __call__(
        self, example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> ScoreWithFeedback:
        """Score a prediction against its example."""
        ...


def as_metric(family: str, kind: str, score: Callable[..., Scores], score_answer: Callable[..., Scores]) -> Metric:
    r"""Make a DSPy metric out of a family's functions.

    The metric reads the labels from `example.answers` or `example.answer`, and the output from
    `prediction.direct_reasoning` (where a fallback answered) or `prediction.reasoning`. A program whose reasoning holds
    no box, such as `dspy.ChainOfThought`, is judged by `prediction.answer` as it stands. In `strict`, `example.choices`
    is used where there is one. A prediction may also be the output itself, as a string.

    Args:
        family: `official` or `strict`.
        kind: `qa`, `choice` or `math`.
        score: The family's `score`.
        score_answer: The family's `score_answer`.

    Returns:
        The metric; it raises DataError for an example without labels.

    Raises:
        OptionError: The kind is unknown, or is code.
    """
    task = compared_kind(kind)

    def metric(
        example: Any, prediction: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None
    ) -> ScoreWithFeedback:
        labels = _first(example, "answers", "answer")
        if labels is _MISSING:
            raise DataError(f"the example has neither `answers` nor `answer`: {example!r:.200}; give it one of them")
        choices = _first(example, "choices") if family == "strict" else _MISSING
        more = {} if choices is _MISSING or choices is None else {"choices": choices}
        output = prediction if isinstance(prediction, str) else _output(prediction)
        if _BOX in output:
            return with_feedback(family, task, score(task, output, labels, **more), output, labels)
        answer = "" if isinstance(prediction, str) else as_output(_first(prediction, "answer", default=""))
        return with_feedback(family, task, score_answer(task, answer, labels, **more), output or answer, labels)

    metric.__name__ = metric.__qualname__ = f"{family}_{HEADLINE[task]}"
    return metric


def with_feedback(family: str, kind: str, scores: Scores, output: Any, labels: Any) -> ScoreWithFeedback:
    """Put a score into words.

    Args:
        family: `official` or `strict`.
        kind: `qa`, `choice` or `math`.
        scores: What was scored.
        output: The model's whole output, in which the reasons are looked for.
        labels: The labels.

    Returns:
        The headline score with a text of a few sentences: what was answered, what is right, and what to change.
    """
    task, output, labels = compared_kind(kind), as_output(output), as_labels(labels)
    value = float(getattr(scores, HEADLINE[task]))
    shown = " or ".join(f"`{_short(label)}`" for label in labels[:_LABELS_SHOWN]) or "unknown (no label)"
    if len(labels) > _LABELS_SHOWN:
        shown += f" (or {len(labels) - _LABELS_SHOWN} other forms)"
    if value == 1.0:
        return ScoreWithFeedback(value, f"Right: `{_short(scores.prediction)}` (expected {shown}).")
    if scores.prediction:
        said = f"Wrong: the answer was `{_short(scores.prediction)}`, expected {shown}."
    else:
        said = f"No answer could be read; expected {shown}. {_why_no_answer(output, family)}"
    hints = [said, _about_form(task, scores), _about_evidence(task, output, labels)]
    return ScoreWithFeedback(value, " ".join(hint for hint in hints if hint))


def _why_no_answer(output: str, family: str) -> str:
    wanted = "The final answer must stand in \\boxed{...}."
    if not output.strip():
        return f"The output is empty. {wanted}"
    if _BOX not in output:
        return f"The output holds no \\boxed{{...}}. {wanted}"
    if family == "strict":
        own = "".join(segment.text for segment in segments(output) if segment.kind == "model")
        if _BOX not in own:
            return f"The only box stands in a search result, not in the model's own text. {wanted}"
        if _BOX not in own.rpartition(_THINK_END)[2]:
            return f"The only box stands before the last {_THINK_END}; it must be repeated after it."
    return f"The box is empty, is not closed, or only repeats the template. {wanted}"


def _about_form(task: str, scores: Scores) -> str:
    """Say what is wrong with the form of an answer that is there."""
    if not scores.prediction:
        return ""
    if scores.undecided:
        return "It could not be evaluated in time and memory: the box must hold a simplified value."
    if task == "multiple_choice" and not scores.valid:
        return "That is not one letter: the box must hold the letter of one choice and nothing else."
    if scores.acc and not scores.em and task != "math":
        return "The right answer is part of it: the box must hold the answer alone."
    if 0 < scores.f1 < 1 and task == "open_qa":
        return f"It shares words with the right answer (F1 {scores.f1:.2f})."
    return ""


def _about_evidence(task: str, output: str, labels: list[str]) -> str:
    """Say whether a right answer to an open question stood in what was read or thought; elsewhere chance would say."""
    wanted = [label for text in labels if len(label := normalise_official(text)) > 2]
    if task != "open_qa" or not wanted:
        return ""
    parts: dict[str, list[str]] = {"injected": [], "model": []}
    for segment in segments(output):
        parts[segment.kind].append(normalise_official(segment.text))
    found = {
        kind: any(f" {label} " in f" {text} " for text in texts for label in wanted) for kind, texts in parts.items()
    }
    if found["model"]:
        return "The right answer occurs in the reasoning but was not what the box gives."
    if found["injected"]:
        return "The right answer stood in the search results and was not taken from them."
    return "The right answer occurs nowhere in the output." if output.strip() else ""


def _output(prediction: Any) -> str:
    for name in ("direct_reasoning", "reasoning"):
        text = as_output(_first(prediction, name, default=""))
        if text:
            return text
    return ""


def _first(record: Any, *names: str, default: Any = _MISSING) -> Any:
    """Return the first field that a mapping or an object has, or the default."""
    for name in names:
        found = record.get(name, _MISSING) if isinstance(record, Mapping) else getattr(record, name, _MISSING)
        if found is not _MISSING:
            return found
    return default


def _short(text: str) -> str:
    folded = " ".join(text.split())
    return folded if len(folded) <= _SHOWN else f"{folded[:_SHOWN]}…"
