"""What scoring one answer gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """The outcome of one answer in both metric families.

    Attributes:
        official: Metrics of the published scorer by name, each 0 to 1.
        strict: The same names, judged strictly, each 0 to 1.
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
