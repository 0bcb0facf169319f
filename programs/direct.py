"""`direct`: the task template alone, no search."""

from __future__ import annotations

from typing import Any

import dspy

from programs.base import Program
from programs.options import ChainOptions
from programs.predictor import ChainPredict


class DirectReasoning(Program):
    """Answers from what the model knows (section 4.2, direct reasoning).

    Args:
        options: The options.
        **changes: Options to set on top, by name.
    """

    method = "direct"

    def __init__(self, options: ChainOptions | None = None, **changes: Any) -> None:
        super().__init__(options=options, **changes)
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
        return self.reason(**self._question(question, question_title, starter_code))

    async def aforward(self, question: str, question_title: str = "", starter_code: str = "") -> dspy.Prediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        return await self.reason.acall(**self._question(question, question_title, starter_code))
