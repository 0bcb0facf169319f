"""Pictures of a study: its course, each parameter against the score, what matters, and the front of two objectives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runs.reports.figures import panels, save_figure, styled
from runs.tuning.parameter import Parameter, value_text
from runs.tuning.results import TrialResult, best_trial
from runs.tuning.study import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WHOLE, _PRUNED, _BEST = "#0072B2", "#B0B0B0", "#D55E00"
_UNITS = {
    "score": "Score (%)", "tokens": "Tokens a question", "latency": "Seconds a question (median)",
    "cost": "US dollars a question",
}  # fmt: skip
_FEWEST = 2
"""Whole trials below which a picture shows nothing."""
_FEWEST_FOR_IMPORTANCE = 4


def draw_study(
    folder: Path,
    trials: Sequence[TrialResult],
    front: Sequence[TrialResult],
    objective: Sequence[str],
    parameters: Sequence[Parameter],
    importances: Mapping[str, float],
) -> list[Path]:
    """Draw what there is to show.

    Args:
        folder: Folder of the pictures.
        trials: All trials.
        front: The front of several objectives.
        objective: Names of what was optimised.
        parameters: The parameters.
        importances: Parameter name to share; empty where it cannot be said.

    Returns:
        The PNG files: `history` and `slices`, `importance` where it can be said, `pareto` for several objectives.

    Raises:
        DataError: They cannot be written.
    """
    shown = [t for t in trials if t.state in ("complete", "pruned") and "score" in t.metrics]
    if sum(t.state == "complete" for t in shown) < _FEWEST:
        return []
    pictures: dict[str, Callable[[], Figure]] = {
        "history": lambda: draw_history(shown),
        "slices": lambda: draw_slices(shown, parameters),
    }
    if importances:
        pictures["importance"] = lambda: draw_importance(importances)
    if len(objective) > 1:
        pictures["pareto"] = lambda: draw_front(shown, front, objective)
    files = []
    for name, draw in pictures.items():
        save_figure(draw(), folder / f"{name}.png")
        files.append(folder / f"{name}.png")
    return files


@styled
def draw_history(trials: Sequence[TrialResult]) -> Figure:
    """Draw the score of each trial and the best so far."""
    figure, (ax,) = panels(1)
    _scatter(ax, trials, lambda trial: trial.number)
    bests = [(t.number, best_trial(trials[: place + 1])) for place, t in enumerate(trials)]
    course = [(number, 100 * best.metrics["score"]) for number, best in bests if best is not None]
    ax.step(*zip(*course, strict=True), where="post", color=_BEST, label="best so far")
    ax.set_xlabel("Trial")
    ax.set_ylabel(_UNITS["score"])
    figure.legend(loc="outside lower center", ncols=3)
    return figure


@styled
def draw_slices(trials: Sequence[TrialResult], parameters: Sequence[Parameter]) -> Figure:
    """Draw the score against each parameter."""
    figure, axes = panels(len(parameters))
    for ax, parameter in zip(axes, parameters, strict=True):
        names = [value_text(choice) for choice in parameter.choices]

        def place(trial: TrialResult, parameter: Parameter = parameter, names: list[str] = names) -> float:
            value = trial.values[parameter.name]
            return names.index(value_text(value)) if names else float(value)

        _scatter(ax, [t for t in trials if parameter.name in t.values], place)
        if names:
            ax.set_xticks(range(len(names)), [name[-24:] for name in names])
            ax.set_xlim(-0.5, len(names) - 0.5)
        elif parameter.log:
            ax.set_xscale("log")
        ax.set_xlabel(parameter.name)
    axes[0].set_ylabel(_UNITS["score"])
    return figure


@styled
def draw_importance(importances: Mapping[str, float]) -> Figure:
    """Draw how much of the score's spread each parameter accounts for."""
    figure, (ax,) = panels(1)
    ordered = sorted(importances.items(), key=lambda each: (each[1], each[0]))
    ax.barh([name for name, _ in ordered], [100 * share for _, share in ordered], color=_WHOLE, height=0.6)
    ax.set_xlabel("Share of the score's spread (%)")
    ax.set_xlim(0, 100)
    return figure


@styled
def draw_front(trials: Sequence[TrialResult], front: Sequence[TrialResult], objective: Sequence[str]) -> Figure:
    """Draw the score against each other objective, with the trials that no other one beats."""
    others = objective[1:]
    figure, axes = panels(len(others))
    for ax, name in zip(axes, others, strict=True):
        whole = [t for t in trials if t.state == "complete"]
        ax.scatter([t.metrics[name] for t in whole], [100 * t.metrics["score"] for t in whole], color=_PRUNED, s=14)
        points = sorted((t.metrics[name], 100 * t.metrics["score"], t.number) for t in front)
        line = "-" if len(others) == 1 else "none"
        ax.plot([x for x, _, _ in points], [y for _, y, _ in points], marker="o", color=_BEST, linestyle=line)
        for x, y, number in points:
            ax.annotate(str(number), (x, y), textcoords="offset points", xytext=(4, -9), fontsize=6.5)
        ax.set_xlabel(_UNITS[name])
    axes[0].set_ylabel(_UNITS["score"])
    return figure


def _scatter(ax: Any, trials: Sequence[TrialResult], place: Callable[[TrialResult], float]) -> None:
    for state, colour, marker in (("pruned", _PRUNED, "x"), ("complete", _WHOLE, "o")):
        chosen = [t for t in trials if t.state == state]
        if chosen:
            ax.scatter(
                [place(t) for t in chosen], [100 * t.metrics["score"] for t in chosen],
                color=colour, marker=marker, s=16, linewidths=0.9, label=state,
            )  # fmt: skip


def parameter_importances(trials: Sequence[Any]) -> dict[str, float]:
    """Return how much of the score's spread each parameter accounts for (fANOVA, seeded).

    Pruned trials count with the score they had: without them what makes a trial hopeless would seem not to matter.

    Args:
        trials: Optuna's trials.

    Returns:
        Parameter name to share; empty where trials are too few, or all scored the same.
    """
    import optuna
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    study = optuna.create_study(direction="maximize")
    for trial in trials:
        score = trial.user_attrs.get(METRICS, {}).get("score")
        if trial.state.name in ("COMPLETE", "PRUNED") and score is not None:
            study.add_trial(
                optuna.trial.create_trial(params=trial.params, distributions=trial.distributions, value=score)
            )
    scored = study.get_trials(deepcopy=False)
    varied = {name for t in scored for name in t.params if len({str(other.params[name]) for other in scored}) > 1}
    if len(scored) < _FEWEST_FOR_IMPORTANCE or len({t.value for t in scored}) < 2 or not varied:
        return {}
    found = get_param_importances(study, evaluator=FanovaImportanceEvaluator(seed=0), params=sorted(varied))
    return {name: float(share) for name, share in found.items()}
