"""`rag_agent`: the model searches, sees records without page text, and chooses pages to read in full."""

from __future__ import annotations

from typing import Any

from programs.base import Program
from programs.tools import SearchAndFetch


class RAGAgent(Program):
    """Agentic retrieval without Reason-in-Documents (section 4.2, RAgent); arguments as in `Program`."""

    method = "rag_agent"

    def _tools(self) -> dict[str, Any]:
        return {"tool": SearchAndFetch(self.options), "search": self.search, "reader": self.reader}
