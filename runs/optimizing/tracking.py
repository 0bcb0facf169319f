"""An optimisation in MLflow: a run for the whole, a child run a trial, the learning curve, and what came of it.

Everything MLflow does happens in one thread of its own. A store that is down, or fails half way, never fails the
optimisation: it is said once, and the ledger holds everything. A second start goes on in the same run and logs nothing
twice.
"""

from __future__ import annotations

import queue
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from programs.saving import read_compiled
from runs.mlflow_client import first_line, open_client, quieten
from runs.optimizing.learning_curve import Point, best_so_far, draw_learning_curve
from runs.optimizing.outcome import Outcome
from runs.optimizing.registered import Chosen, Registration, copy_for_mlflow, register_program
from runs.optimizing.tracked_trial import TrackedTrial
from runs.registered_programs import ARTIFACT
from runs.tracking_store import make_store

_VALUE_CHARS = 500
_SEEN = "trial_fingerprint"


class OptimizationTracker:
    """Logs one optimisation to MLflow.

    Args:
        uri: Tracking URI.
        experiment: Experiment name.
        run_name: Name a person understands.
        artifacts: Where artifacts of a new experiment go, or None for the store's own place.
        existing: MLflow run to go on with, or None.
        on_open: Called with the run's id as soon as it is known, so that a killed optimisation can be gone on with.
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
        warn: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.uri = uri
        self.experiment = experiment
        self.run_name = run_name
        self.run_id = existing
        self.failed = ""
        self._artifacts = artifacts
        self._on_open = on_open
        self._warn = warn
        self._val_questions = 0
        self._children: dict[int, tuple[str, str]] = {}
        self._points: dict[int, Point] = {}
        self._tokens: dict[int, int] = {}
        self._registration: Registration | None = None
        self._opened = threading.Event()
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="optimization-tracking", daemon=True)
        self._thread.start()

    def start(self, parameters: Mapping[str, Any], tags: Mapping[str, str], *, val_questions: int) -> None:
        """Open the run and log its parameters and tags.

        Args:
            parameters: Parameter name to value.
            tags: Tag name to value.
            val_questions: How many validation questions there are; a trial that met fewer is no point of the curve.
        """
        self._val_questions = val_questions
        self._queue.put(lambda: self._open(dict(parameters), dict(tags)))

    def opened(self, seconds: float = 30.0) -> str:
        """Return the run's id, waiting until it is known.

        Args:
            seconds: How long to wait at most.

        Returns:
            MLflow's run id; empty if the store failed or takes longer.
        """
        self._opened.wait(seconds)
        return "" if self.failed else self.run_id or ""

    def trial(self, trial: TrackedTrial) -> None:
        """Log a trial, or what is new of one; a trial that has been logged as it is costs nothing."""
        self._queue.put(lambda: self._trial(trial))

    def finish(self, outcome: Outcome) -> Registration:
        """Log the outcome, register program and prompts, close the run, and wait until that is done.

        Args:
            outcome: What the optimisation came to.

        Returns:
            Where the program now stands in MLflow's registries; empty, with the reason, if tracking failed.
        """
        self._queue.put(lambda: self._finish(outcome))
        self._queue.put(None)
        self._thread.join()
        return self._registration or Registration(why=f"not registered: {self.failed}")

    def abandon(self) -> None:
        """Mark the run as killed and stop, after what was queued has been logged; waits at most 10 s."""
        self._queue.put(lambda: self._close("KILLED"))
        self._queue.put(None)
        self._thread.join(timeout=10)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if self.failed:
                continue
            try:
                job()
            except Exception as error:
                # Whatever MLflow raises (a full disk, a server that is down) must stay here.
                self.failed = first_line(error)
                self._opened.set()
                self._warn(f"Tracking stopped ({self.failed}); the optimisation goes on, its ledger holds everything.")

    def _open(self, parameters: dict[str, Any], tags: dict[str, str]) -> None:
        quieten()
        make_store(self.uri)
        self._client = client = open_client(self.uri)
        from mlflow.exceptions import MlflowException
        from mlflow.tracking.context.registry import resolve_tags

        self.experiment_id = self._experiment()
        if self.run_id is not None:
            try:
                if client.get_run(self.run_id).info.lifecycle_stage != "active":
                    self.run_id = None
            except MlflowException as error:
                # A run that was deleted is begun anew; a server that does not answer is a failure.
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                self.run_id = None
        if self.run_id is None:
            everything = resolve_tags({**tags, "kind": "optimization"})
            self.run_id = client.create_run(self.experiment_id, tags=everything, run_name=self.run_name).info.run_id
        else:
            client.update_run(self.run_id, status="RUNNING")
            self._recall()
        self._on_open(str(self.run_id))
        self._opened.set()
        self._log_parameters(parameters)

    def _experiment(self) -> str:
        from mlflow.exceptions import MlflowException

        found = self._client.get_experiment_by_name(self.experiment)
        if found is None:
            place = self._artifacts.resolve().as_uri() if self._artifacts is not None else None
            try:
                return str(self._client.create_experiment(self.experiment, artifact_location=place))
            except MlflowException as error:
                # Another optimisation may have made it in between.
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                found = self._client.get_experiment_by_name(self.experiment)
        return str(found.experiment_id)

    def _log_parameters(self, parameters: dict[str, Any]) -> None:
        from mlflow.entities import Param

        # MLflow lets no parameter change; one that did since an earlier start keeps its first value there.
        known = self._client.get_run(self.run_id).data.params
        new = [Param(name, str(value)[:_VALUE_CHARS]) for name, value in parameters.items() if name not in known]
        for begin in range(0, len(new), 100):
            self._client.log_batch(self.run_id, params=new[begin : begin + 100])

    def _recall(self) -> None:
        """Find what earlier starts have logged."""
        token = None
        while True:
            page = self._client.search_runs(
                [self.experiment_id], f"tags.`mlflow.parentRunId` = '{self.run_id}'", max_results=500, page_token=token
            )
            for run in page:
                if not run.data.tags.get("trial", "").isdecimal():
                    continue
                number, metrics = int(run.data.tags["trial"]), run.data.metrics
                # A trial that was being logged when the process was killed is logged again, into the same run.
                seen = run.data.tags.get(_SEEN, "") if run.info.status == "FINISHED" else ""
                self._children[number] = (run.info.run_id, seen)
                if seen:
                    rejected = "rejected" in run.data.tags
                    whole = metrics.get("n", 0) >= self._val_questions
                    self._points[number] = Point(number, metrics.get("score", 0.0), whole, rejected)
                    self._tokens[number] = int(metrics.get("tokens", 0))
            token = page.token
            if not token:
                return

    def _trial(self, trial: TrackedTrial) -> None:
        from mlflow.entities import Metric, RunTag

        run_id, seen = self._children.get(trial.number, ("", ""))
        if seen == trial.fingerprint:
            return
        now = int(time.time() * 1000)
        tags = {"trial": str(trial.number), "digest": trial.digest, "origin": trial.origin, _SEEN: trial.fingerprint}
        if trial.rejected:
            tags["rejected"] = trial.rejected[:_VALUE_CHARS]
        if not run_id:
            run_id = self._client.create_run(
                self.experiment_id,
                tags={"mlflow.parentRunId": self.run_id, "trial": str(trial.number)},
                run_name=f"trial {trial.number}{' rejected' if trial.rejected else ''}",
            ).info.run_id
            self._children[trial.number] = (run_id, "")
        numbers = {"score": trial.score, "n": float(trial.n), "tokens": float(trial.tokens)}
        self._client.log_batch(
            run_id,
            metrics=[Metric(name, value, now, 0) for name, value in numbers.items()],
            tags=[RunTag(name, value) for name, value in tags.items()],
        )
        self._client.log_text(run_id, trial.to_markdown(), "prompts.md")
        demos = {name: [dict(demo) for demo in found] for name, found in trial.demos.items()}
        self._client.log_dict(run_id, demos, "demos.json")
        whole = trial.n >= self._val_questions
        self._points[trial.number] = Point(trial.number, trial.score, whole, bool(trial.rejected))
        self._tokens[trial.number] = trial.tokens
        self._log_curve(trial)
        # Only now, so that a kill in between has it logged again.
        self._client.set_terminated(run_id, "FINISHED")
        self._children[trial.number] = (run_id, trial.fingerprint)

    def _log_curve(self, trial: TrackedTrial) -> None:
        """Log the trial's points of the learning curve, those that an earlier start has not."""
        from mlflow.entities import Metric

        wanted = {"tokens_spent": float(sum(self._tokens.values()))}
        if not trial.rejected and trial.n:
            whole = self._points[trial.number].whole
            wanted["val" if whole else "val_partial"] = trial.score
            if whole:
                wanted["best_val"] = dict(best_so_far(self._points.values()))[trial.number]
        now = int(time.time() * 1000)
        new = [
            Metric(name, value, now, trial.number)
            for name, value in wanted.items()
            if (trial.number, value) not in self._logged(name)
        ]
        self._client.log_batch(self.run_id, metrics=new)

    def _logged(self, metric: str) -> set[tuple[int, float]]:
        return {(point.step, point.value) for point in self._client.get_metric_history(self.run_id, metric)}

    def _finish(self, outcome: Outcome) -> None:
        from mlflow.entities import Metric, RunTag

        compiled = read_compiled(outcome.program)
        now, known = int(time.time() * 1000), self._client.get_run(self.run_id).data.metrics
        self._client.log_batch(
            self.run_id,
            metrics=[
                Metric(name, value, now, 0) for name, value in outcome.metrics().items() if known.get(name) != value
            ],
            tags=[RunTag("interrupted", str(outcome.interrupted).lower()), RunTag("digest", compiled.digest)],
        )
        with tempfile.TemporaryDirectory() as scratch:
            self._client.log_artifact(self.run_id, str(copy_for_mlflow(outcome.program, Path(scratch))), ARTIFACT)
        try:
            self._register(outcome)
        except Exception as error:
            # Some stores have no registry; what was logged stays, and the run is still closed in order.
            self._registration = Registration(why=f"not registered: {first_line(error)}")
            self._warn(f"The program could not be registered in MLflow ({first_line(error)}); its file is whole.")
        self._close("FINISHED")

    def _register(self, outcome: Outcome) -> None:
        chosen = Chosen(outcome.metric, outcome.after, outcome.val_hash)
        tags = {**outcome.tags, "interrupted": str(outcome.interrupted).lower()}
        done = register_program(
            self._client, self.experiment_id, str(self.run_id), read_compiled(outcome.program), chosen, tags
        )
        self._client.set_tag(self.run_id, "registered", done.uri)
        self._client.set_tag(self.run_id, "champion", str(done.champion).lower())
        self._registration = done

    def _close(self, status: str) -> None:
        if self._points:
            self._client.log_figure(self.run_id, draw_learning_curve(self._points.values()), "learning_curve.png")
        self._client.set_terminated(self.run_id, status)
