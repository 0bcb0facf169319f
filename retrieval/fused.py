"""Several search backends as one: all are asked at once, and their hits are fused by rank.

Source: reciprocal rank fusion, Cormack, Clarke and Büttcher, SIGIR 2009.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from retrieval.base import BackendFailure, Hit, Reader, Search, SearchReport, report_search
from retrieval.canonical_url import canonical_url
from retrieval.rank_fusion import RANK_CONSTANT, reciprocal_ranks
from signatures.errors import OptionError, SearchError, SearchO1Error


class FusedSearch:
    """Searches several backends and fuses what they find.

    A backend that fails is left out as long as another answers; `search_with_report` names it. The result of such a
    search is not whole, so caches belong in front of the single backends.

    Args:
        searches: The backends; of hits that are the same page, and of equal ranks, the first backend's comes first.
        rank_constant: Damps the weight of the first ranks: a hit of rank r counts 1 / (rank_constant + r).

    Raises:
        OptionError: There is no backend, or the constant is negative.
    """

    def __init__(self, searches: Sequence[Search], rank_constant: int = RANK_CONSTANT) -> None:
        if not searches:
            raise OptionError("A fused search needs at least one search backend.")
        if rank_constant < 0:
            raise OptionError(f"rank_constant must be at least 0, not {rank_constant}.")
        self.searches = tuple(searches)
        self.rank_constant = rank_constant
        self.name = "+".join(search.name for search in self.searches)

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        return (await self.search_with_report(query, k)).hits

    async def search_with_report(self, query: str, k: int) -> SearchReport:
        """Search, and tell which backends failed.

        Args:
            query: What to look for.
            k: At most this many hits; each backend is asked for as many.

        Returns:
            The fused hits, whether every backend was spared by its cache, and the failures.

        Raises:
            SearchError: Every backend failed; the text gives each one's reason.
        """
        answers = await asyncio.gather(
            *(report_search(search, query, k) for search in self.searches), return_exceptions=True
        )
        reports: list[SearchReport] = []
        failures: list[BackendFailure] = []
        for search, answer in zip(self.searches, answers, strict=True):
            if isinstance(answer, BaseException):
                failures.append(_failure(search.name, answer))
            else:
                reports.append(answer)
                failures.extend(answer.failures)
        if not reports:
            reasons = " ".join(failure.reason for failure in failures)
            text = f"{self.name}: the query {query!r:.200} failed in every backend. {reasons}"
            raise SearchError(text, provider=self.name)
        hits = fuse([report.hits for report in reports], self.rank_constant)[:k]
        return SearchReport(hits, not failures and all(report.cached for report in reports), tuple(failures))

    def identity(self) -> str:
        """Return the backends' identities and the constant."""
        return f"fused:{self.rank_constant}({'|'.join(search.identity() for search in self.searches)})"

    def reader(self, default: Reader | None = None) -> Reader:
        """Return the reader of what is found.

        Args:
            default: Reader of everything but what a backend brings a reader for; by default a `WebReader`.

        Returns:
            A `RoutedReader` that gives each backend's own documents (`corpus://…`) to that backend's reader.
        """
        return reader_beside(self, default)


def reader_beside(search: Search, default: Reader | None = None) -> Reader:
    """Return the reader of what a search finds.

    Args:
        search: One backend or several, with or without a cache in front.
        default: Reader of everything but what a backend brings a reader for; by default a `WebReader`.

    Returns:
        The default alone if no backend brings a reader, else a `RoutedReader` that gives each backend's own documents
        (`corpus://…`) to that backend's reader.
    """
    if default is None:
        from retrieval.readers.web import WebReader

        default = WebReader()
    searches = search.searches if isinstance(search, FusedSearch) else (search,)
    own = [reader for reader in map(_own_reader, searches) if reader is not None]
    if not own:
        return default
    from retrieval.readers.routed import RoutedReader

    # Such a reader serves the scheme it is named after.
    return RoutedReader([(reader.name, reader) for reader in own], default)


def fuse(rankings: Sequence[Sequence[Hit]], rank_constant: int = RANK_CONSTANT) -> list[Hit]:
    """Fuse rankings by reciprocal rank.

    Args:
        rankings: Hits of each backend, best first.
        rank_constant: A hit of rank r (from 1) counts 1 / (rank_constant + r), once a ranking.

    Returns:
        One hit for each page (by `canonical_url`), best first; equal scores in the order of rankings and ranks.
    """
    keys = [[canonical_url(hit.url) for hit in ranking] for ranking in rankings]
    same: dict[str, list[Hit]] = {}
    for ranking, ranked in zip(rankings, keys, strict=True):
        for hit, key in zip(ranking, ranked, strict=True):
            same.setdefault(key, []).append(hit)
    scores = reciprocal_ranks(keys, rank_constant)
    return [_merge(same[key]) for key in sorted(same, key=lambda key: -scores[key])]


def _merge(hits: Sequence[Hit]) -> Hit:
    """Make one hit of several of the same page.

    The first that has a title, date or site gives it, the longest snippet wins, and different texts (passages of one
    page) are put together.
    """

    def first(name: str) -> str:
        return next((value for hit in hits if (value := str(getattr(hit, name))).strip()), "")

    texts: list[str] = []
    for text in (hit.text.strip() for hit in hits):
        if text and not any(text in known for known in texts):
            texts.append(text)
    return replace(
        hits[0],
        title=first("title"),
        snippet=max((hit.snippet for hit in hits), key=len),
        date=first("date"),
        site=first("site"),
        text="\n\n".join(texts),
    )


def _own_reader(search: Search | None) -> Reader | None:
    """Return the reader that comes with a backend, also with one behind a cache; None if there is none."""
    while search is not None:
        make = getattr(search, "reader", None)
        if callable(make):
            reader: Reader = make()
            return reader
        search = getattr(search, "inner", None)
    return None


def _failure(name: str, error: BaseException) -> BackendFailure:
    if isinstance(error, SearchError):
        return BackendFailure(name, str(error))
    if isinstance(error, SearchO1Error) or not isinstance(error, Exception):
        # Not this backend's failure but a wrong option, a broken cache, a replay that misses something, an interrupt.
        raise error
    # The text of a foreign error may hold anything, a key too.
    return BackendFailure(name, f"{name}: the search failed with {type(error).__name__}.")
