"""One spelling of a question, by which the same question is known again in another file.

Ids tell questions apart inside one file; between files only the text does, and files differ in case, width of
characters, punctuation, white space and the order of choices.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

from runs.benchmarks.choices import shown_choices

_MARK = re.compile(r"[^\w\s]|_")
_FIRST_CHOICE = re.compile(r"^\(A\) ", re.MULTILINE)
_KEY_CHARS = 16


def normalised_question(text: str) -> str:
    """Fold a question's text.

    Unicode is NFKC, letters are lower-case, punctuation is dropped and white space folded; the lines `(A) ...` of a
    choice question lose their letters and are sorted. Signs that make a number or a formula what it is stay: those of
    mathematics (`+`, `=`, `<`), and any that stands between two characters of which one is a digit (`3.5`, `x-1`).

    Args:
        text: The question as asked, with its choices.

    Returns:
        The folded text; of a text that holds nothing but punctuation the text itself, white space folded.
    """
    choices = shown_choices(text)
    if not choices:
        return _folded(text)
    first = _FIRST_CHOICE.search(text)
    stem = text[: first.start()] if first is not None else ""
    return " | ".join([_folded(stem), *sorted(_folded(choice) for choice in choices)])


def question_key(text: str) -> str:
    """Return the first 16 hex digits of the SHA-256 of a question's folded text.

    Args:
        text: The question as asked.

    Returns:
        The key under which a compiled program says which questions it has learned from.
    """
    return hashlib.sha256(normalised_question(text).encode("utf-8", "replace")).hexdigest()[:_KEY_CHARS]


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).lower()
    kept = " ".join(_MARK.sub(_mark, plain).split())
    return kept or " ".join(plain.split())


def _mark(found: re.Match[str]) -> str:
    sign, whole = found.group(), found.string
    if unicodedata.category(sign) == "Sm":
        return sign
    around = whole[max(0, found.start() - 1) : found.start()] + whole[found.end() : found.end() + 1]
    return sign if len(around) == 2 and around.isalnum() and not around.isalpha() else " "
