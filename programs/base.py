"""What the four methods share: options, the paused-and-resumed predictor, and how a question is put to it."""

from __future__ import annotations

from typing import Any, ClassVar

import dspy

from programs.options import ChainOptions, make_options
from programs.predictor import ChainPredict
from retrieval.base import Reader, Search
from signatures.templates import Method


class Program(dspy.Module):  # type: ignore[misc]
    """Base of the four methods: a DSPy module that answers one question.

    Programs hold options, not connections, and survive deepcopy and pickling.

    Args:
        search: Search backend; methods that do not search take none.
        reader: Page reader; by default the one that comes with the search backend (`search.reader()`), else a
            `WebReader`.
        options: The options.
        **changes: Options to set on top, by name.

    Raises:
        OptionError: An option is unknown or impossible.
    """

    method: ClassVar[Method]

    def __init__(
        self,
        search: Search | None = None,
        reader: Reader | None = None,
        options: ChainOptions | None = None,
        **changes: Any,
    ) -> None:
        super().__init__()
        self.options = make_options(options, **changes)
        self.search = search
        self.reader = reader if reader is not None or search is None else default_reader(search)
        self.reason = ChainPredict(self.method, self.options)

    def forward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question.

        Args:
            question: The question or problem statement.
            question_title: Title of a code problem.
            starter_code: Starter code of a code problem.

        Returns:
            A prediction: `answer`, `reasoning` (the chain), `searches`, `finish`, `usage`, `events`.

        Raises:
            SearchO1Error: The model failed before anything was written.
        """
        return self.reason(**self._question(question, question_title, starter_code), **self._tools())

    async def aforward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        return await self.reason.acall(**self._question(question, question_title, starter_code), **self._tools())

    def _tools(self) -> dict[str, Any]:
        """Return what the chain can pause for, as arguments of its predictor; nothing by default."""
        return {}

    def _question(self, question: str, question_title: str, starter_code: str) -> dict[str, Any]:
        if self.options.task != "code":
            return {"question": question}
        return {"question": question, "question_title": question_title, "starter_code": starter_code}


def default_reader(search: Search) -> Reader:
    """Return the reader that comes with a search backend, else a `WebReader`."""
    own = getattr(search, "reader", None)
    if callable(own):
        reader: Reader = own()
        return reader
    from retrieval.readers.web import WebReader

    return WebReader()
