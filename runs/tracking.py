"""MLflow: one run an evaluation, one trace a question. A tracking failure never fails a question.

Everything MLflow does happens in one thread of its own, off the hot path; the journal holds all of it as well.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.journal import Record
from runs.traces import write_trace

_log = logging.getLogger(__name__)
_STOP = None
_PARAMETER_CHARS = 500


class Tracker:
    """Logs one evaluation to MLflow.

    Args:
        uri: Tracking URI.
        experiment: Experiment name.
        run_name: Name a person understands.
        artifacts: Where artifacts of a new experiment go, or None for the store's own place.
        existing: MLflow run to go on with, or None.
        warn: Called once with a line for the user when tracking fails.
    """

    def __init__(
        self,
        uri: str,
        experiment: str,
        run_name: str,
        *,
        artifacts: Path | None = None,
        existing: str | None = None,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        self.uri = uri
        self.experiment = experiment
        self.run_name = run_name
        self.run_id = existing
        self.traces: dict[tuple[str, int], str] = {}
        self.failed = ""
        self._artifacts = artifacts
        self._warn = warn
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
        self._thread.start()

    def start(self, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Open the run and log its parameters and tags."""
        self._queue.put(lambda: self._open(parameters, tags))

    def add(self, record: Record) -> None:
        """Log the trace of a finished question."""
        self._queue.put(lambda: self._trace(record))

    def finish(
        self, metrics: Mapping[str, float], rows: Sequence[Mapping[str, Any]], files: Sequence[Path], status: str = "FINISHED"
    ) -> None:
        """Log metrics, the per-question table and files, wait until everything has arrived, and close the run.

        Args:
            metrics: Metric name to value.
            rows: One a question for the table.
            files: Files to keep as artifacts.
            status: MLflow's status of the run.
        """
        self._queue.put(lambda: self._close(metrics, rows, files, status))
        self._queue.put(_STOP)
        self._thread.join()

    def abandon(self) -> None:
        """Mark the run as killed and stop, after what was queued has been logged."""
        self._queue.put(lambda: self._end("KILLED"))
        self._queue.put(_STOP)
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while (job := self._queue.get()) is not _STOP:
            if self.failed:
                continue
            try:
                job()
            except Exception as error:
                # Whatever MLflow raises (a full disk, a server that is down) must stay here.
                self.failed = f"{type(error).__name__}: {error}".splitlines()[0][:300]
                self._warn(f"Tracking stopped ({self.failed}); the run goes on, its journal holds everything.")

    def _open(self, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        # Large enough that a burst of finished questions does not overflow MLflow's export queue.
        os.environ.setdefault("MLFLOW_ASYNC_TRACE_LOGGING_MAX_SPAN_BATCH_SIZE", "100")
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        logging.getLogger("alembic").setLevel(logging.ERROR)
        logging.getLogger("mlflow").setLevel(logging.ERROR)
        import mlflow

        if self.uri.startswith("sqlite:///"):
            Path(self.uri.removeprefix("sqlite:///")).parent.mkdir(parents=True, exist_ok=True)
        mlflow.set_tracking_uri(self.uri)
        client = mlflow.MlflowClient(self.uri)
        found = client.get_experiment_by_name(self.experiment)
        if found is None:
            place = self._artifacts.resolve().as_uri() if self._artifacts is not None else None
            experiment_id = client.create_experiment(self.experiment, artifact_location=place)
        else:
            experiment_id = found.experiment_id
        mlflow.set_experiment(experiment_id=experiment_id)
        self.experiment_id = experiment_id
        if self.run_id is not None and _run_exists(client, self.run_id):
            mlflow.start_run(run_id=self.run_id)
        else:
            run = mlflow.start_run(run_name=self.run_name, tags=dict(tags))
            self.run_id = run.info.run_id
            mlflow.log_params({name: str(value)[:_PARAMETER_CHARS] for name, value in parameters.items()})

    def _trace(self, record: Record) -> None:
        self.traces[record["id"], record["sample"]] = write_trace(record, self.experiment_id)

    def _close(
        self, metrics: Mapping[str, float], rows: Sequence[Mapping[str, Any]], files: Sequence[Path], status: str
    ) -> None:
        import mlflow

        mlflow.log_metrics(dict(metrics))
        if rows:
            table = {name: [row.get(name) for row in rows] for name in rows[0]}
            mlflow.log_table(table, artifact_file="questions.json")
        for file in files:
            mlflow.log_artifact(str(file))
        mlflow.flush_trace_async_logging()
        for row in rows:
            trace_id = self.traces.get((row["id"], row["sample"]))
            if trace_id is not None:
                mlflow.log_feedback(trace_id=trace_id, name="correct", value=bool(row["correct"]), rationale=row["finish"])
        self._end(status)

    def _end(self, status: str) -> None:
        import mlflow

        mlflow.end_run(status)


def _run_exists(client: Any, run_id: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_run(run_id).info.lifecycle_stage == "active")
    except MlflowException:
        return False
