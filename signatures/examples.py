"""The examples that fill the templates' example slots: one set a task kind and language, written by this project.

The appendix elides its examples ("Question: …"), so none of these is the paper's.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Literal

from signatures.errors import OptionError
from signatures.templates import Language, Task

ExampleKind = Literal["single_hop", "multi_hop", "multiple_choice", "math", "code"]
EXAMPLE_KINDS: tuple[ExampleKind, ...] = ("single_hop", "multi_hop", "multiple_choice", "math", "code")


@cache
def _examples() -> dict[str, dict[str, dict[str, str]]]:
    loaded: dict[str, dict[str, dict[str, str]]] = json.loads(
        (files("signatures") / "examples.json").read_text(encoding="utf-8")
    )
    return loaded


def example_slots(task: Task, language: Language = "en", kind: ExampleKind | None = None) -> dict[str, str]:
    """Return the values of `{example_question}`, `{example_need}`, `{example_query}` and `{example_url}`.

    Args:
        task: Task kind.
        language: `en` or `zh`.
        kind: Which example to show; by default that of the task, and the multi-hop one for open QA.

    Returns:
        Slot name to text.

    Raises:
        OptionError: The kind is unknown.
    """
    chosen = kind or ("multi_hop" if task == "open_qa" else task)
    examples = _examples()[language]
    if chosen not in examples:
        raise OptionError(f"Unknown example kind {chosen!r}; known kinds: {', '.join(EXAMPLE_KINDS)}.")
    return {f"example_{name}": text for name, text in examples[chosen].items()}
