"""`miprov2`: instructions and sets of demos together, combined by Bayesian search (DSPy's MIPROv2)."""

from __future__ import annotations

import math
from typing import cast

import dspy

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.optimizers.base import OptimizerTask, Plan, demo_limit, try_teacher, warm_up
from signatures.profiles import ModelProfile

_PREDICTORS = 2
_MINIBATCH = 35
_MINIBATCH_FROM = 50
_FIT_A_DEMO = 3


class MiproV2:
    """Proposes instructions from the data and the demos, then searches combinations with Optuna."""

    name = "miprov2"
    summary = "instructions and demos together, by Bayesian search"
    min_train = 2
    min_val = 1
    makes_demos = True
    uses_reflection = True

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan as many instructions and sets of demos as the budget says, and DSPy's number of trials for them."""
        options = max(2, budget.candidates // 2)
        trials = int(max(4 * _PREDICTORS * math.log2(options), 1.5 * options))
        each = _MINIBATCH if val > _MINIBATCH_FROM else val
        return Plan(options, train + trials * each + 2 * val, demo_limit(profile), trials)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Bootstrap demos, propose instructions, search."""
        try_teacher(task, task.val)
        _, put = warm_up(task, _FIT_A_DEMO * task.plan.max_demos)
        optimizer = dspy.MIPROv2(
            metric=task.metric,
            prompt_model=task.reflection_lm,
            task_model=dspy.settings.lm,
            teacher_settings=task.teacher_settings,
            max_bootstrapped_demos=task.plan.max_demos,
            max_labeled_demos=0,
            auto=None,
            num_candidates=task.plan.candidates,
            num_threads=task.threads,
            seed=task.seed + 1,
            verbose=False,
            track_stats=False,
        )
        return cast(
            Candidate,
            optimizer.compile(
                task.student,
                trainset=put,
                teacher=task.teacher,
                valset=task.val,
                num_trials=task.plan.steps,
                minibatch=len(task.val) > _MINIBATCH_FROM,
                minibatch_size=_MINIBATCH,
                # It would show the proposer our own source code instead of what the program does.
                program_aware_proposer=False,
            ),
        )
