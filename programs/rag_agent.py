"""`rag_agent`: the model searches, sees records without page text, and chooses pages to read in full."""

from __future__ import annotations

from typing import Any

import dspy

from programs.base import Program
from programs.options import ChainOptions
from programs.predictor import ChainPredict
from programs.tools import SearchAndFetch
from retrieval.base import Reader, Search


class RAGAgent(Program):
    """Agentic retrieval without Reason-in-Documents (section 4.2, RAgent).

    Args:
        search: Search backend.
        reader: Page reader; by default the search backend's own, else a `WebReader`.
        options: The options.
        **changes: Options to set on top, by name.
    """

    method = "rag_agent"

    def __init__(
        self,
        search: Search | None = None,
        reader: Reader | None = None,
        options: ChainOptions | None = None,
        **changes: Any,
    ) -> None:
        super().__init__(search, reader, options, **changes)
        self.reason = ChainPredict(self.method, self.options)

    def forward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question.

        Args:
            question: The question or problem statement.
            question_title: Title of a code problem.
            starter_code: Starter code of a code problem.

        Returns:
            A prediction: `answer`, `reasoning`, `searches`, `finish`, `usage`, `events`.

        Raises:
            SearchO1Error: The model failed before anything was written.
        """
        return self.reason(**self._question(question, question_title, starter_code), **self._tools())

    async def aforward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        return await self.reason.acall(**self._question(question, question_title, starter_code), **self._tools())

    def _tools(self) -> dict[str, Any]:
        return {"tool": SearchAndFetch(self.options), "search": self.search, "reader": self.reader}
