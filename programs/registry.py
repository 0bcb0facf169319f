"""The methods by name. A new method is one new file and one line here."""

from __future__ import annotations

from typing import Any

from programs.base import Program
from programs.direct import DirectReasoning
from programs.options import ChainOptions
from programs.rag_agent import RAGAgent
from programs.search_o1 import SearchO1
from programs.standard_rag import StandardRAG
from retrieval.base import Reader, Search
from signatures.errors import OptionError

PROGRAMS: dict[str, type[Program]] = {
    "direct": DirectReasoning,
    "standard_rag": StandardRAG,
    "rag_agent": RAGAgent,
    "search_o1": SearchO1,
}


def make_program(
    method: str,
    search: Search | None = None,
    reader: Reader | None = None,
    options: ChainOptions | None = None,
    **changes: Any,
) -> Program:
    """Build a method's program by its name.

    Args:
        method: `direct`, `standard_rag`, `rag_agent` or `search_o1`.
        search: Search backend; ignored by `direct`.
        reader: Page reader; ignored by `direct`.
        options: The options.
        **changes: Options to set on top, by name.

    Returns:
        The program.

    Raises:
        OptionError: The method or an option is unknown.
    """
    if method not in PROGRAMS:
        raise OptionError(f"Unknown method {method!r}; known methods: {', '.join(PROGRAMS)}.")
    if method == "direct":
        return DirectReasoning(options, **changes)
    return PROGRAMS[method](search, reader, options, **changes)
