"""`random-search`: several sets of bootstrapped demos; the best on validation wins (DSPy's random search)."""

from __future__ import annotations

from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import OptimizerTask, Plan, demo_limit, try_teacher, warm_up
from signatures.profiles import ModelProfile

_FIT_A_DEMO = 3
"""Fit chains collected for each demo shown, so that sets differ."""


class RandomSearch:
    """Sets of demos of different sizes, drawn from the teacher's fit chains."""

    name = "random-search"
    summary = "several sets of such demos; the best on the validation questions"
    min_train = 2
    min_val = 1
    makes_demos = True
    uses_reflection = False

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan the teacher itself, the set in training order, and drawn sets for the rest of the budget."""
        return Plan(
            budget.candidates, train + budget.candidates * val, demo_limit(profile), max(1, budget.candidates - 2)
        )

    def compile(self, task: OptimizerTask) -> Candidate:
        """Try sets of demos; without a single fit chain the student is returned as it was."""
        try_teacher(task, task.val)
        fit, _ = warm_up(task, _FIT_A_DEMO * task.plan.max_demos)
        if not fit:
            return task.student
        optimizer = dspy.BootstrapFewShotWithRandomSearch(
            metric=task.metric,
            max_bootstrapped_demos=min(task.plan.max_demos, len(fit)),
            max_labeled_demos=0,
            num_candidate_programs=task.plan.steps,
            num_threads=task.threads,
            teacher_settings=task.teacher_settings,
        )
        # The start was measured already; -1 is the set in training order, the rest are drawn by their numbers.
        sets = range(-1, task.plan.steps)
        return cast(
            Candidate,
            optimizer.compile(task.student, teacher=task.teacher, trainset=fit, valset=task.val, restrict=sets),
        )
