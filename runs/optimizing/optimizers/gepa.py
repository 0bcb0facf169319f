"""`gepa`: instructions evolved by reflecting on what went wrong in each chain (DSPy's GEPA)."""

from __future__ import annotations

from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import OptimizerTask, Plan
from signatures.profiles import ModelProfile

_REFLECTED = 3
"""Training questions reflected on at a time, before and after a change."""


class Gepa:
    """Instructions only, from the metric's feedback in words."""

    name = "gepa"
    summary = "instructions evolved from feedback on each chain"
    min_train = 1
    min_val = 1
    makes_demos = False
    uses_reflection = True

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan the start on all validation questions, and for each candidate a reflection and all of them again."""
        calls = val + budget.candidates * (val + 2 * min(_REFLECTED, train))
        return Plan(budget.candidates, calls, 0, calls)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Evolve instructions until the metric was called as often as planned."""
        optimizer = dspy.GEPA(
            metric=task.metric,
            max_metric_calls=task.plan.steps,
            reflection_minibatch_size=min(_REFLECTED, len(task.train)),
            reflection_lm=task.reflection_lm,
            num_threads=task.threads,
            seed=task.seed,
            track_stats=False,
            use_merge=False,
        )
        return cast(Candidate, optimizer.compile(task.student, trainset=task.train, valset=task.val))
