"""`labeled`: demos worked out from the labels of training questions; no model is asked (as DSPy's LabeledFewShot)."""

from __future__ import annotations

from runs.optimizing.budgets import Budget
from runs.optimizing.candidate import Candidate
from runs.optimizing.measuring import measure
from runs.optimizing.optimizers.base import OptimizerTask, Plan
from signatures.profiles import ModelProfile


class Labeled:
    """One candidate: every question that names its gold documents becomes a demo, whatever the budget."""

    name = "labeled"
    summary = "demos worked out from the gold documents of training questions"
    min_train = 1
    min_val = 1
    makes_demos = True
    uses_reflection = False

    def plan(self, budget: Budget, train: int, val: int, profile: ModelProfile) -> Plan:
        """Plan the one candidate."""
        return Plan(1, val, train)

    def compile(self, task: OptimizerTask) -> Candidate:
        """Work the demos out and try them."""
        worked = task.labelled()
        measure(worked, task.val, task.metric, task.threads)
        return worked
