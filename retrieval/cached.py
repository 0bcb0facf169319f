"""Backends and readers with the cache in front: write-through, and one call for the same question at one time."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

from retrieval.base import Hit, Page, Reader, Search
from retrieval.cache import Cache, Kind, cache_key
from signatures.errors import DataError

_log = logging.getLogger(__name__)


class _LeaderGone(Exception):
    """The task whose call others waited for was cancelled; one of them has to call instead."""


_flights: dict[tuple[str, str, str], Future[Any]] = {}
_flights_lock = threading.Lock()


class _WriteThrough:
    """Shared by the cached search and reader: look up, join a call in flight, or call and store."""

    def __init__(self, cache: Cache, kind: Kind) -> None:
        self.cache = cache
        self.kind = kind
        self.hits = 0
        self.calls = 0

    async def fetch(self, key_parts: Mapping[str, Any], call: Callable[[], Awaitable[Any]]) -> tuple[Any, bool]:
        flight_key = (str(self.cache.path), self.kind, cache_key(key_parts))
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
            self.hits += 1
            return value, True
        try:
            value, cached = await self._lookup_or_call(key_parts, call)
        except BaseException as error:
            self._land(flight_key)
            mine.set_exception(error if isinstance(error, Exception) else _LeaderGone())
            raise
        self._land(flight_key)
        mine.set_result(value)
        return value, cached

    async def _lookup_or_call(
        self, key_parts: Mapping[str, Any], call: Callable[[], Awaitable[Any]]
    ) -> tuple[Any, bool]:
        value = self.cache.get(self.kind, key_parts)
        if value is not None:
            self.hits += 1
            return value, True
        self.calls += 1
        value = await call()
        try:
            self.cache.put(self.kind, key_parts, value)
        except DataError as error:
            # The answer is there and may have been paid for; only its reuse is lost.
            _log.warning("%s", error)
        return value, False

    def _land(self, flight_key: tuple[str, str, str]) -> None:
        with _flights_lock:
            _flights.pop(flight_key, None)


class CachedSearch:
    """A search backend with the cache in front of it.

    Args:
        inner: The backend.
        cache: Where its answers are kept.

    Attributes:
        hits: Searches answered without calling the backend (stored, or another task was asking the same just then).
        calls: Searches that called the backend.
    """

    def __init__(self, inner: Search, cache: Cache) -> None:
        self.inner = inner
        self.name = inner.name
        self._store = _WriteThrough(cache, "searches")

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
            SearchError: The backend failed; nothing is stored then.
        """

        async def call() -> list[dict[str, str]]:
            return [hit.to_dict() for hit in await self.inner.search(query, k)]

        parts = {"backend": self.inner.identity(), "query": query, "k": k}
        records, cached = await self._store.fetch(parts, call)
        return [Hit(**record) for record in records], cached

    def identity(self) -> str:
        """Return the backend's identity: the cache changes no answer."""
        return self.inner.identity()


class CachedReader:
    """A page reader with the cache in front of it.

    Args:
        inner: The reader.
        cache: Where its pages are kept.

    Attributes:
        hits: Pages given without calling the reader (stored, or another task was reading the same just then).
        calls: Pages that the reader was called for.
    """

    def __init__(self, inner: Reader, cache: Cache) -> None:
        self.inner = inner
        self.name = inner.name
        self._store = _WriteThrough(cache, "pages")

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
            ReadError: It could not be read; nothing is stored then.
        """

        async def call() -> dict[str, Any]:
            return (await self.inner.read(url)).to_dict()

        record, cached = await self._store.fetch({"reader": self.inner.identity(), "url": url}, call)
        return Page(**record), cached

    def identity(self) -> str:
        """Return the reader's identity: the cache changes no page."""
        return self.inner.identity()
