"""Which trials are given up after a few questions.

All trials answer the same questions in the same order, so what is compared at a look is what two trials made of the
same questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

_WHOLE_TRIALS = 5
"""Trials that must have answered everything before the median says anything."""


def make_pruner(name: str, *, questions: int, report_every: int, warmup: int) -> Any:
    """Return a pruner.

    Args:
        name: `median` gives up a trial whose best running score is below the median of the others' at the same
            question; `hyperband` gives each trial few questions and lets the best third go on to three times as many;
            `none` gives up none.
        questions: Questions of a whole trial.
        report_every: Questions between two looks.
        warmup: Questions before the first look that counts.

    Returns:
        Optuna's pruner; its steps are questions answered.
    """
    from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner

    if name == "median":
        return MedianPruner(n_startup_trials=_WHOLE_TRIALS, n_warmup_steps=warmup)
    if name == "hyperband":
        least = min(questions, max(report_every, warmup, 1))
        return HyperbandPruner(min_resource=least, max_resource=questions, reduction_factor=3)
    return NopPruner()


def waves(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Cut questions into waves; after each the running score is looked at.

    Args:
        items: The questions in order.
        size: Questions a wave; the last one may be shorter.

    Returns:
        The waves.
    """
    return [items[start : start + size] for start in range(0, len(items), size)]
