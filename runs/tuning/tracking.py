"""MLflow: a parent run a study, a child run a trial. A tracking failure never fails a tuning.

Everything MLflow does happens in one thread, with its client alone: no run is anybody's current one.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from runs.mlflow_client import first_line, open_client, quieten
from runs.tracking_store import make_store
from runs.tuning.results import TrialResult, best_trial
from runs.tuning.trial_lock import study_lock

_log = logging.getLogger(__name__)
_STOP = None
_PARAMETER_CHARS = 500
_NUMBER, _HOME = "trial", "home"
"""Tags of a child run: the trial's number, and which home logged it."""
_STATUS = {"complete": "FINISHED", "pruned": "FINISHED", "failed": "FAILED"}


class StudyTracker:
    """Logs one worker's share of a study.

    Args:
        uri: Tracking URI.
        experiment: Experiment name.
        run_name: Name of the parent run.
        folder: The study's folder, which holds the lock that workers of one home share.
        known: Returns the id of the parent run that another worker or start made, or empty.
        note: Called with the id of the parent run that this worker made.
        artifacts: Where artifacts of a new experiment go, or None for the store's own place.
        warn: Called once with a line for the user when tracking fails.
    """

    def __init__(
        self,
        uri: str,
        experiment: str,
        run_name: str,
        folder: Path,
        *,
        known: Callable[[], str],
        note: Callable[[str], None],
        artifacts: Path | None = None,
        warn: Callable[[str], None] = _log.warning,
    ) -> None:
        self.run_id = ""
        self.failed = ""
        self._uri = uri
        self._experiment = experiment
        self._run_name = run_name
        self._folder = folder
        self._home = hashlib.sha256(f"{socket.gethostname()} {folder.resolve()}".encode()).hexdigest()[:12]
        self._known = known
        self._note = note
        self._artifacts = artifacts
        self._warn = warn
        self._client: Any = None
        self._experiment_id = ""
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="tune-tracking", daemon=True)
        self._thread.start()

    def start(self, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Open the parent run, or go on with the one of another worker or start."""
        self._queue.put(lambda: self._open(parameters, tags))

    def add(self, trials: Sequence[TrialResult]) -> None:
        """Log those of the trials that have no child run yet: the ones that this worker ended."""
        self._queue.put(lambda: self._log_missing(trials))

    def finish(self, trials: Sequence[TrialResult], metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        """Log what is missing, the study's own metrics, its course and its files, and close the parent run."""
        self._queue.put(lambda: self._close(trials, metrics, files))
        self._queue.put(_STOP)
        self._thread.join()

    def abandon(self) -> None:
        """Mark the parent run as killed and stop soon; what is not logged yet is logged by the next start."""
        self._queue.put(lambda: self._end("KILLED"))
        self._queue.put(_STOP)
        self._thread.join(timeout=1)

    def _work(self) -> None:
        while (job := self._queue.get()) is not _STOP:
            if self.failed:
                continue
            try:
                job()
            except Exception as error:
                # Whatever MLflow raises (a full disk, a server that is down) must stay here.
                self.failed = first_line(error)
                self._warn(f"Tracking stopped ({self.failed}); the tuning goes on, its study holds everything.")

    def _open(self, parameters: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        # Its import takes seconds, for which the other workers of this home should not have to wait.
        quieten()
        # Workers that start at once must not make a store, an experiment and a parent run each.
        with study_lock(self._folder, "tracking"):
            make_store(self._uri)
            self._client = open_client(self._uri)
            found = self._client.get_experiment_by_name(self._experiment)
            if found is None:
                place = self._artifacts.resolve().as_uri() if self._artifacts is not None else None
                self._experiment_id = self._client.create_experiment(self._experiment, artifact_location=place)
            else:
                self._experiment_id = found.experiment_id
            known = self._known()
            if known and self._exists(known):
                self.run_id = known
                self._client.update_run(known, status="RUNNING")
                return
            run = self._client.create_run(self._experiment_id, tags=dict(tags), run_name=self._run_name)
            self.run_id = run.info.run_id
            for name, value in parameters.items():
                self._client.log_param(self.run_id, name, str(value)[:_PARAMETER_CHARS])
            self._note(self.run_id)

    def _exists(self, run_id: str) -> bool:
        from mlflow.exceptions import MlflowException

        try:
            return bool(self._client.get_run(run_id).info.lifecycle_stage == "active")
        except MlflowException:
            # Another worker's store may be another one.
            return False

    def _log_missing(self, trials: Sequence[TrialResult]) -> None:
        with study_lock(self._folder, "tracking"):
            logged = self._children()
            for trial in trials:
                if str(trial.number) not in logged:
                    self._log_trial(trial)

    def _children(self) -> dict[str, list[Any]]:
        """Return the child runs by trial number, without those that this home left half logged; they are deleted."""
        # By id: what other homes log meanwhile moves runs to the next page.
        runs: dict[str, Any] = {}
        token = None
        while True:
            page = self._client.search_runs(
                [self._experiment_id], f"tags.`mlflow.parentRunId` = '{self.run_id}'", page_token=token
            )
            runs |= {run.info.run_id: run for run in page}
            token = page.token
            if not token:
                break
        found: dict[str, list[Any]] = {}
        for run_id, run in sorted(runs.items()):
            # Under the lock nobody of this home is logging, so a worker that was killed left it; one of another home
            # may be in the middle of it.
            if run.info.status == "RUNNING" and run.data.tags.get(_HOME) == self._home:
                self._client.delete_run(run_id)
            else:
                found.setdefault(run.data.tags.get(_NUMBER, ""), []).append(run)
        return found

    def _delete_repeats(self) -> None:
        """Keep one child run a trial: no lock keeps workers of several homes from logging one at the same time.

        All homes keep the same one, the first by id, and whoever logs comes here afterwards.
        """
        for runs in self._children().values():
            closed = [run for run in runs if run.info.status != "RUNNING"]
            for run in closed[1:]:
                self._client.delete_run(run.info.run_id)

    def _log_trial(self, trial: TrialResult) -> None:
        from mlflow.entities import Metric, Param

        run = self._client.create_run(
            self._experiment_id,
            run_name=f"trial {trial.number}",
            tags={
                "mlflow.parentRunId": self.run_id, _NUMBER: str(trial.number), "state": trial.state,
                "pruned": str(trial.state == "pruned").lower(), "folder": trial.folder, _HOME: self._home,
                **({"failed": trial.told[:_PARAMETER_CHARS]} if trial.told else {}),
            },
        )  # fmt: skip
        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, 0) for name, value in trial.metrics.items()]
        metrics += [Metric("running_score", value, now, step) for step, value in sorted(trial.running.items())]
        params = [Param(name, str(value)[:_PARAMETER_CHARS]) for name, value in sorted(trial.values.items())]
        self._client.log_batch(run.info.run_id, metrics=metrics, params=params)
        self._client.set_terminated(run.info.run_id, _STATUS[trial.state])

    def _close(self, trials: Sequence[TrialResult], metrics: Mapping[str, float], files: Sequence[Path]) -> None:
        from mlflow.entities import Metric

        self._log_missing(trials)
        with study_lock(self._folder, "tracking"):
            self._delete_repeats()
        now = int(time.time() * 1000)
        course = [
            Metric("best_score", best.metrics["score"], now, trial.number)
            for place, trial in enumerate(trials)
            if trial.state == "complete" and (best := best_trial(trials[: place + 1])) is not None
        ]
        own = [Metric(name, value, now, 0) for name, value in metrics.items()]
        self._client.log_batch(self.run_id, metrics=course + own)
        for file in files:
            self._client.log_artifact(self.run_id, str(file))
        self._end("FINISHED")

    def _end(self, status: str) -> None:
        self._client.set_terminated(self.run_id, status)
