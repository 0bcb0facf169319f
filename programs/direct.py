"""`direct`: the task template alone, no search."""

from __future__ import annotations

from typing import Any

from programs.base import Program
from programs.options import ChainOptions


class DirectReasoning(Program):
    """Answers from what the model knows (section 4.2, direct reasoning).

    Args:
        options: The options.
        **changes: Options to set on top, by name.
    """

    method = "direct"

    def __init__(self, options: ChainOptions | None = None, **changes: Any) -> None:
        super().__init__(options=options, **changes)
