"""Chinese and Japanese text: telling it apart, and cutting it into character bigrams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import add

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f々〆"
_CHARACTER = re.compile(f"[{_CJK}]")
_RUN = re.compile(f"[{_CJK}]+")
_PUNCTUATION = "、。「」『』（）【】《》〈〉！？：；，．“”‘’…—～·"
_OTHER_WORD = re.compile(rf"[^\s{_CJK}{_PUNCTUATION}]+")
_NO_WORDS = frozenset(["", " ", *_PUNCTUATION])
_LETTERS = re.compile(r"[^\W\d_]+")

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
    return _matched_length(_RUN, text) >= CJK_SHARE * max(1, _matched_length(_LETTERS, text))


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


def cjk_words(text: str) -> set[str]:
    """Return what stands for words in Chinese or Japanese text.

    Args:
        text: Any text, lower-cased and without ASCII punctuation if that is not to matter.

    Returns:
        The bigrams of its CJK runs, and its other words, CJK punctuation left out.
    """
    words: set[str] = set()
    runs = _RUN.findall(text)
    for run in runs:
        if len(run) == 1:
            words.add(run)
        else:
            words.update(map(add, run, run[1:]))
    # Between two runs there mostly is a single punctuation mark, and looking for words there is the dear part.
    for between in _RUN.split(text) if runs else [text]:
        if between not in _NO_WORDS:
            words.update(_OTHER_WORD.findall(between))
    return words


def _matched_length(pattern: re.Pattern[str], text: str) -> int:
    return sum(match.end() - match.start() for match in pattern.finditer(text))
