"""What reading a search provider's reply takes: fields of any type, lists that may be missing, hits worth keeping.

A provider's reply is untrusted: whatever it holds, reading it ends in hits or in a `SearchError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from retrieval.base import Hit
from signatures.errors import SearchError

Record = Mapping[str, Any]


def describe_query(query: str) -> str:
    """Return how errors name a search: `the query '…'`, at most 200 characters."""
    return f"the query {query!r:.200}"


def shape_error(provider: str, what: str, shape: str) -> SearchError:
    """Return the error for a reply that is JSON but not what the provider documents.

    Args:
        provider: Name of the backend.
        what: What was asked for; see `describe_query`.
        shape: Whose shape it should have: `Bing v7`.
    """
    return SearchError(
        f"{provider}: {what} failed: the reply does not have the shape of {shape}.", provider=provider, status=200
    )


def text_field(record: Record, name: str) -> str:
    """Return a field's text.

    Args:
        record: One JSON object.
        name: The field.

    Returns:
        The text without white space around it and without half surrogate pairs, which no file can hold; empty if the
        field is missing or no text.
    """
    value = record.get(name)
    return value.encode("utf-8", "replace").decode().strip() if isinstance(value, str) else ""


def object_field(record: Record, name: str) -> Record:
    """Return a field that is an object; an empty one if it is missing or something else."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def day(date: str) -> str:
    """Return the day of an ISO date with a time, `2024-05-01T10:00:00Z`; any other text stays."""
    return date.partition("T")[0] if date[:4].isdigit() and date[4:5] == "-" else date


def records(value: Any) -> list[Record] | None:
    """Return a list of JSON objects.

    Args:
        value: What the reply holds there; None counts as an empty list.

    Returns:
        The objects, or None if it is no list or holds anything else.
    """
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        return None
    return value


def web_hits(hits: Iterable[Hit], k: int) -> list[Hit]:
    """Keep the hits that can be read from the web.

    Args:
        hits: Hits, ranks from the best.
        k: At most this many are kept.

    Returns:
        Those with an http(s) address, each address once, in their order.
    """
    kept: dict[str, Hit] = {}
    for hit in hits:
        if len(kept) >= k:
            break
        if hit.url.lower().startswith(("http://", "https://")):
            kept.setdefault(hit.url, hit)
    return list(kept.values())


def cut_query(query: str, characters: int, words: int | None = None) -> str:
    """Shorten a query to what a provider takes.

    Args:
        query: The query.
        characters: Most characters.
        words: Most words separated by white space, or None for any number.

    Returns:
        Its beginning, cut between words where that is possible.
    """
    query = query.strip()
    if words is not None and len(parts := query.split()) > words:
        query = " ".join(parts[:words])
    if len(query) <= characters:
        return query
    start = query[:characters]
    if query[characters].isspace() or start[-1:].isspace():
        return start.rstrip()
    shorter = start.rsplit(None, 1)
    return shorter[0] if len(shorter) > 1 else start
