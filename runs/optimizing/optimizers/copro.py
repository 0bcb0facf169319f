"""`copro`: instructions proposed in rounds, each round shown the scores of those before (DSPy's COPRO)."""

from __future__ import annotations

from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import OptimizerTask, Plan
from signatures.profiles import ModelProfile

_PREDICTORS = 2
_DEPTH_FROM = 6


class Copro:
    """Instructions only. The candidates of a round are tried on the validation questions."""

    name = "copro"
    summary = "instructions proposed in rounds by the reflection model"
    min_train = 1
    min_val = 1
    makes_demos = False
    uses_reflection = True

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan one round of proposals for each predictor, two rounds from `light` on."""
        depth = 2 if budget.candidates >= _DEPTH_FROM else 1
        breadth = max(2, budget.candidates // (depth * _PREDICTORS))
        # A later round tries the instructions of all rounds with the other predictor's new one.
        tried = _PREDICTORS * breadth * depth * (depth + 1) // 2
        return Plan(breadth, tried * val, 0, depth)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Propose and try instructions."""
        optimizer = dspy.COPRO(
            prompt_model=task.reflection_lm,
            metric=task.metric,
            breadth=task.plan.candidates,
            depth=task.plan.steps,
            init_temperature=1.0,
        )
        shown = {"num_threads": task.threads, "display_progress": False, "display_table": 0}
        return cast(Candidate, optimizer.compile(task.student, trainset=task.val, eval_kwargs=shown))
