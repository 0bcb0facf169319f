"""The interfaces of retrieval: what a search backend and a page reader must offer.

A backend or reader is one file plus one line in `retrieval/registry.py`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Hit:
    """One search result.

    Attributes:
        title: Title of the page, tags removed.
        url: Address to read it from; local documents are `corpus://NAME/ID`.
        snippet: The text around the match, tags removed.
        date: Publication date as the provider gives it, or empty.
        site: Name of the site, or empty.
        text: The whole passage or page where the backend itself brings it, or empty; programs then use it and do not
            read the address.
    """

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    site: str = ""
    text: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the hit as a plain dict with the same keys."""
        return asdict(self)


@dataclass(frozen=True)
class Page:
    """A page that was read.

    Attributes:
        url: The address asked for.
        text: Readable text of the page (characters, not bytes).
        title: Title, or empty.
        status: HTTP status; 200 for local documents.
        meta: Anything else worth keeping (final URL, content type).
    """

    url: str
    text: str
    title: str = ""
    status: int = 200
    meta: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the page as a plain dict with the same keys."""
        return asdict(self)


@dataclass(frozen=True)
class BackendFailure:
    """A backend that failed while others answered.

    Attributes:
        provider: Its name.
        reason: Why, for people; holds no key.
    """

    provider: str
    reason: str


@dataclass(frozen=True)
class SearchReport:
    """What a search gave, and what became of the call.

    Attributes:
        hits: The hits, best first.
        cached: True when no backend was called.
        failures: Backends whose hits are missing from it.
    """

    hits: list[Hit]
    cached: bool = False
    failures: tuple[BackendFailure, ...] = ()


@runtime_checkable
class Search(Protocol):
    """A search backend."""

    name: str

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search.

        Args:
            query: What to look for.
            k: At most this many hits, ranks from the best.

        Returns:
            The hits, possibly none.

        Raises:
            SearchError: The backend failed; an honest empty result is not a failure.
        """
        ...

    def identity(self) -> str:
        """Return what changes this backend's answers (provider, market, corpus hash, ...) as one string."""
        ...


@runtime_checkable
class Reader(Protocol):
    """A page reader."""

    name: str

    async def read(self, url: str) -> Page:
        """Read one page.

        Args:
            url: Its address.

        Returns:
            The page with its readable text, never an error text.

        Raises:
            ReadError: It could not be read, with the reason.
        """
        ...

    def identity(self) -> str:
        """Return what changes this reader's answers as one string."""
        ...


async def report_search(search: Search, query: str, k: int) -> SearchReport:
    """Search, and tell as much about the call as the backend can.

    Args:
        search: The backend; one that wraps or joins others may offer `search_with_report(query, k)`, which gives a
            `SearchReport`, or `search_with_origin(query, k)`, which gives (hits, cached).
        query: What to look for.
        k: At most this many hits.

    Returns:
        Hits, origin and failures.

    Raises:
        SearchError: The backend failed.
    """
    with_report = getattr(search, "search_with_report", None)
    if with_report is not None:
        report: SearchReport = await with_report(query, k)
        return report
    with_origin = getattr(search, "search_with_origin", None)
    if with_origin is not None:
        hits, cached = await with_origin(query, k)
        return SearchReport(hits, cached)
    return SearchReport(await search.search(query, k))
