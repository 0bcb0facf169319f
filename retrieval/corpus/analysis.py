"""How documents and queries become index terms: English stems, and bigrams of Chinese and Japanese characters."""

from __future__ import annotations

from functools import cache
from typing import Any

import tantivy

from retrieval.cjk import cjk_bigrams, without_cjk

ANALYSIS_VERSION = 1
"""Raised whenever the same documents and query could give other hits: terms, fields, weights or ranking changed."""

ENGLISH = "english_stems"
"""Name under which the analyser of titles and texts is registered with an index."""

LONGEST_TERM = 80
"""Longer terms, in bytes, are noise and dropped."""


def index_analyzer() -> Any:
    """Return Tantivy's analyser for titles and texts: words, lower case, accents folded, English stems."""
    return _analyzer(stopwords=False)


def clean_text(text: str) -> str:
    """Replace what UTF-8 cannot hold (lone surrogates), since the index refuses it.

    Args:
        text: Any string.

    Returns:
        The text, with a question mark for each such character.
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def english_terms(text: str) -> list[str]:
    """Return the stems of a text in order.

    Args:
        text: Any text; CJK runs are left out, since their bigrams are terms of their own.

    Returns:
        Terms as they lie in the index.
    """
    return list(_analyzer(stopwords=False).analyze(without_cjk(clean_text(text))))


def query_terms(query: str) -> list[str]:
    """Return the distinct stems of a question, without English stop words unless there is nothing else.

    Args:
        query: A question or key words in natural language; nothing in it is query syntax.

    Returns:
        Terms in order of first occurrence.
    """
    plain = without_cjk(clean_text(query))
    return list(dict.fromkeys(_analyzer(stopwords=True).analyze(plain) or _analyzer(stopwords=False).analyze(plain)))


def cjk_terms(text: str) -> list[str]:
    """Return the distinct character bigrams of the CJK runs in a text.

    Args:
        text: Any text.

    Returns:
        Bigrams in order of first occurrence.
    """
    return list(dict.fromkeys(cjk_bigrams(text)))


@cache
def _analyzer(stopwords: bool) -> Any:
    builder = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(LONGEST_TERM))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )
    if stopwords:
        builder = builder.filter(tantivy.Filter.stopword("english"))
    return builder.filter(tantivy.Filter.stemmer("english")).build()
