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
    """

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    site: str = ""

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
