"""`simba`: rules and demos drawn from questions on which samples disagree (DSPy's SIMBA)."""

from __future__ import annotations

from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import SHOWN_DEMOS, OptimizerTask, Plan, demo_limit, try_teacher
from signatures.profiles import ModelProfile

_BATCH = 16
_MOST_CANDIDATES = 6


class Simba:
    """Learns on training batches; what wins there is then tried on the validation questions."""

    name = "simba"
    summary = "rules and demos from questions on which samples disagree"
    min_train = 2
    min_val = 1
    makes_demos = True
    uses_reflection = True

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan steps of at most six candidates; each samples a batch once per candidate and tries each on it."""
        candidates = min(_MOST_CANDIDATES, max(2, -(-budget.candidates // 2)))
        steps = max(1, -(-budget.candidates // candidates))
        rollouts = steps * 2 * candidates * min(_BATCH, train) + (steps + 1) * train + 2 * val
        return Plan(candidates, rollouts, demo_limit(profile), steps)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Learn rules and demos, from the teacher's demos on where there is one."""
        try_teacher(task, task.val)
        optimizer = dspy.SIMBA(
            metric=task.metric,
            bsize=min(_BATCH, len(task.train)),
            num_candidates=task.plan.candidates,
            max_steps=task.plan.steps,
            max_demos=max(task.plan.max_demos, SHOWN_DEMOS),
            prompt_model=task.reflection_lm,
            teacher_settings=task.teacher_settings or None,
            num_threads=task.threads,
        )
        student = task.student if task.teacher is None else task.teacher
        return cast(Candidate, optimizer.compile(student, trainset=task.train, seed=task.seed))
