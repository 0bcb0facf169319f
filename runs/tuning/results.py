"""What a study found: its trials, the best one, and those that no other beats in everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runs.tuning.settings import OBJECTIVES
from runs.tuning.space import Space
from runs.tuning.study import FOLDER, METRICS, TOLD


@dataclass(frozen=True)
class TrialResult:
    """A trial as it ended.

    Attributes:
        number: Its number in the study.
        state: `complete`, `pruned` or `failed`.
        values: Parameter name to value.
        metrics: See `runs.tuning.trial_run.trial_metrics`; of a pruned trial over the questions it answered.
        running: Questions answered to running score.
        folder: Name of its folder below `trials`.
        told: Why it failed, or empty.
    """

    number: int
    state: str
    values: dict[str, Any]
    metrics: dict[str, float]
    running: dict[int, float] = field(default_factory=dict)
    folder: str = ""
    told: str = ""


@dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        study: Name of the study.
        folder: Its folder, with `best.json` and the plots.
        objective: Names of what was optimised.
        trials: All trials by number.
        best: The trial with the best score, or None when none answered everything.
        front: The trials that no other one beats in all objectives, by falling score; just the best for one objective.
        options: Chain options of the best trial, by name: what `evaluate` takes as `options`.
        flags: The same as arguments of `search-o1 evaluate`.
        plots: Picture files.
        mlflow_run: MLflow's parent run, or empty.
        tracking_error: Why tracking stopped, or empty.
    """

    study: str
    folder: Path
    objective: tuple[str, ...]
    trials: list[TrialResult] = field(repr=False)
    best: TrialResult | None
    front: list[TrialResult] = field(repr=False)
    options: dict[str, Any]
    flags: str
    plots: list[Path] = field(default_factory=list)
    mlflow_run: str = ""
    tracking_error: str = ""

    @property
    def finished(self) -> int:
        """Trials that answered everything or were pruned."""
        return sum(t.state in ("complete", "pruned") for t in self.trials)


_STATES = {"COMPLETE": "complete", "PRUNED": "pruned", "FAIL": "failed"}


def read_trials(trials: Sequence[Any], space: Space) -> list[TrialResult]:
    """Return the trials of a study that have ended.

    Args:
        trials: Optuna's trials.
        space: The space.

    Returns:
        Ours, by number.
    """
    return [
        TrialResult(
            trial.number,
            _STATES[trial.state.name],
            space.readable(trial.params),
            dict(trial.user_attrs.get(METRICS, {})),
            dict(trial.intermediate_values),
            trial.user_attrs.get(FOLDER, ""),
            trial.user_attrs.get(TOLD, ""),
        )
        for trial in trials
        if trial.state.name in _STATES
    ]


def best_trial(trials: Sequence[TrialResult]) -> TrialResult | None:
    """Return the trial with the highest score; of equals the one with the fewest tokens, then the earliest."""
    whole = [t for t in trials if t.state == "complete"]
    return min(whole, key=lambda t: (-t.metrics["score"], t.metrics["tokens"], t.number), default=None)


def pareto_front(trials: Sequence[TrialResult], objective: Sequence[str]) -> list[TrialResult]:
    """Return the trials that no other one beats.

    Args:
        trials: All trials; those that did not answer everything are left out.
        objective: Names of `OBJECTIVES`.

    Returns:
        The front by falling score, the earliest of several with the same values. For one objective the best trial.
    """
    whole = [t for t in trials if t.state == "complete"]
    if len(objective) == 1:
        best = best_trial(whole)
        return [best] if best is not None else []
    points: dict[tuple[float, ...], TrialResult] = {}
    for trial in whole:
        signs = [1 if OBJECTIVES[name] == "minimize" else -1 for name in objective]
        losses = tuple(sign * trial.metrics[name] for sign, name in zip(signs, objective, strict=True))
        points.setdefault(losses, trial)
    return [
        trial
        for losses, trial in sorted(points.items(), key=lambda each: each[0])
        if not any(
            other != losses and all(o <= mine for o, mine in zip(other, losses, strict=True)) for other in points
        )
    ]
