"""How a study chooses: TPE, seeded for each trial by its place, so that a killed study goes on as if it had not been.

Optuna's own seed is the state of one process: a second start would draw the first trials' values again, and workers
with one seed would all draw the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any


def make_sampler(seed: int, place: Callable[[int], int]) -> Any:
    """Return the sampler of a study.

    Args:
        seed: Seed of the search.
        place: Returns the place of a trial's number among those that count, from 0.

    Returns:
        A sampler of Optuna, for one objective or several.
    """
    import optuna

    class PlacedSampler(optuna.samplers.BaseSampler):  # type: ignore[misc]
        """TPE that begins anew with each trial, from the seed, the trial's place and what the study knows."""

        def __init__(self) -> None:
            self._inner = optuna.samplers.TPESampler(seed=seed)

        def before_trial(self, study: Any, trial: Any) -> None:
            digest = hashlib.sha256(f"{seed}/{place(trial.number)}".encode()).digest()
            self._inner = optuna.samplers.TPESampler(seed=int.from_bytes(digest[:4], "big"))
            self._inner.before_trial(study, trial)

        def infer_relative_search_space(self, study: Any, trial: Any) -> Any:
            return self._inner.infer_relative_search_space(study, trial)

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> Any:
            return self._inner.sample_relative(study, trial, search_space)

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            return self._inner.sample_independent(study, trial, param_name, param_distribution)

        def after_trial(self, study: Any, trial: Any, state: Any, values: Any) -> None:
            self._inner.after_trial(study, trial, state, values)

    return PlacedSampler()
