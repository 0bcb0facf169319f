"""Multiple-choice questions: the order of their choices, and how they are laid out in the prompt.

The layout is that of the paper's authors (the GPQA cell of their data notebook, data/data_pre_precess.ipynb): question,
` Choices:`, one line a choice, a line break at the end. Their order is not repeated, for they shuffled without a seed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from string import ascii_uppercase

_SHOWN = re.compile(r"^\(([A-Z])\) ", re.MULTILINE)


def letter(place: int) -> str:
    """Return the letter of a choice by its place from 0."""
    return ascii_uppercase[place]


def shuffled(count: int, record: str) -> tuple[int, ...]:
    """Return the order in which a record's choices are shown.

    It depends on the record's own id only, so a question looks the same in every run, subset and split.

    Args:
        count: How many choices there are.
        record: The record's id.

    Returns:
        For each place shown, the choice's place in the file, from 0.
    """
    return tuple(sorted(range(count), key=lambda place: hashlib.sha256(f"{record}/{place}".encode()).digest()))


def lay_out(question: str, choices: Sequence[str]) -> str:
    """Return a question with its choices as the authors' prompts show them.

    Args:
        question: The question alone.
        choices: Texts of the choices, in the order shown.

    Returns:
        The text of the question; unchanged if it shows these choices already.
    """
    if "(A) " in question and all(choice.strip() in question for choice in choices):
        return question
    lines = "\n".join(f"({letter(place)}) {choice}" for place, choice in enumerate(choices))
    return f"{question} Choices:\n{lines}\n"


def shown_choices(question: str) -> tuple[str, ...]:
    """Return the choices that a question's text shows.

    Args:
        question: A question laid out with lines `(A) ...`.

    Returns:
        Their texts in order; empty if the text shows none, or its letters do not run from A without a gap.
    """
    marks = list(_SHOWN.finditer(question))
    if not marks or "".join(mark.group(1) for mark in marks) != ascii_uppercase[: len(marks)]:
        return ()
    ends = [mark.start() for mark in marks[1:]] + [len(question)]
    return tuple(question[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True))
