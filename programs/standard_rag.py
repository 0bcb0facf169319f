"""`standard_rag`: one search with the question, its pages in the prompt, one generation."""

from __future__ import annotations

from typing import Any

import dspy

from programs.base import Program
from programs.chain import ChainState
from programs.documents import Record, add_contexts, make_records, render_documents
from programs.driver import Driver
from programs.operations import Steps
from programs.tools import read_steps, search_steps

CODE_QUERY_CHARS = 500
"""A code task is searched with its first 500 characters (the authors' scripts)."""


class StandardRAG(Program):
    """Retrieves once for the question as asked, then reasons over the documents (section 4.2, standard RAG).

    Arguments as in `Program`; a search that fails raises, as there is no chain to keep yet.
    """

    method = "standard_rag"

    def forward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question.

        Args:
            question: The question or problem statement.
            question_title: Title of a code problem.
            starter_code: Starter code of a code problem.

        Returns:
            A prediction: `answer`, `reasoning`, `searches` (one), `finish`, `usage`, `events`.

        Raises:
            SearchO1Error: The search failed, or the model failed before anything was written.
        """
        state, records = self._driver().run(self._retrieve(question))
        prediction = self.reason(**self._reasoning_inputs(question, question_title, starter_code, state, records))
        return _with_searches(prediction, state)

    async def aforward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        state, records = await self._driver().arun(self._retrieve(question))
        prediction = await self.reason.acall(
            **self._reasoning_inputs(question, question_title, starter_code, state, records)
        )
        return _with_searches(prediction, state)

    def _driver(self) -> Driver:
        return Driver(None, self.search, self.reader)

    def _retrieve(self, question: str) -> Steps[tuple[ChainState, list[Record]]]:
        state = ChainState("")
        query = " ".join(question[:CODE_QUERY_CHARS].split()) if self.options.task == "code" else question
        reply = yield from search_steps(query, self.options, state)
        pages = yield from read_steps(reply.hits, state)
        records = add_contexts(
            make_records(reply.hits),
            reply.hits,
            pages,
            page_chars=self.options.page_chars,
            context_chars=self.options.context_chars,
        )
        state.searches[-1].update(information="", outcome="found" if records else "no_hits")
        return state, records

    def _reasoning_inputs(
        self, question: str, question_title: str, starter_code: str, state: ChainState, records: list[Record]
    ) -> dict[str, Any]:
        return {
            **self._question(question, question_title, starter_code),
            "documents": render_documents(records),
            "records": records,
            "prior_events": state.events,
        }


def _with_searches(prediction: dspy.Prediction, state: ChainState) -> dspy.Prediction:
    prediction.searches = state.searches
    return prediction
