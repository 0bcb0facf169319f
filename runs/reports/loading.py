"""Finished runs as reports need them: facts, records, and which of the paper's columns they measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from runs.home import Home
from runs.journal import Record
from runs.reports.paper_tables import METHODS, Column, plain_name
from runs.run_folder import load_run
from signatures.errors import DataError

_ALIASES = {
    "2wiki": "2wikimultihopqa",
    "aime": "aime24",
    "amc": "amc23",
    "livecode": "livecodebench",
    "math": "math500",
    "gpqa_diamond": "gpqa",
    "gpqa_extended": "gpqa",
}
"""Labels that people, and the authors' folders, give question files."""


@dataclass(frozen=True)
class ReportRun:
    """A finished run.

    Attributes:
        id: Its id, which is its folder's name.
        folder: Its folder.
        facts: What identifies it (`facts.json`).
        records: One a (question, sample).
        missing: Answers that were asked for and are not there yet; None where nobody noted how many there should be.
    """

    id: str
    folder: Path
    facts: Mapping[str, Any]
    records: Sequence[Record]
    missing: int | None = 0

    @property
    def method(self) -> str:
        """The method's name."""
        return str(self.facts.get("method", ""))

    @property
    def method_title(self) -> str:
        """What tables call the method."""
        return METHODS.get(self.method, self.method)

    @property
    def task(self) -> str:
        """The task kind."""
        return str(self.options.get("task", "open_qa"))

    @property
    def options(self) -> Mapping[str, Any]:
        """The chain's options."""
        found = self.facts.get("options")
        return found if isinstance(found, Mapping) else {}

    @property
    def benchmark(self) -> str:
        """The benchmark's name; a known other name of one is replaced by ours."""
        name = str(self.facts.get("benchmark", ""))
        return _ALIASES.get(name.lower(), name)

    @property
    def split(self) -> str:
        """The split; of a GPQA file without one, the set that has as many questions."""
        found = str(self.facts.get("split") or "")
        if self.benchmark == "gpqa" and not found:
            label = str(self.facts.get("benchmark", "")).lower().removeprefix("gpqa_")
            if label in ("diamond", "extended"):
                return label
            return {198: "diamond", 448: "main", 546: "extended"}.get(len(self.by_question), "")
        return found

    @property
    def model(self) -> str:
        """The model's name without provider and owner, such as `QwQ-32B-Preview`."""
        named = next((str(r["model"]) for r in self.records if r.get("model")), "")
        if not named:
            # `vllm:NAME:REVISION`, `litellm:NAME:REVISION` or `openvino-genai 1.0:FILE:SHA`.
            parts = str(self.facts.get("model", "")).split(":")
            named = parts[1] if len(parts) > 1 else parts[0]
        return named.rstrip("/").rsplit("/", 1)[-1].removesuffix(".gguf")

    @property
    def label(self) -> str:
        """Method and model."""
        return f"{self.method_title}, {self.model}"

    @cached_property
    def by_question(self) -> dict[str, list[Record]]:
        """The records of each question, in the run's order."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            found.setdefault(str(record["id"]), []).append(record)
        return found

    @property
    def samples(self) -> int:
        """Samples a question."""
        return max((len(records) for records in self.by_question.values()), default=0)

    def same_model(self, other: ReportRun) -> bool:
        """Tell whether another run asked the same model."""
        return plain_name(self.model) == plain_name(other.model)

    def same_questions(self, other: ReportRun) -> bool:
        """Tell whether another run was made on the very same set."""
        mine, others = ((r.benchmark, r.split, r.facts.get("data")) for r in (self, other))
        return mine == others

    def measures(self, column: Column) -> bool:
        """Tell whether the run fills a column of the paper's tables."""
        return self.benchmark == column.benchmark and column.split in ("", self.split)


def load_runs(runs: Sequence[str | Path], home: Home | None = None) -> list[ReportRun]:
    """Load runs.

    Args:
        runs: Ids, parts of ids that no other run shares, or folders.
        home: Home folder whose runs ids stand for; by default the user's.

    Returns:
        The runs, in the order given; one that is named twice once.

    Raises:
        OptionError: A run does not exist, or its name is shared.
        DataError: Its files are damaged, or it has answered nothing yet.
    """
    found: dict[Path, ReportRun] = {}
    for named in runs:
        run = load_run(named, home)
        if not run.facts or not run.records:
            lacking = "no facts.json" if not run.facts else "no answered question"
            raise DataError(f"{run.folder} holds {lacking}: start the same evaluation again, which goes on from there.")
        found.setdefault(run.folder.resolve(), ReportRun(run.id, run.folder, run.facts, run.records, run.missing))
    return list(found.values())
