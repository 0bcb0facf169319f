"""The replies of retrieval servers (Search-R1, FlashRAG, ReCall) and how their documents become hits.

Sources: search_r1/search/*_server.py of PeterGriffinJin/Search-R1 and scripts/serving/retriever_serving.py of
Agent-RL/ReCall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from retrieval.backends.shape import text_field
from retrieval.base import Hit

SCHEME = "retriever://"
SNIPPET_CHARS = 300
TITLE_CHARS = 200


def split_reply(reply: Any, queries: int) -> list[list[Any]]:
    """Find the documents of each query in a reply.

    Taken are `{"result": …}` and the bare list, a list of documents for each query or, for one query, the documents
    themselves, and the pair (documents, scores).

    Args:
        reply: The parsed JSON.
        queries: How many queries were asked.

    Returns:
        The documents of each query, best first; another number of lists than queries when the server left some out.

    Raises:
        ValueError: It has none of these shapes.
    """
    found = reply.get("result") if isinstance(reply, dict) else reply
    if not isinstance(found, list):
        raise ValueError("there is no list of documents")
    if len(found) == 2 and isinstance(found[0], list) and _are_scores(found[1]):
        found = found[0]
    if not found:
        return [[]] if queries == 1 else []
    nested = [item for item in found if isinstance(item, list)]
    if nested and len(nested) == len(found):
        # One query without hits, and without scores for them.
        return [[]] if queries == 1 and not any(nested) else nested
    if nested or queries != 1:
        raise ValueError("it does not have one list of documents for each query")
    return [found]


def make_hits(documents: Iterable[Any], authority: str, site: str, k: int) -> list[Hit]:
    """Turn the documents of one query into hits.

    Args:
        documents: Documents, or `{"document": …, "score": …}`; a document is a text or has `contents` or `text`, and
            maybe `title`, `id` and `url`.
        authority: What stands for the server in the address of a document without one of its own.
        site: The hits' site.
        k: At most this many.

    Returns:
        Hits with their text, best first; a document that comes twice counts once.

    Raises:
        ValueError: There is something else among them, or none of them has a text.
    """
    hits: dict[tuple[str, str], Hit] = {}
    known: set[str] = set()
    empty = None
    for item in documents:
        document = item["document"] if isinstance(item, dict) and "document" in item else item
        if isinstance(document, str):
            document = {"contents": document}
        if not isinstance(document, dict):
            raise ValueError("there is a document that is neither a text nor an object")
        title, text = _title_and_text(document)
        if not text:
            empty = document
            continue
        url = _url(document, title, text, authority)
        if (url, text) in hits:
            continue
        if url in known and url.startswith(SCHEME):
            # Several passages under one id: each needs an address of its own.
            url = _url({}, title, text, authority)
        known.add(url)
        hits[url, text] = Hit(title=title, url=url, snippet=_cut(text, SNIPPET_CHARS), site=site, text=text)
    if empty is not None and not hits:
        fields = ", ".join(map(repr, empty)) or "nothing"
        raise ValueError(f"its documents have no `contents` and no `text`, only {fields:.200}")
    return list(hits.values())[:k]


def _are_scores(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_number(v) or _are_numbers(v) for v in value)


def _are_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_number, value))


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _title_and_text(document: dict[str, Any]) -> tuple[str, str]:
    title, text = _unquote(text_field(document, "title")), text_field(document, "text")
    contents = text_field(document, "contents") or text_field(document, "content")
    first, _, rest = contents.partition("\n")
    first, rest = _unquote(first), rest.strip()
    if not rest:
        return title or _cut(first, TITLE_CHARS), text or contents
    # Search-R1's BM25 server takes off all quotes, also those that belong to the title.
    if first.strip('"') == title.strip('"') or (not title and len(first) <= TITLE_CHARS):
        return first, text or rest
    return title or _cut(first, TITLE_CHARS), text or contents


def _unquote(title: str) -> str:
    title = title.strip()
    while len(title) > 1 and title[0] == title[-1] == '"':
        title = title[1:-1].strip()
    return title


def _url(document: dict[str, Any], title: str, text: str, authority: str) -> str:
    url = text_field(document, "url")
    if url:
        return url
    for name in ("id", "doc_id", "_id"):
        found = document.get(name)
        identifier = (
            str(found) if isinstance(found, int) and not isinstance(found, bool) else text_field(document, name)
        )
        if identifier:
            return f"{SCHEME}{authority}/{quote(identifier, safe='')}"
    digest = hashlib.sha256(f"{title}\n{text}".encode()).hexdigest()
    return f"{SCHEME}{authority}/{digest[:16]}"


def _cut(text: str, most: int) -> str:
    """Shorten a text to so many characters, at a word boundary where there is one."""
    if len(text) <= most:
        return text
    kept, gap, _ = text[: most + 1].rpartition(" ")
    return (kept if gap and len(kept) > most // 2 else text[:most]).rstrip()
