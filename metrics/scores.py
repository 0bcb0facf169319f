"""What scoring one answer gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Scores:
    """The outcome of one answer in one metric family, named as the published scorer names it.

    Attributes:
        em: 1 if the answer is the label, else 0.
        acc: 1 if the label is contained in the answer, else 0.
        f1: Token overlap of the two, 0 to 1.
        math_equal: 1 if both mean the same to a mathematician; 0 for open questions, which have no such test.
        prediction: The answer that was read out of the output; empty when there is none.
        valid: Whether there is an answer at all, right or wrong (for a choice: one letter).
        undecided: Whether the comparison was given up for time or memory; such an answer counts as wrong.
    """

    em: float
    acc: float
    f1: float
    math_equal: float
    prediction: str
    valid: bool
    undecided: bool = False

    @classmethod
    def from_numbers(cls, numbers: Mapping[str, float], prediction: str) -> Scores:
        """Make the scores of one family out of what its scorers give.

        Args:
            numbers: `em`, `acc`, `f1` and `valid`, and `math_equal` and `undecided` where the kind has them.
            prediction: The answer that was scored.

        Returns:
            The scores.
        """
        return cls(
            em=numbers["em"],
            acc=numbers["acc"],
            f1=numbers["f1"],
            math_equal=numbers.get("math_equal", 0.0),
            prediction=prediction,
            valid=bool(numbers["valid"]),
            undecided=bool(numbers.get("undecided", 0.0)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as a plain dict with the same keys."""
        return asdict(self)


@dataclass(frozen=True)
class Score:
    """The outcome of one answer in both metric families.

    Attributes:
        official: Metrics of the published scorer by name, each 0 to 1.
        strict: The same names, judged strictly, each 0 to 1; for math also `undecided`, 1 where the comparison gave up.
        official_answer: The answer the official family read out of the chain.
        strict_answer: The answer the strict family read out of the chain.
        headline: Name of the metric that stands for the task, a key of both families.
    """

    official: dict[str, float]
    strict: dict[str, float]
    official_answer: str
    strict_answer: str
    headline: str

    def to_dict(self) -> dict[str, Any]:
        """Return the score as a plain dict with the same keys."""
        return asdict(self)
