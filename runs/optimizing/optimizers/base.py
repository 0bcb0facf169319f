"""What the optimizers have in common: the task they are given, the plan they make of a budget, warming the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.measuring import measure
from runs.optimizing.session import AccountedMetric
from signatures.profiles import ModelProfile

SHOWN_DEMOS = 4
"""Demos of a model that is shown all of them."""
POOL_DEMOS = 64
"""Demos of a model that is shown the few most like the question: the more there are, the better those fit."""


@dataclass(frozen=True)
class Plan:
    """What an optimizer makes of a budget.

    Attributes:
        candidates: Candidates it expects to try on the validation questions, the start apart.
        rollouts: Questions it expects to put to programs, for the progress bar.
        max_demos: Most demos a predictor.
        steps: Rounds, depth or attempts, as the optimizer understands them.
    """

    candidates: int
    rollouts: int
    max_demos: int
    steps: int = 1


@dataclass(frozen=True)
class OptimizerTask:
    """What an optimizer works on.

    Attributes:
        student: The program to improve.
        teacher: What demos are bootstrapped from; None means the student.
        teacher_lm: A stronger model for the teacher, or None.
        reflection_lm: The model that proposes instructions.
        labelled: Makes the student with demos from the labels of training questions; raises DataError where none can
            be worked out.
        train: Training examples.
        val: Validation examples.
        metric: The metric.
        plan: The plan.
        seed: Seed.
        threads: Questions at a time.
    """

    student: Candidate
    teacher: Candidate | None
    teacher_lm: Any
    reflection_lm: Any
    labelled: Callable[[], Candidate]
    train: list[Any]
    val: list[Any]
    metric: AccountedMetric
    plan: Plan
    seed: int
    threads: int

    @property
    def teacher_settings(self) -> dict[str, Any]:
        """DSPy settings under which the teacher runs."""
        return {"lm": self.teacher_lm} if self.teacher_lm is not None else {}


class Optimizer(Protocol):
    """An optimizer: one file, one entry in `OPTIMIZERS`.

    Attributes:
        name: Name on the command line.
        summary: One line for listings.
        min_train: Training questions it needs.
        min_val: Validation questions it needs.
        makes_demos: Whether it makes demos.
        uses_reflection: Whether it asks a model for instructions.
    """

    name: str
    summary: str
    min_train: int
    min_val: int
    makes_demos: bool
    uses_reflection: bool

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Make a plan of a budget.

        Args:
            budget: The budget.
            train: Number of training questions.
            val: Number of validation questions.
            profile: How the model wants to be asked.
        """
        ...

    def compile(self, task: OptimizerTask) -> Candidate:
        """Improve a program.

        Args:
            task: What to work on.

        Returns:
            The best candidate in the optimizer's own judgement.
        """
        ...


def demo_limit(profile: ModelProfile) -> int:
    """Return how many demos a predictor gets at most."""
    return SHOWN_DEMOS if profile.nearest_demos is None else POOL_DEMOS


def warm_up(task: OptimizerTask, wanted: int) -> tuple[list[Any], list[Any]]:
    """Put training questions to the teacher, several at a time, until enough chains are fit to be demos.

    DSPy bootstraps one question after the other; with the replies in the cache that takes no time.

    Args:
        task: The task.
        wanted: How many fit chains are enough.

    Returns:
        (examples whose chains are fit, all examples that were put), in training order.
    """
    teacher = task.teacher or task.student
    fit: list[Any] = []
    put: list[Any] = []
    with dspy.context(**task.teacher_settings):
        for start in range(0, len(task.train), task.threads):
            if len(fit) >= wanted:
                break
            chunk = task.train[start : start + task.threads]
            predictions = measure(teacher, chunk, task.metric, task.threads)
            for example, prediction in zip(chunk, predictions, strict=True):
                # Where it ends must not depend on how many are asked at a time.
                if len(fit) >= wanted:
                    break
                put.append(example)
                if float(task.metric(example, prediction, [])) > 0:
                    fit.append(example)
    return fit, put


def try_teacher(task: OptimizerTask, examples: Sequence[Any]) -> None:
    """Try the teacher's own demos as a candidate, where it is not a stronger model's.

    Args:
        task: The task.
        examples: Validation examples.
    """
    if task.teacher is not None and task.teacher_lm is None:
        measure(task.teacher, examples, task.metric, task.threads)
