"""Budgets: how many candidates an optimizer may try."""

from __future__ import annotations

from dataclasses import dataclass

from signatures.errors import OptionError

WORDS = {"light": 6, "medium": 12, "heavy": 18}
"""Candidates by word; the numbers are those of DSPy's own `auto` settings."""

_DIGITS = 5


@dataclass(frozen=True)
class Budget:
    """A budget.

    Attributes:
        name: As it was given.
        candidates: How many candidates may be tried on the validation questions.
    """

    name: str
    candidates: int


def parse_budget(given: str | int) -> Budget:
    """Read a budget.

    Args:
        given: `light`, `medium`, `heavy`, or a number of candidates.

    Returns:
        The budget.

    Raises:
        OptionError: It is neither.
    """
    text = str(given).strip().lower()
    if text in WORDS:
        return Budget(text, WORDS[text])
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) >= 1:
        return Budget(text, int(text))
    listed = ", ".join(f"{word} ({number})" for word, number in WORDS.items())
    raise OptionError(f"Budget {text[:20]!r}: give {listed}, or a number of candidates from 1 to {10**_DIGITS - 1:,}.")
