"""One method's finished run, as `runs.evaluate` returns it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.journal import Record
from runs.summary import Summary


@dataclass(frozen=True)
class Evaluation:
    """One method's finished run.

    Attributes:
        id: The run's id.
        method: The method.
        folder: Folder with the journal, the summary and the run's facts.
        records: One a (question, sample), in question order.
        summary: The scores.
        compiled: Name of the compiled program used, or empty.
        mlflow_run: MLflow's run id, or empty.
        seconds: Wall time of this start, without downloads.
        answered: Questions answered by this start; the others were in the journal.
        tracking_error: Why tracking stopped, or empty.
    """

    id: str
    method: str
    folder: Path
    records: list[Record]
    summary: Summary
    compiled: str = ""
    mlflow_run: str = ""
    seconds: float = 0.0
    answered: int = 0
    tracking_error: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
