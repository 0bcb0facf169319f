"""The kinds of task that scorers judge, their short names, and the number that stands for each.

Source: the headline of each kind is that of the paper's Tables 1 and 3 (arXiv 2501.05366).
"""

from __future__ import annotations

from signatures.errors import OptionError

HEADLINE = {"open_qa": "em", "multiple_choice": "em", "math": "math_equal", "code": "pass@1"}
"""Name of the headline metric by task kind, in both families."""

_SHORT_NAMES = {"qa": "open_qa", "choice": "multiple_choice", "multi_choice": "multiple_choice"}


def task_kind(name: str) -> str:
    """Return the task kind that a name stands for.

    Args:
        name: A task kind (`open_qa`, `multiple_choice`, `math`, `code`) or its short name (`qa`, `choice`).

    Returns:
        The task kind, a key of `HEADLINE`.

    Raises:
        OptionError: No kind has this name.
    """
    kind = _SHORT_NAMES.get(name, name)
    if kind not in HEADLINE:
        known = ", ".join([*HEADLINE, *_SHORT_NAMES])
        raise OptionError(f"no scorer for task {name!r}; tasks with a scorer: {known}")
    return kind


def compared_kind(name: str) -> str:
    """Return the task kind that a name stands for, if its answers are compared as text.

    Args:
        name: As for `task_kind`.

    Returns:
        `open_qa`, `multiple_choice` or `math`.

    Raises:
        OptionError: No kind has this name, or it is code.
    """
    kind = task_kind(name)
    if kind == "code":
        raise OptionError(
            "code answers are run, not compared: score them with metrics.code; others are qa, choice, math"
        )
    return kind
