"""Tells MLflow of an optimisation while it runs: each candidate as soon as its validation score is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runs.benchmarks.question import dataset_hash
from runs.optimizing.accounts import Trial
from runs.optimizing.ledger import Ledger
from runs.optimizing.outcome import Outcome
from runs.optimizing.prepared import Prepared
from runs.optimizing.registered import Registration
from runs.optimizing.result import Optimised
from runs.optimizing.tracked_trial import TrackedTrial, prompts_of
from runs.optimizing.tracking import OptimizationTracker
from runs.tracking import read_note, write_note
from signatures.errors import ProgramError

_SOON, _AT_MOST = 0.5, 30.0
_OWN = ("options", "profile_fields", "sampling")
"""Facts that are many themselves, or say what others say."""


class TrialLog:
    """The MLflow side of one optimisation. Tracking never fails it: what goes wrong is said once.

    Args:
        ready: The optimisation.
        ledger: Its ledger.
        say: Called with a line for the user.
    """

    def __init__(self, ready: Prepared, ledger: Ledger, say: Callable[[str], None]) -> None:
        self.ready = ready
        self.ledger = ledger
        self._whole: set[str] = set()
        self._lock = threading.Lock()
        settings, home = ready.settings, ready.home
        uri = settings.tracking_uri or home.tracking_uri
        own_store = uri == f"sqlite:///{home.root / 'mlflow.db'}"
        self.tracker = OptimizationTracker(
            uri,
            settings.experiment or f"{ready.split.name} optimize",
            f"{settings.method} {ready.facts['profile']} {settings.optimizer}",
            artifacts=home.artifacts if own_store else None,
            existing=read_note(ready.folder)[0] or None,
            on_open=lambda run_id: write_note(ready.folder, run_id, complete=False),
            warn=say,
        )
        self.tracker.start(_parameters(ready), _tags(ready), val_questions=len(ready.split.val))

    def scored(self, digest: str) -> None:
        """Hear of a new score: a candidate that has now met every validation question is logged."""
        if digest in self._whole or not self.ledger.is_whole(digest):
            return
        with self._lock:
            if digest in self._whole:
                return
            self._whole.add(digest)
        self._log(self.ledger.trial(digest))

    def run_id(self, *, patient: bool) -> str:
        """Return MLflow's run id; empty if the store failed or takes longer.

        Args:
            patient: Wait for a slow store.
        """
        return self.tracker.opened(_AT_MOST if patient else _SOON)

    def finish(self, done: Optimised, metric: str) -> Registration:
        """Log all trials and the outcome, and register the program.

        Args:
            done: The finished optimisation.
            metric: Name of the metric the program was chosen by.

        Returns:
            Where the program now stands in MLflow.
        """
        for trial in self.ledger.trials():
            self._log(trial)
        spent = {**asdict(done.spent), "seconds": done.seconds}
        registration = self.tracker.finish(
            Outcome(
                program=done.file,
                metric=f"strict.{metric}",
                before=done.before,
                after=done.after,
                val_hash=dataset_hash(self.ready.split.val),
                difference=done.difference,
                spent=spent,
                tags={"optimizer": self.ready.settings.optimizer, "optimization": self.ready.id},
                interrupted=done.interrupted,
            )
        )
        if self.tracker.run_id and not self.tracker.failed:
            write_note(self.ready.folder, self.tracker.run_id, complete=True)
        return registration

    def stop(self) -> None:
        """Leave the run as killed; the next start goes on in it and logs the trials that are not whole yet."""
        self.tracker.abandon()

    def _log(self, trial: Trial) -> None:
        try:
            state: Mapping[str, Any] = self.ledger.state(trial.digest)
        except ProgramError:
            # Only the log lacks its prompts; the candidate itself is in memory.
            state = {}
        instructions, demos = prompts_of(state)
        self.tracker.trial(TrackedTrial(**vars(trial), instructions=instructions, demos=demos))


def _parameters(ready: Prepared) -> dict[str, Any]:
    facts = ready.facts
    rest = {name: value for name, value in facts.items() if name not in _OWN}
    options = {f"options.{name}": value for name, value in facts["options"].items()}
    plan = {f"plan.{name}": value for name, value in asdict(ready.plan).items()}
    split = ready.split
    questions = {"train_from": split.train_from, "train_n": len(split.train), "val_from": split.val_from}
    return {**rest, **plan, **questions, "val_n": len(split.val), **options}


def _tags(ready: Prepared) -> dict[str, str]:
    return {
        "method": ready.settings.method,
        "model": str(ready.facts["model"]),
        "optimizer": ready.settings.optimizer,
        "leaked_test_rows": str(len(ready.split.leaked)),
        "run_folder": Path(ready.folder).name,
    }
