"""One kind of answer, in front of what gives it: found in the cache, stored there, or failed as it failed before."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from retrieval.cache import Cache, Entry, Kind, cache_key
from retrieval.caching.replay import asker, failure_parts, missed
from signatures.errors import DataError

Parts = Mapping[str, Any]

_log = logging.getLogger(__name__)
_complained: set[str] = set()


class Answers:
    """Looks up and stores one kind of answer under a cache's policy.

    Outside replays a cache that cannot be read or written costs its use and one line in the log, never an answer.

    Args:
        cache: The cache.
        kind: What is kept.
        dump: Returns an error as plain fields if it is one that a replay must repeat, else None.
        revive: Makes the error from those fields again.
    """

    def __init__(
        self,
        cache: Cache,
        kind: Kind,
        dump: Callable[[BaseException], dict[str, Any] | None],
        revive: Callable[[dict[str, Any]], Exception],
    ) -> None:
        self.cache = cache
        self.kind = kind
        self._dump = dump
        self._revive = revive

    @property
    def replay(self) -> bool:
        """Whether only the cache may answer."""
        return self.cache.policy.replay

    async def find(self, parts: Parts) -> Any | None:
        """Look an answer up.

        Args:
            parts: Its key.

        Returns:
            The answer; None if there is none or it is too old.

        Raises:
            Exception: In a replay: the failure that was recorded for whoever asks now.
            DataError: In a replay: the cache cannot be read.
        """
        if self.replay:
            return self._find_recorded(parts)
        try:
            found = self.cache.entry(self.kind, cache_key(parts))
        except DataError as error:
            complain(error)
            return None
        if found is None or self._too_old(found):
            return None
        await self._forget_failure(parts)
        return found.value

    async def store(self, parts: Parts, value: Any, provider: str = "", about: str = "") -> Any:
        """Store an answer unless another process was faster; returns the one that is stored."""
        try:
            kept = await self.cache.off_loop(self.cache.keep, self.kind, parts, value, provider, about, self._max_age_s)
        except DataError as error:
            # The answer is there and may have been paid for; only its reuse is lost.
            complain(error)
            return value
        await self._forget_failure(parts)
        return kept

    async def renew(self, parts: Parts, value: Any, provider: str = "", about: str = "") -> None:
        """Store what is true now, unless just that is there."""
        try:
            found = self.cache.entry(self.kind, cache_key(parts))
            if found is None or found.value != value:
                await self.cache.off_loop(self.cache.put, self.kind, parts, value, provider, about)
        except DataError as error:
            complain(error)
        await self._forget_failure(parts)

    async def note_failure(self, parts: Parts, error: BaseException, provider: str = "") -> None:
        """Record that a call failed, so that a replay fails there too; live runs never see it."""
        fields = None if self.replay else self._dump(error)
        if fields is None:
            return
        try:
            for name in dict.fromkeys((asker(), "")):
                await self.cache.off_loop(
                    self.cache.put, "failures", failure_parts(self.kind, parts, name), fields, provider
                )
        except DataError as complaint:
            complain(complaint)

    def miss(self, what: str, way_out: str = "", provider: str = "") -> Exception:
        """Return the error of a replay that finds nothing; it is counted."""
        return missed(self.cache.path, self.kind, what, way_out, provider=provider)

    def _find_recorded(self, parts: Parts) -> Any | None:
        name = asker()
        if name and (failure := self._failure(parts, name)) is not None:
            raise self._revive(failure.value)
        found = self.cache.entry(self.kind, cache_key(parts))
        failure = self._failure(parts, "")
        # Without a name for who asks, what happened last is what the last run saw.
        if failure is not None and (found is None or (not name and failure.created > found.created)):
            raise self._revive(failure.value)
        return None if found is None else found.value

    def _failure(self, parts: Parts, name: str) -> Entry | None:
        return self.cache.entry("failures", cache_key(failure_parts(self.kind, parts, name)))

    async def _forget_failure(self, parts: Parts) -> None:
        """Whoever failed here before was answered now: a question that was tried again has one story to replay."""
        name = asker()
        if not name:
            return
        try:
            if self._failure(parts, name) is not None:
                await self.cache.off_loop(self.cache.drop, "failures", failure_parts(self.kind, parts, name))
        except DataError as error:
            complain(error)

    @property
    def _max_age_s(self) -> float | None:
        return self.cache.policy.max_age_s if self.kind in ("searches", "pages") else None

    def _too_old(self, entry: Entry) -> bool:
        return self._max_age_s is not None and time.time() - entry.created > self._max_age_s


def complain(error: DataError) -> None:
    """Log a complaint of the cache once in this process."""
    if str(error) not in _complained:
        _complained.add(str(error))
        _log.warning("%s", error)
