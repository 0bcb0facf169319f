"""Optimisations as MLflow is told of them: programs, trials and outcomes without a model behind them."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlflow

from metrics.statistics import mean_with_error, paired_difference
from programs.registry import make_program
from programs.saving import CompiledProgram, save_program
from runs.optimizing.outcome import Outcome
from runs.optimizing.registered import Registration
from runs.optimizing.tracked_trial import TrackedTrial
from runs.optimizing.tracking import OptimizationTracker

# What a prompt may hold that templates, tags and pages could take for their own.
TEXT = (
    "Search with <|begin_search_query|>words<|end_search_query|>, at most {max_search_limit} times.  \n\n"
    "{{double}} {% if x %} \\boxed{} ```\ncode\n``` é\u2028中 "
    "<b>&amp;</b>"
)
DEMO = {"question": "Who?", "reasoning": "<|begin_search_query|>x<|end_search_query|> \\boxed{A}", "answer": "A"}
VAL = 4


def compiled(
    folder: Path, model: str = "qwq-32b", *, text: str = TEXT, method: str = "search_o1", name: str = "program.json"
) -> CompiledProgram:
    """Write a compiled program with one prompt of its own and one demo."""
    program = make_program(method)
    program.reason.signature = program.reason.signature.with_instructions(text)
    program.reason.demos = [DEMO]
    return save_program(program, folder / name, model=model, metadata={"made": "by a test"})


def outcome(program: Path, right: int = 2, val_hash: str = "v1", **changes: Any) -> Outcome:
    """Return an outcome: the program has so many of four questions right, the start had one."""
    before, after = [1.0, 0.0, 0.0, 0.0], [float(i < right) for i in range(VAL)]
    given = {
        "program": program,
        "metric": "strict.em",
        "before": mean_with_error(before),
        "after": mean_with_error(after),
        "val_hash": val_hash,
        "difference": paired_difference(after, before),
        "spent": {"calls": 12, "tokens": 3456, "cost": None},
        "tags": {"optimizer": "gepa"},
    }
    return Outcome(**{**given, **changes})


def trial(number: int, score: float = 0.5, n: int = VAL, **changes: Any) -> TrackedTrial:
    given = {
        "digest": f"{number:064x}",
        "instructions": {"reason": TEXT},
        "demos": {"reason": [DEMO]},
        "tokens": 100,
        "origin": "gepa",
    }
    return TrackedTrial(number, score=score, n=n, **{**given, **changes})


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Store:
    """A tracking store that several optimisations share."""

    def __init__(self, folder: Path, uri: str = "") -> None:
        self.folder = folder
        self.uri = uri or f"sqlite:///{folder / 'mlflow.db'}"
        self.artifacts = folder / "mlflow-artifacts"
        self.said: list[str] = []

    @property
    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(self.uri, registry_uri=self.uri)

    def tracker(self, experiment: str = "films optimize", **changes: Any) -> OptimizationTracker:
        given = {"artifacts": self.artifacts, "warn": self.said.append}
        tracker = OptimizationTracker(self.uri, experiment, "search_o1 qwq-32b gepa", **{**given, **changes})
        tracker.start({"method": "search_o1", "seed": 0}, {"optimizer": "gepa"}, val_questions=VAL)
        return tracker

    def track(
        self, done: Outcome, trials: Sequence[TrackedTrial] = (), **changes: Any
    ) -> tuple[OptimizationTracker, Registration]:
        """Track a whole optimisation."""
        tracker = self.tracker(**changes)
        for one in trials:
            tracker.trial(one)
        registration = tracker.finish(done)
        assert tracker.failed == ""
        return tracker, registration

    def children(self, run_id: str) -> list[Any]:
        experiment = self.client.get_run(run_id).info.experiment_id
        found = self.client.search_runs([experiment], f"tags.`mlflow.parentRunId` = '{run_id}'")
        return sorted(found, key=lambda run: int(run.data.tags["trial"]))

    def curve(self, run_id: str, metric: str) -> list[tuple[int, float]]:
        return [(point.step, point.value) for point in self.client.get_metric_history(run_id, metric)]

    def text(self, run_id: str, path: str, folder: Path) -> str:
        return Path(self.client.download_artifacts(run_id, path, str(folder))).read_bytes().decode()

    def aliases(self) -> dict[str, str]:
        found = self.client.get_registered_model("search-o1").aliases
        return {alias: str(version) for alias, version in found.items()}
