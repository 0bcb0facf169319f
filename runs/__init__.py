"""What a person starts: evaluation, single questions, serving, tracking. Names are loaded when first used."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ask": "asking",
    "build_index": "indexing",
    "cache_stats": "caching",
    "compare": "comparing",
    "diff_programs": "program_diff",
    "doctor": "doctor",
    "embed_index": "embedding",
    "evaluate": "evaluation",
    "export_cache": "caching",
    "import_cache": "caching",
    "list_benchmarks": "listing",
    "list_programs": "program_listing",
    "load_run": "run_folder",
    "make_model": "models.factory",
    "optimize": "optimizing.optimize",
    "prune_cache": "caching",
    "report": "reporting",
    "rescore": "rescoring",
    "show_benchmark": "listing",
    "show_program": "program_listing",
    "tune": "tuning.tune",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'runs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"runs.{_HOMES[name]}"), name)
