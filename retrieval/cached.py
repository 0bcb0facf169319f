"""Backends and readers with the cache in front: write-through, and one call for the same question at one time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import fields
from typing import Any, TypeVar

from retrieval.base import Hit, Page, Reader, Search
from retrieval.cache import Cache, Kind, cache_key
from retrieval.caching.answers import Answers
from retrieval.caching.keys import shown
from signatures.errors import ReadError, RetrievalError, SearchError

Record = TypeVar("Record", Hit, Page)


class _LeaderGone(Exception):
    """The task whose call others waited for was cancelled; one of them has to call instead."""


_flights: dict[tuple[str, str, str], Future[Any]] = {}
_flights_lock = threading.Lock()


class _WriteThrough:
    """Shared by the cached search and reader: look up, join a call in flight, or call and store."""

    def __init__(self, cache: Cache, kind: Kind, provider: str) -> None:
        self.answers = Answers(cache, kind, dump_failure, revive_failure)
        self.provider = provider
        self.hits = 0
        self.calls = 0

    async def fetch(
        self, key_parts: Mapping[str, Any], what: str, call: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, bool]:
        flight_key = (str(self.answers.cache.path), self.answers.kind, cache_key(key_parts))
        while True:
            with _flights_lock:
                flight = _flights.get(flight_key)
                if flight is None:
                    mine: Future[Any] = Future()
                    # Marked as running so that a waiter that is cancelled cannot cancel it for the others.
                    mine.set_running_or_notify_cancel()
                    _flights[flight_key] = mine
                    break
            try:
                value = await asyncio.wrap_future(flight)
            except _LeaderGone:
                continue
            except RetrievalError as error:
                # Whoever else waited failed here as well, and a replay asks for each of them.
                await self.answers.note_failure(key_parts, error, self.provider)
                raise
            self.hits += 1
            return value, True
        try:
            value, cached = await self._lookup_or_call(key_parts, what, call)
        except BaseException as error:
            self._land(flight_key)
            mine.set_exception(error if isinstance(error, Exception) else _LeaderGone())
            raise
        self._land(flight_key)
        mine.set_result(value)
        return value, cached

    async def _lookup_or_call(
        self, key_parts: Mapping[str, Any], what: str, call: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, bool]:
        value = await self.answers.find(key_parts)
        if value is not None:
            self.hits += 1
            return value, True
        if self.answers.replay:
            raise self.answers.miss(what, provider=self.provider)
        self.calls += 1
        try:
            value = await call()
        except RetrievalError as error:
            await self.answers.note_failure(key_parts, error, self.provider)
            raise
        return await self.answers.store(key_parts, value, self.provider), False

    def _land(self, flight_key: tuple[str, str, str]) -> None:
        with _flights_lock:
            _flights.pop(flight_key, None)


class CachedSearch:
    """A search backend with the cache in front of it.

    Args:
        inner: The backend.
        cache: Where its answers are kept; its policy says whether they age and whether this is a replay.

    Attributes:
        hits: Searches answered without calling the backend (stored, or another task was asking the same just then).
        calls: Searches that called the backend.
    """

    def __init__(self, inner: Search, cache: Cache) -> None:
        self.inner = inner
        self.name = inner.name
        self._store = _WriteThrough(cache, "searches", inner.name)

    @property
    def hits(self) -> int:
        """Searches answered without calling the backend."""
        return self._store.hits

    @property
    def calls(self) -> int:
        """Searches that called the backend."""
        return self._store.calls

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        return (await self.search_with_origin(query, k))[0]

    async def search_with_origin(self, query: str, k: int) -> tuple[list[Hit], bool]:
        """Search, and tell whether the backend was spared.

        Args:
            query: What to look for.
            k: At most this many hits.

        Returns:
            The hits, and True if they came from the cache or from a call already in flight.

        Raises:
            SearchError: The backend failed, or it had failed in the run that is replayed.
            ReplayMiss: In a replay: the cache does not hold this search.
        """

        async def call() -> list[dict[str, Any]]:
            return [hit.to_dict() for hit in await self.inner.search(query, k)]

        parts = {"backend": self.inner.identity(), "query": query, "k": k}
        what = f"the search {query!r:.200} for {k} hits ({shown(self.inner.identity())})"
        records, cached = await self._store.fetch(parts, what, call)
        return [record_to(Hit, record) for record in records], cached

    def identity(self) -> str:
        """Return the backend's identity: the cache changes no answer."""
        return self.inner.identity()


class CachedReader:
    """A page reader with the cache in front of it.

    Args:
        inner: The reader.
        cache: Where its pages are kept; its policy says whether they age and whether this is a replay.

    Attributes:
        hits: Pages given without calling the reader (stored, or another task was reading the same just then).
        calls: Pages that the reader was called for.
    """

    def __init__(self, inner: Reader, cache: Cache) -> None:
        self.inner = inner
        self.name = inner.name
        self._store = _WriteThrough(cache, "pages", inner.name)

    @property
    def hits(self) -> int:
        """Pages given without calling the reader."""
        return self._store.hits

    @property
    def calls(self) -> int:
        """Pages that the reader was called for."""
        return self._store.calls

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`."""
        return (await self.read_with_origin(url))[0]

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        """Read a page, and tell whether the reader was spared.

        Args:
            url: Its address.

        Returns:
            The page, and True if it came from the cache or from a call already in flight.

        Raises:
            ReadError: It could not be read, or could not in the run that is replayed.
            ReplayMiss: In a replay: the cache holds neither the page nor why it failed.
        """

        async def call() -> dict[str, Any]:
            return (await self.inner.read(url)).to_dict()

        parts = {"reader": self.inner.identity(), "url": url}
        record, cached = await self._store.fetch(parts, f"the page {url!r:.300} ({shown(self.inner.identity())})", call)
        return record_to(Page, record), cached

    def identity(self) -> str:
        """Return the reader's identity: the cache changes no page."""
        return self.inner.identity()


def record_to(kind: type[Record], record: Mapping[str, Any]) -> Record:
    """Make a hit or page from a stored record, whichever version of this project stored it.

    Args:
        kind: `Hit` or `Page`.
        record: Its fields; unknown ones are passed over, missing ones take their defaults.

    Returns:
        The hit or page.
    """
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in record.items() if name in known})


def dump_failure(error: BaseException) -> dict[str, Any] | None:
    """Return a failed search or read as plain fields; None for errors that are not the provider's."""
    if not isinstance(error, SearchError | ReadError):
        return None
    plain = {"message": str(error), "provider": error.provider, "status": error.status, "body": error.body}
    return {**plain, "reason": error.reason} if isinstance(error, ReadError) else plain


def revive_failure(recorded: Mapping[str, Any]) -> RetrievalError:
    """Make the error of a recorded failure.

    Args:
        recorded: Made by `dump_failure`.

    Returns:
        A `ReadError` if it has a reason, else a `SearchError`.
    """
    rest = {"provider": recorded["provider"], "status": recorded["status"], "body": recorded["body"]}
    if "reason" in recorded:
        return ReadError(recorded["message"], reason=recorded["reason"], **rest)
    return SearchError(recorded["message"], **rest)
