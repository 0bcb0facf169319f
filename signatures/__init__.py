"""What the model is asked: DSPy signatures, the paper's templates, the adapter and the marker protocol.

Names are loaded when first used, so that importing a leaf (`signatures.markup`, `signatures.errors`) imports no DSPy.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ChainAdapter": "adapter",
    "Layout": "layout",
    "ModelProfile": "profiles",
    "PROFILES": "profiles",
    "profile_for": "profiles",
    "Reasoning": "reasoning",
    "RefineDocs": "reasoning",
    "reasoning_signature": "reasoning",
    "refine_signature": "reasoning",
    "instructions_for": "templates",
    "method_template": "templates",
    "task_template": "templates",
    "SearchO1Error": "errors",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'signatures' has no attribute {name!r}")
    return getattr(importlib.import_module(f"signatures.{_HOMES[name]}"), name)
