"""One process at work on a study: it takes trials until there are enough, whoever finished them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runs.journal import Record
from runs.tuning.progress import TuneProgress
from runs.tuning.results import best_trial, read_trials
from runs.tuning.space import Space, setup_of
from runs.tuning.study import FOLDER, METRICS, TOLD, TuningStudy
from runs.tuning.tracking import StudyTracker
from runs.tuning.trial_lock import trial_lock
from runs.tuning.trial_run import World, mean_score, run_trial, trial_metrics
from signatures.errors import OptionError

_POLL_S = 0.5
"""How often a worker with nothing left to begin looks whether the others have finished."""


class _SurplusError(Exception):
    """A trial that begins when enough others are at work."""


class Worker:
    """Takes trials of a study.

    Args:
        study: The study.
        world: What all trials share.
        space: The space.
        folder: The study's folder.
        progress: Shows how it goes.
        tracker: Logs the trials, or None.
        say: Called with a line for the user.
    """

    def __init__(
        self, study: TuningStudy, world: World, space: Space, folder: Path, progress: TuneProgress,
        tracker: StudyTracker | None, say: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._study = study
        self._world = world
        self._space = space
        self._folder = folder
        self._progress = progress
        self._tracker = tracker
        self._say = say
        self._wanted = world.settings.trials
        self._current: int | None = None
        self._lost = False

    def work(self) -> None:
        """Take trials until the study has as many finished ones as are wanted.

        Raises:
            TrialFailedError: A server or a key failed every question; the trial is tried again by the next start.
            BaseException: Whatever else stopped a trial, likewise.
        """
        waiting = False
        while True:
            self._study.recover()
            standing = self._study.standing()
            if standing.finished >= self._wanted:
                return
            if standing.finished + standing.running >= self._wanted:
                if not waiting:
                    self._say("Waiting for the trials of other workers; those of a dead one are taken over.")
                waiting = True
                time.sleep(_POLL_S)
                continue
            waiting = False
            self._take_one()

    def _take_one(self) -> None:
        self._current, self._lost = None, False
        try:
            self._study.optuna.optimize(self._objective, n_trials=1, catch=(_SurplusError,))
        except BaseException:
            if not self._lost:
                self._put_back()
                raise
            self._say(f"Trial {self._current} was given to another worker: this one had shown no sign of life.")
            return
        ended = {t.number: t for t in read_trials(self._study.trials(), self._space)}
        number = self._current
        if number is None or number not in ended or ended[number].state == "failed":
            return
        self._progress.ended(ended[number], best_trial(list(ended.values())), self._study.standing().finished)
        if self._tracker is not None:
            self._tracker.add([ended[number]])

    def _objective(self, trial: Any) -> float | tuple[float, ...]:
        from optuna.exceptions import UpdateFinishedTrialError

        if self._study.is_surplus(trial.number, self._wanted):
            trial.set_user_attr(TOLD, "surplus: enough trials were at work")
            raise _SurplusError
        self._current = trial.number
        try:
            with trial_lock(self._folder, trial.number):
                return self._answer(trial)
        except UpdateFinishedTrialError:
            # Another worker took this one for dead, a suspended laptop say, and has its trial.
            self._lost = True
            raise

    def _answer(self, trial: Any) -> float | tuple[float, ...]:
        """Choose a trial's values, answer the questions with them, and return what is optimised."""
        import optuna

        settings, world = self._world.settings, self._world
        values = self._space.suggest(trial)
        # A trial that is tried again goes on in the folder of its first try.
        name = trial.user_attrs.get(FOLDER) or f"{trial.number:04d}"
        trial.set_user_attr(FOLDER, name)
        self._progress.begin(trial.number)

        def look(records: list[Record]) -> None:
            trial.report(mean_score(records, world.headline), len(records))
            if len(records) < len(world.questions.questions) and trial.should_prune():
                trial.set_user_attr(METRICS, trial_metrics(records, world.headline))
                raise optuna.TrialPruned

        pruned = settings.pruner != "none" and len(settings.objective) == 1
        records = run_trial(
            world,
            setup_of(values, settings.method, settings.program, settings.options),
            self._folder / "trials" / name,
            look=look if pruned else None,
            on_done=lambda record: self._progress.answered(),
        )
        found = trial_metrics(records, world.headline)
        trial.set_user_attr(METRICS, found)
        return _values(found, settings.objective)

    def _put_back(self) -> None:
        """Put the trial that was stopped up to be tried again, once it is marked as failed."""
        if self._current is None:
            return
        for trial in self._study.trials():
            if trial.number == self._current and (trial.state.name == "FAIL" or self._study.fail(trial.number)):
                self._study.try_again(trial, crashed=False)


def _values(found: dict[str, float], objective: tuple[str, ...]) -> float | tuple[float, ...]:
    """Return a trial's values for Optuna."""
    for name in objective:
        if name not in found:
            raise OptionError(
                f"Objective {name}: nothing is known of it, so trials cannot be compared by it; "
                + ("weigh against tokens instead." if name == "cost" else "no question was answered anew.")
            )
    return found[objective[0]] if len(objective) == 1 else tuple(found[name] for name in objective)
