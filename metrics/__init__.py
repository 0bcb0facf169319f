"""How answers are judged: extraction, scorers in two families, and the statistics around them.

Names are loaded when first used, so that importing a leaf (`metrics.extraction`) imports nothing else.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "UNCERTAINTY_WORDS": "chain_statistics",
    "chain_metrics": "chain_statistics",
    "uncertainty_words": "chain_statistics",
    "choice_letter": "choice",
    "official_choice": "choice",
    "strict_choice": "choice",
    "clean_choice": "extraction",
    "CodeScore": "code_verdicts",
    "CodeTests": "livecodebench_tests",
    "read_tests": "livecodebench_tests",
    "score_code": "code",
    "score_code_async": "code",
    "score_many": "code",
    "SandboxError": "sandbox.options",
    "SandboxOptions": "sandbox.options",
    "code_block": "extraction",
    "extract_answer": "extraction",
    "is_valid": "extraction",
    "official_box": "extraction",
    "strict_box": "extraction",
    "ScoreWithFeedback": "feedback",
    "HEADLINE": "kinds",
    "task_kind": "kinds",
    "as_labels": "labels",
    "JudgeError": "math_judge",
    "MathJudge": "math_judge",
    "official_math": "math_official",
    "same_string": "math_official",
    "same_value": "math_strict",
    "strict_math": "math_strict",
    "normalise_official": "normalise",
    "normalise_strict": "normalise",
    "strict_tokens": "normalise",
    "official_qa": "qa",
    "strict_qa": "qa",
    "TASKS": "scorer",
    "score": "scorer",
    "score_async": "scorer",
    "Score": "scores",
    "Scores": "scores",
    "Estimate": "statistics",
    "PairedDifference": "statistics",
    "avg_at_k": "statistics",
    "clustered_mean_with_error": "statistics",
    "maj_at_k": "statistics",
    "maj_at_k_with_error": "statistics",
    "majority_at_k": "statistics",
    "mean_with_error": "statistics",
    "paired_difference": "statistics",
    "pass_at_k": "statistics",
    "pass_at_k_with_error": "statistics",
    "METRICS_VERSION": "version",
}
_MODULES = ("official", "strict")
"""The two families, so that `metrics.official` works without importing it by name."""

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"metrics.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'metrics' has no attribute {name!r}")
    return getattr(importlib.import_module(f"metrics.{_HOMES[name]}"), name)
