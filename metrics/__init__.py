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
    "clean_choice": "extraction",
    "code_block": "extraction",
    "extract_answer": "extraction",
    "is_valid": "extraction",
    "official_box": "extraction",
    "strict_box": "extraction",
    "normalise_official": "normalise",
    "normalise_strict": "normalise",
    "strict_tokens": "normalise",
    "official_qa": "qa",
    "score_open_qa": "qa",
    "strict_qa": "qa",
    "TASKS": "scorer",
    "score": "scorer",
    "Score": "scores",
    "Estimate": "statistics",
    "PairedDifference": "statistics",
    "avg_at_k": "statistics",
    "clustered_mean_with_error": "statistics",
    "majority_at_k": "statistics",
    "mean_with_error": "statistics",
    "paired_difference": "statistics",
    "pass_at_k": "statistics",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'metrics' has no attribute {name!r}")
    return getattr(importlib.import_module(f"metrics.{_HOMES[name]}"), name)
