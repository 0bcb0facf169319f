"""The paper's fallback: where a method gives no valid answer, the direct answer stands in (section 4.3)."""

from __future__ import annotations

import time
from typing import Any

import dspy

from metrics.extraction import is_valid
from signatures.errors import SearchO1Error


class WithFallback(dspy.Module):  # type: ignore[misc]
    """Runs a program, and `direct` where the program's answer is not valid.

    The direct answer is taken only if it is valid itself, else the program's own is kept. `prediction.fallback` says
    whether it was taken; reasoning, searches and finish stay those of the program, usage and events cover both.

    Args:
        program: The program to run first.
        direct: The program that answers without search, or its class, which is then made with the program's options.
    """

    def __init__(self, program: Any, direct: Any) -> None:
        super().__init__()
        self.program = program
        self.direct = direct(options=program.options) if isinstance(direct, type) else direct

    @property
    def method(self) -> str:
        """Method of the program that runs first."""
        return str(self.program.method)

    @property
    def options(self) -> Any:
        """Options of the program that runs first."""
        return self.program.options

    def forward(self, **question: Any) -> dspy.Prediction:
        """Answer a question; arguments, result and errors as in the wrapped program."""
        prediction = self.program(**question)
        if self._valid(prediction):
            return _mark(prediction, taken=False)
        try:
            direct = self.direct(**question)
        except SearchO1Error as error:
            return _failed(prediction, error)
        return self._merge(prediction, direct)

    async def aforward(self, **question: Any) -> dspy.Prediction:
        """Answer a question on the running event loop; arguments, result and errors as in `forward`."""
        prediction = await self.program.acall(**question)
        if self._valid(prediction):
            return _mark(prediction, taken=False)
        try:
            direct = await self.direct.acall(**question)
        except SearchO1Error as error:
            return _failed(prediction, error)
        return self._merge(prediction, direct)

    def _valid(self, prediction: dspy.Prediction) -> bool:
        return is_valid(prediction.answer, self.options.task)

    def _merge(self, prediction: dspy.Prediction, direct: dspy.Prediction) -> dspy.Prediction:
        from programs.predictor import add_usage

        taken = self._valid(direct)
        if taken:
            prediction.answer = direct.answer
            prediction.direct_reasoning = direct.reasoning
        prediction.events = [*prediction.events, *direct.events]
        prediction.usage = add_usage(prediction.events)
        return _mark(prediction, taken=taken)


def _failed(prediction: dspy.Prediction, error: SearchO1Error) -> dspy.Prediction:
    # The chain of the program that ran first is never lost to the failure of its stand-in.
    now = time.time()
    event = {"type": "error", "start": now, "end": now, "kind": error.kind, "message": str(error), "fallback": True}
    prediction.events = [*prediction.events, event]
    return _mark(prediction, taken=False)


def _mark(prediction: dspy.Prediction, *, taken: bool) -> dspy.Prediction:
    prediction.fallback = taken
    return prediction
