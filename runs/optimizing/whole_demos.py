"""Which demos can be shown: complete ones, and of reasoning demos those that are a whole chain with its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metrics.extraction import extract_answer, is_valid
from signatures.markup import (
    BEGIN_FULL_PAGE,
    BEGIN_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    BEGIN_URL,
    END_FULL_PAGE,
    END_SEARCH_QUERY,
    END_SEARCH_RESULT,
    END_URL,
)

_REFINE_FIELDS = ("prev_reasoning", "search_query", "document", "final_information")
_REASON_FIELDS = ("question", "reasoning")
_PAIRS = (
    (BEGIN_SEARCH_QUERY, END_SEARCH_QUERY),
    (BEGIN_SEARCH_RESULT, END_SEARCH_RESULT),
    (BEGIN_URL, END_URL),
    (BEGIN_FULL_PAGE, END_FULL_PAGE),
)


def is_complete(demo: Mapping[str, Any], method: str) -> bool:
    """Tell whether a demo has the fields that the adapter shows; it leaves others out.

    Args:
        demo: The demo.
        method: Method of the predictor's layout.
    """
    return all(demo.get(name) for name in (_REFINE_FIELDS if method == "refine_docs" else _REASON_FIELDS))


def is_whole(demo: Mapping[str, Any], method: str, task: str) -> bool:
    """Tell whether a complete demo may be shown.

    Args:
        demo: The demo.
        method: Method of the predictor's layout.
        task: Task kind.

    Returns:
        True for a complete demo; of a reasoning predictor only where the chain ends in a valid answer and not in the
        middle of a query, of a fetch or of their results.
    """
    if not is_complete(demo, method):
        return False
    if method == "refine_docs":
        return True
    chain = str(demo["reasoning"]).strip()
    if any(chain.rfind(begin) > chain.rfind(end) for begin, end in _PAIRS):
        return False
    return not chain.endswith((END_SEARCH_QUERY, END_URL)) and is_valid(extract_answer(chain, task), task)
