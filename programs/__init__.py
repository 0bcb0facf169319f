"""How the model is asked: the chain, the predictor that pauses and resumes, one module a method.

Names are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "ChainOptions": "options",
    "DirectReasoning": "direct",
    "RAGAgent": "rag_agent",
    "SearchO1": "search_o1",
    "StandardRAG": "standard_rag",
    "WithFallback": "fallback",
    "final_information": "steps",
    "load_program": "saving",
    "make_program": "registry",
    "paper_options": "options",
    "previous_reasoning": "steps",
    "save_program": "saving",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'programs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"programs.{_HOMES[name]}"), name)
