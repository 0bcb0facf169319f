"""`search_o1`: the model searches in the middle of its reasoning, and Reason-in-Documents distils what was found."""

from __future__ import annotations

from typing import Any

from programs.base import Program
from programs.options import ChainOptions
from programs.refine import RefinePredict
from programs.tools import SearchAndRefine
from retrieval.base import Reader, Search


class SearchO1(Program):
    """Agentic search inside the chain of thought with Reason-in-Documents (sections 3.3 and 3.4).

    Arguments as in `Program`; `refine` is the second predictor, called from inside the first.
    """

    method = "search_o1"

    def __init__(
        self,
        search: Search | None = None,
        reader: Reader | None = None,
        options: ChainOptions | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(search, reader, options, **changes)
        self.refine = RefinePredict(self.options)

    def _tools(self) -> dict[str, Any]:
        return {"tool": SearchAndRefine(self.refine, self.options), "search": self.search, "reader": self.reader}
