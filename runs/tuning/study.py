"""The study that all workers share: what it searches, how many trials are done, which were left behind."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.tuning.sampling import make_sampler
from runs.tuning.settings import OBJECTIVES
from runs.tuning.storage import open_storage
from runs.tuning.trial_lock import forget_lock, is_abandoned
from signatures.errors import DataError

_FACTS = "search_o1"
_MAX_CRASHES = 3
"""A trial whose worker died so often is not tried again: its options may be what kills it."""
FOLDER, CRASHES, METRICS, TOLD = "folder", "crashes", "metrics", "told"
"""User attributes of a trial."""


@dataclass(frozen=True)
class Standing:
    """How far a study is.

    Attributes:
        finished: Trials that answered everything or were pruned.
        running: Trials that a worker is at, or was when it died.
        pruned: Of the finished ones, those pruned.
        failed: Trials that were interrupted or left behind.
    """

    finished: int
    running: int
    pruned: int
    failed: int


class TuningStudy:
    """A study in a storage.

    Args:
        name: Its name.
        facts: What its scores depend on; another start with other facts is refused.
        objective: Names of `OBJECTIVES`.
        url: Database URL.
        folder: The study's folder in this home, which holds the locks of its running trials.
        seed: Seed of the search.
        pruner: Optuna's pruner.
        grace: Seconds without a sign of life after which a worker counts as dead.

    Raises:
        OptionError: The address of the storage is none.
        DataError: The storage cannot be reached, or the study is another one's.
    """

    def __init__(
        self, name: str, facts: Mapping[str, Any], objective: Sequence[str], *, url: str, folder: Path, seed: int,
        pruner: Any, grace: int,
    ) -> None:  # fmt: skip
        import optuna

        self.name = name
        self.folder = folder
        self.objective = tuple(objective)
        self._grace = grace
        storage = open_storage(url, grace=grace, on_dead=lambda study, trial: self.try_again(trial, crashed=True))
        self.optuna = optuna.create_study(
            storage=storage,
            study_name=name,
            directions=[OBJECTIVES[each] for each in objective],
            sampler=make_sampler(seed, self._place),
            pruner=pruner,
            load_if_exists=True,
        )
        self._check(json.loads(json.dumps(dict(facts), sort_keys=True, default=str)))

    def _check(self, facts: dict[str, Any]) -> None:
        known = self.optuna.user_attrs.get(_FACTS)
        if known is None:
            if self.trials():
                raise DataError(f"Study {self.name!r} was not made by search-o1 tune; choose another --study NAME.")
            self.optuna.set_user_attr(_FACTS, facts)
            return
        differences = [
            f"{name}: {_short(there)} there, {_short(here)} here" for name, there, here in _differences(known, facts)
        ]
        if differences:
            raise DataError(
                f"Study {self.name!r} holds trials of something else, which cannot be mixed: "
                f"{'; '.join(differences)}. Choose another --study NAME, or give the same command as before."
            )

    def trials(self) -> list[Any]:
        """Return all trials as they are now, by number."""
        return list(self.optuna.get_trials(deepcopy=False))

    def standing(self) -> Standing:
        """Return how far the study is."""
        states = [trial.state.name for trial in self.trials()]
        pruned = states.count("PRUNED")
        return Standing(states.count("COMPLETE") + pruned, states.count("RUNNING"), pruned, states.count("FAIL"))

    def is_surplus(self, number: int, wanted: int) -> bool:
        """Say whether enough other trials with lower numbers are done, at work or waiting.

        Numbers are given out one by one, so of workers that begin at the same time just the surplus ones withdraw.

        Args:
            number: Number of a trial that has just begun.
            wanted: How many are wanted in all.

        Returns:
            True when the trial is one too many.
        """
        others = [trial for trial in self.trials() if trial.number < number and trial.state.name != "FAIL"]
        return len(others) >= wanted

    def recover(self) -> None:
        """Mark the trials of dead workers as failed, and put them up to be tried again."""
        import optuna

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            optuna.storages.fail_stale_trials(self.optuna)
        for trial in self.trials():
            if trial.state.name != "RUNNING":
                continue
            # Killed between its number and its first sign of life: no heartbeat will ever be missed.
            age = time.time() - trial.datetime_start.timestamp() if trial.datetime_start else 0.0
            unborn = not trial.params and age > self._grace
            if (unborn or is_abandoned(self.folder, trial.number)) and self.fail(trial.number):
                self.try_again(trial, crashed=True)
                forget_lock(self.folder, trial.number)

    def fail(self, number: int) -> bool:
        """Mark a running trial as failed; False when it has ended already."""
        import optuna

        try:
            self.optuna.tell(number, state=optuna.trial.TrialState.FAIL)
        except (ValueError, optuna.exceptions.UpdateFinishedTrialError):
            return False
        return True

    def try_again(self, trial: Any, *, crashed: bool) -> None:
        """Put a trial's values up to be tried again; what it has answered is in its folder.

        Args:
            trial: A trial that failed.
            crashed: Whether its worker died, which may be the values' fault.
        """
        crashes = trial.user_attrs.get(CRASHES, 0) + crashed
        if trial.params and crashes < _MAX_CRASHES:
            kept = {FOLDER: trial.user_attrs.get(FOLDER, f"{trial.number:04d}"), CRASHES: crashes}
            self.optuna.enqueue_trial(trial.params, user_attrs=kept)

    def _place(self, number: int) -> int:
        """Return how many trials came before one, without those that were tried again."""
        return sum(
            t.number < number and (t.state.name != "FAIL" or t.user_attrs.get(CRASHES, 0) >= _MAX_CRASHES - 1)
            for t in self.trials()
        )


def _differences(there: Any, here: Any, name: str = "") -> list[tuple[str, Any, Any]]:
    """Return what differs between two JSON values, by dotted name."""
    if isinstance(there, dict) and isinstance(here, dict):
        return [
            found
            for key in sorted({*there, *here})
            for found in _differences(there.get(key), here.get(key), f"{name}.{key}" if name else key)
        ]
    return [] if there == here else [(name, there, here)]


def _short(value: Any) -> str:
    return "not there" if value is None else str(value)[:80]
