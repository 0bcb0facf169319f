"""What embedding models want in front of queries and passages, by model family.

Source: the model cards. A model that was trained with prefixes loses recall without them, and nothing says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WEB_SEARCH = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_REPRESENT = "Represent this sentence for searching relevant passages: "


class Prefixes(NamedTuple):
    """Text in front of what is embedded.

    Attributes:
        query: In front of a query.
        passage: In front of a passage.
    """

    query: str = ""
    passage: str = ""


# The first pattern that matches decides, so special cases stand before their family.
_FAMILIES: tuple[tuple[str, Prefixes], ...] = (
    (r"\be5-mistral|\be5-.*instruct", Prefixes(_WEB_SEARCH + " ")),
    (r"\be5-(small|base|large)", Prefixes("query: ", "passage: ")),
    (r"\bqwen3-embedding", Prefixes(_WEB_SEARCH)),
    (r"\bbge-(small|base|large)-zh", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    (r"\bbge-(small|base|large)", Prefixes(_REPRESENT)),
    (r"\barctic-embed-[ml]-v2", Prefixes("query: ")),
    (r"\barctic-embed", Prefixes(_REPRESENT)),
    (r"\bmxbai-embed-large", Prefixes(_REPRESENT)),
    (r"\bnomic-embed-text", Prefixes("search_query: ", "search_document: ")),
)


def known_prefixes(model: str) -> Prefixes:
    """Return the prefixes of a model's family.

    Args:
        model: Name of the model, with or without its organisation: `intfloat/e5-base-v2`.

    Returns:
        Its prefixes; empty ones for families that take none and for unknown models.
    """
    name = model.lower()
    return next((prefixes for pattern, prefixes in _FAMILIES if re.search(pattern, name)), Prefixes())
