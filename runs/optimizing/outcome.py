"""What an optimisation came to, as MLflow is told of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from metrics.statistics import Estimate, PairedDifference


@dataclass(frozen=True)
class Outcome:
    """What an optimisation came to.

    Attributes:
        program: The compiled program's JSON file.
        metric: Name of the metric it was chosen by.
        before: Score of the start on the validation questions.
        after: Score of the program on the same.
        val_hash: Hash of the validation questions.
        difference: After against before, question by question, or None.
        spent: What it cost by name: calls, tokens, cost, seconds; None was never told.
        tags: What else is worth knowing of it, such as the optimizer.
        interrupted: Whether it was stopped before its end.
    """

    program: Path
    metric: str
    before: Estimate
    after: Estimate
    val_hash: str
    difference: PairedDifference | None = None
    spent: Mapping[str, float | None] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False

    def metrics(self) -> dict[str, float]:
        """Return everything that is a number by metric name; what is not known is left out."""
        found: dict[str, float | None] = {}
        for name, estimate in (("before", self.before), ("after", self.after)):
            found |= {name: estimate.mean, f"{name}.low": estimate.low, f"{name}.high": estimate.high}
            found[f"{name}.n"] = estimate.n
        if self.difference is not None:
            d = self.difference
            found |= {"gain": d.difference, "gain.low": d.low, "gain.high": d.high, "gain.p": d.p}
            found["gain.mcnemar_p"] = d.mcnemar_p
        found |= {f"spent.{name}": value for name, value in self.spent.items()}
        return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}
