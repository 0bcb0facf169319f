"""Keeping the benchmark itself out of what is found: hits and pages from places where its copies are known to lie."""

from __future__ import annotations

from dataclasses import dataclass

from metrics.contamination import MIRROR_RULES, benchmark_mirror
from retrieval.base import Hit, Page, Reader, Search, SearchReport, report_search
from retrieval.fused import reader_beside
from signatures.errors import ReadError, SearchError

SPARE_HITS = 5
"""So many hits more are asked for, besides those removed, when a search is asked again."""


@dataclass(frozen=True)
class BlockedReport(SearchReport):
    """A search from which hits were removed.

    Attributes:
        removed: Addresses of the hits removed, best first.
    """

    removed: tuple[str, ...] = ()


class BlockBenchmarkHosts:
    """A search backend without hits from benchmark mirrors (see `metrics.benchmark_hosts`).

    When hits had to be removed from a full result, the backend is asked once more for as many as are missing and a few:
    asking for more in the first place would cost some providers' users double, each time. If that fails, what is left
    of the first result counts.

    Args:
        inner: The backend, with or without a cache in front.
    """

    def __init__(self, inner: Search) -> None:
        self.inner = inner
        self.name = inner.name

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        return (await self.search_with_report(query, k)).hits

    async def search_with_report(self, query: str, k: int) -> BlockedReport:
        """Search, and tell which hits were removed.

        Args:
            query: What to look for.
            k: At most this many hits.

        Returns:
            Hits, origin and failures as the backend reports them, and the addresses removed.

        Raises:
            SearchError: The backend failed.
        """
        report = await report_search(self.inner, query, k)
        hits, removed = _sort_out(report.hits[:k])
        if removed and len(report.hits) >= k:
            try:
                more = await report_search(self.inner, query, k + len(removed) + SPARE_HITS)
            except SearchError:
                return BlockedReport(hits, report.cached, report.failures, removed)
            hits, removed = _sort_out(more.hits)
            report = SearchReport(hits, report.cached and more.cached, more.failures)
        return BlockedReport(hits[:k], report.cached, report.failures, removed)

    def identity(self) -> str:
        """Return the backend's identity and what is blocked."""
        return f"unblocked:{MIRROR_RULES}({self.inner.identity()})"

    def reader(self) -> Reader:
        """Return the reader of what is found, which refuses the same places."""
        return BlockBenchmarkPages(reader_beside(self.inner))


class BlockBenchmarkPages:
    """A page reader that refuses benchmark mirrors, also where another address redirects to one.

    Args:
        inner: The reader, with or without a cache in front.
    """

    def __init__(self, inner: Reader) -> None:
        self.inner = inner
        self.name = inner.name

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`."""
        return (await self.read_with_origin(url))[0]

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        """Read a page, and tell whether its reader was spared by a cache.

        Args:
            url: Its address.

        Returns:
            The page, and True if it came from a cache.

        Raises:
            ReadError: It could not be read, or it is a benchmark mirror (reason `blocked`).
        """
        self._refuse(url, url)
        with_origin = getattr(self.inner, "read_with_origin", None)
        page, cached = await with_origin(url) if with_origin is not None else (await self.inner.read(url), False)
        self._refuse(url, str(page.meta.get("final_url") or url))
        return page, cached

    def identity(self) -> str:
        """Return the reader's identity and what is blocked."""
        return f"unblocked:{MIRROR_RULES}({self.inner.identity()})"

    def _refuse(self, url: str, place: str) -> None:
        if what := benchmark_mirror(place):
            leads = "" if place == url else f", which leads to {place!r:.300},"
            raise ReadError(
                f"{self.name}: the page {url!r:.300}{leads} was not read: it is a {what}, and benchmark hosts are "
                "blocked in this run.",
                reason="blocked",
                provider=self.name,
            )


def _sort_out(hits: list[Hit]) -> tuple[list[Hit], tuple[str, ...]]:
    """Return the hits that may stay, and the addresses of the others."""
    blocked = tuple(hit.url for hit in hits if benchmark_mirror(hit.url))
    return [hit for hit in hits if hit.url not in blocked], blocked
