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
from runs.mlflow_client import first_line, quieten
from runs.traces import known_traces, write_trace
from runs.tracking_store import make_store

_log = logging.getLogger(__name__)
_STOP = None
_PARAMETER_CHARS = 500
_TABLE = "questions.json"
_TRIES = 3


class Tracker:
    """Logs one evaluation to MLflow.

    Args:
        uri: Tracking URI.
        experiment: Experiment name.
        run_name: Name a person understands.
        artifacts: Where artifacts of a new experiment go, or None for the store's own place.
        existing: MLflow run to go on with, or None.
        on_open: Called with the run's id as soon as it is known, so that a killed run can be gone on with.
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
        on_open: Callable[[str], None] = lambda run_id: None,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        self.uri = uri
        self.experiment = experiment
        self.run_name = run_name
        self.run_id = existing
        self.traces: dict[tuple[str, int], str] = {}
        self.failed = ""
        self._artifacts = artifacts
        self._on_open = on_open
        self._warn = warn
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tracking", daemon=True)
        self._thread.start()

    def start(self, parameters: Mapping[str, Any], tags: Mapping[str, str], finished: Sequence[Record] = ()) -> None:
        """Open the run and log its parameters and tags.

        Args:
            parameters: Parameter name to value.
            tags: Tag name to value.
            finished: Records of earlier starts; those whose trace a crash kept from arriving get it now.
        """
        self._queue.put(lambda: self._open(parameters, tags, finished))

    def add(self, record: Record) -> None:
        """Log the trace of a finished question."""
        self._queue.put(lambda: self._trace(record))

    def finish(
        self,
        metrics: Mapping[str, float],
        rows: Sequence[Mapping[str, Any]],
        files: Sequence[Path],
        records: Sequence[Record] = (),
        status: str = "FINISHED",
    ) -> None:
        """Log metrics, the per-question table and files, see that every trace has arrived, and close the run.

        Args:
            metrics: Metric name to value.
            rows: One a question for the table.
            files: Files to keep as artifacts.
            records: All records; those whose trace did not arrive are sent again.
            status: MLflow's status of the run.
        """
        self._queue.put(lambda: self._close(metrics, rows, files, records, status))
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
                self.failed = first_line(error)
                self._warn(f"Tracking stopped ({self.failed}); the run goes on, its journal holds everything.")

    def _open(self, parameters: Mapping[str, Any], tags: Mapping[str, str], finished: Sequence[Record]) -> None:
        # This thread is off the hot path already; MLflow's export threads would fight it for an SQLite store's lock.
        os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
        quieten()
        import mlflow

        make_store(self.uri)
        named = os.environ.get("MLFLOW_TRACKING_URI")
        mlflow.set_tracking_uri(self.uri)
        # MLflow writes the address into the environment, where this process's next run would take it for the user's.
        if named is None:
            os.environ.pop("MLFLOW_TRACKING_URI", None)
        else:
            os.environ["MLFLOW_TRACKING_URI"] = named
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
            self.traces = known_traces(self.experiment_id, self.run_id)
        else:
            run = mlflow.start_run(run_name=self.run_name, tags=dict(tags))
            self.run_id = run.info.run_id
            mlflow.log_params({name: str(value)[:_PARAMETER_CHARS] for name, value in parameters.items()})
        self._on_open(str(self.run_id))
        for record in finished:
            if (record["id"], record["sample"]) not in self.traces:
                self._trace(record)

    def _trace(self, record: Record) -> None:
        import mlflow

        key = record["id"], record["sample"]
        # A question that failed and was tried again keeps one trace, the last.
        if (outdated := self.traces.pop(key, None)) is not None:
            mlflow.MlflowClient().delete_traces(self.experiment_id, trace_ids=[outdated])
        self.traces[key] = write_trace(record, self.experiment_id)

    def _close(
        self,
        metrics: Mapping[str, float],
        rows: Sequence[Mapping[str, Any]],
        files: Sequence[Path],
        records: Sequence[Record],
        status: str,
    ) -> None:
        import mlflow

        mlflow.log_metrics(dict(metrics))
        # As a tag it can be read beside the runs' names, and runs can be filtered by it.
        mlflow.set_tag("contamination_share", f"{metrics.get('contamination_share', 0.0):.4f}")
        if "trained_on_these" in metrics:
            mlflow.set_tag("trained_on_these", str(int(metrics["trained_on_these"])))
        if rows:
            self._log_table(rows)
        for file in files:
            mlflow.log_artifact(str(file))
        self._send_missing(records)
        for row in rows:
            trace_id = self.traces.get((row["id"], row["sample"]))
            if trace_id is not None:
                mlflow.log_feedback(
                    trace_id=trace_id, name="correct", value=bool(row["correct"]), rationale=row["finish"]
                )
                if row.get("contaminated"):
                    mlflow.log_feedback(
                        trace_id=trace_id, name="contaminated", value=True, rationale=row["contamination_kinds"]
                    )
        self._end(status)

    def _send_missing(self, records: Sequence[Record]) -> None:
        for _ in range(_TRIES):
            arrived = known_traces(self.experiment_id, str(self.run_id))
            missing = [record for record in records if (record["id"], record["sample"]) not in arrived]
            if not missing:
                return
            for record in missing:
                self.traces[record["id"], record["sample"]] = write_trace(record, self.experiment_id)

    def _log_table(self, rows: Sequence[Mapping[str, Any]]) -> None:
        import mlflow

        columns = list(rows[0])
        if any(file.path == _TABLE for file in mlflow.MlflowClient().list_artifacts(str(self.run_id))):
            # MLflow would append to the table of an earlier start.
            mlflow.log_dict({"columns": columns, "data": [[row.get(name) for name in columns] for row in rows]}, _TABLE)
        else:
            mlflow.log_table({name: [row.get(name) for row in rows] for name in columns}, artifact_file=_TABLE)

    def _end(self, status: str) -> None:
        import mlflow

        mlflow.end_run(status)


def _run_exists(client: Any, run_id: str) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        return bool(client.get_run(run_id).info.lifecycle_stage == "active")
    except MlflowException:
        return False


def read_note(folder: Path) -> tuple[str, bool]:
    """Return the MLflow run that a run's folder belongs to (empty when none), and whether it was closed in order."""
    path = folder / "mlflow_run"
    words = path.read_text(encoding="utf-8").split() if path.is_file() else []
    return (words[0], "complete" in words) if words else ("", False)


def write_note(folder: Path, run_id: str, *, complete: bool) -> None:
    """Note in a run's folder which MLflow run it belongs to, and whether that one was closed in order."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mlflow_run").write_text(f"{run_id}{' complete' if complete else ''}\n", encoding="utf-8")
