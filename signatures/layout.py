"""What fixes the text around a signature's instructions: method, task, language and the values of the slots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from signatures.examples import ExampleKind, example_slots
from signatures.templates import THINK_STEP_BY_STEP, Language, Method, Task

_LABELS = {
    "en": {"reasoning": "Reasoning:", "analysis": "Analysis:", "starter": "Starter code:", "documents": "Documents:"},
    "zh": {"reasoning": "推理:", "analysis": "分析:", "starter": "起始代码:", "documents": "文档:"},
}


@dataclass(frozen=True)
class Layout:
    """How one predictor's prompt is laid out; a plain value that can be pickled and compared.

    Attributes:
        method: The method whose template is used, or `refine_docs`.
        task: Task kind, which chooses the task template and the answer format.
        language: `en` or `zh`.
        example: Which example fills the example slots; None means the task's own.
        max_search_limit: Number shown as the search limit.
        max_url_fetch: Number shown as the fetch limit.
        show_starter_code: Show a code problem's starter code (ours; `--paper` leaves it out).
    """

    method: Method
    task: Task = "open_qa"
    language: Language = "en"
    example: ExampleKind | None = None
    max_search_limit: int = 5
    max_url_fetch: int = 5
    show_starter_code: bool = True

    def slots(self, *, reasoning_model: bool) -> dict[str, str]:
        """Return the values of all slots that do not depend on the question.

        Args:
            reasoning_model: True leaves the think-step-by-step sentence out.

        Returns:
            Slot name to text.
        """
        return {
            "max_search_limit": str(self.max_search_limit),
            "max_url_fetch": str(self.max_url_fetch),
            "think": "" if reasoning_model else THINK_STEP_BY_STEP,
            **example_slots(self.task, self.language, self.example),
        }

    def label(self, name: str) -> str:
        """Return one of the few words this project adds itself, in the layout's language.

        Args:
            name: `reasoning`, `analysis`, `starter` or `documents`.

        Returns:
            The word with its colon.
        """
        return _LABELS[self.language][name]

    def with_changes(self, **changes: Any) -> Layout:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)
