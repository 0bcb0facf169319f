"""Chinese and Japanese text: telling it apart, and cutting it into character bigrams."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々〆"
_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(f"[{_CJK}]+")
_LETTER = re.compile(r"[^\W\d_]")

CJK_SHARE = 0.3
"""From this share of CJK characters among all letters on, a text counts as CJK."""


def has_cjk(text: str) -> bool:
    """Tell whether the text holds any Han, Hiragana or Katakana character.

    Args:
        text: Any text.

    Returns:
        True if at least one such character occurs. Hangul is not counted: Korean separates its words by spaces.
    """
    return _CHARACTER.search(text) is not None


def is_cjk_text(text: str) -> bool:
    """Tell whether the text is written in Chinese or Japanese, rather than merely naming something in it.

    Args:
        text: Any text.

    Returns:
        True if at least `CJK_SHARE` of its letters are Han, Hiragana or Katakana.
    """
    if not has_cjk(text):
        return False
    return len(_CHARACTER.findall(text)) >= CJK_SHARE * max(1, len(_LETTER.findall(text)))


def cjk_bigrams(text: str) -> Iterator[str]:
    """Cut every run of CJK characters into overlapping pairs.

    Args:
        text: Any text; everything outside CJK runs is passed over.

    Yields:
        Character pairs in order; a run of one character gives that character.
    """
    for match in _RUN.finditer(text):
        run = match.group()
        if len(run) == 1:
            yield run
        for start in range(len(run) - 1):
            yield run[start : start + 2]


def without_cjk(text: str) -> str:
    """Return the text with every run of CJK characters replaced by a space.

    Args:
        text: Any text.

    Returns:
        The rest of the text, whose words can be split at white space.
    """
    return _RUN.sub(" ", text)
