"""`bootstrap`: the teacher's right chains on training questions become demos (DSPy's BootstrapFewShot)."""

from __future__ import annotations

from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import OptimizerTask, Plan, demo_limit, try_teacher, warm_up
from signatures.profiles import ModelProfile

_CANDIDATES_A_ROUND = 6


class Bootstrap:
    """One set of demos. A larger budget puts a question again, at temperature 1, where its chain was not fit."""

    name = "bootstrap"
    summary = "demos from the model's own right chains"
    min_train = 1
    min_val = 1
    makes_demos = True
    uses_reflection = False

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan the teacher, its demos, and a round a question for every six candidates of the budget."""
        rounds = -(-budget.candidates // _CANDIDATES_A_ROUND)
        return Plan(2, train * rounds + 2 * val, demo_limit(profile), rounds)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Bootstrap demos; without a single fit chain the student is returned as it was."""
        try_teacher(task, task.val)
        fit, put = warm_up(task, task.plan.max_demos)
        examples = fit if task.plan.steps == 1 else put
        if not examples:
            return task.student
        optimizer = dspy.BootstrapFewShot(
            metric=task.metric,
            max_bootstrapped_demos=task.plan.max_demos,
            max_labeled_demos=0,
            max_rounds=task.plan.steps,
            teacher_settings=task.teacher_settings,
        )
        return cast(Candidate, optimizer.compile(task.student, teacher=task.teacher, trainset=examples))
