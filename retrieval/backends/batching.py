"""Questions asked at nearly the same moment, put to a server in one request."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from retrieval.base import Hit

Ask = Callable[[Sequence[str]], Awaitable[Sequence[list[Hit] | Exception]]]
"""Asks for several queries at once and returns for each its hits, or what it failed with."""


class _Batch:
    """Queries that wait to be asked together, and the task that will ask them."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        self.full = asyncio.Event()
        self.waiting = 0
        self.task: asyncio.Task[Sequence[list[Hit] | Exception]]


class MicroBatcher:
    """Collects queries for a moment and asks them together; it holds options only, and each event loop has its own.

    Args:
        size: Most queries asked together.
        wait_s: Seconds that the first of them waits for others.
    """

    def __init__(self, size: int, wait_s: float) -> None:
        self.size = size
        self.wait_s = wait_s
        self._reset()

    async def ask(self, key: Hashable, query: str, ask: Ask) -> list[Hit]:
        """Ask one query together with others.

        Args:
            key: Only queries with the same key go together.
            query: The query.
            ask: What asks; that of the first query of a batch is used.

        Returns:
            Its hits.

        Raises:
            SearchError: It failed.
        """
        with self._lock:
            collecting = self._collecting.setdefault(asyncio.get_running_loop(), {})
        batch = collecting.get(key)
        if batch is None:
            batch = collecting[key] = _Batch()
            batch.task = asyncio.create_task(self._run(batch, collecting, key, ask))
        place = len(batch.queries)
        batch.queries.append(query)
        batch.waiting += 1
        if len(batch.queries) >= self.size:
            _close(batch, collecting, key)
        try:
            # Whoever gives up must not take the answer away from the others.
            answer = (await asyncio.shield(batch.task))[place]
        except asyncio.CancelledError:
            batch.waiting -= 1
            if not batch.waiting:
                _close(batch, collecting, key)
                batch.task.cancel()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def _run(
        self, batch: _Batch, collecting: dict[Hashable, _Batch], key: Hashable, ask: Ask
    ) -> Sequence[list[Hit] | Exception]:
        try:
            async with asyncio.timeout(self.wait_s):
                await batch.full.wait()
        except TimeoutError:
            _close(batch, collecting, key)
        return await ask(batch.queries)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._collecting: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, _Batch]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {"size": self.size, "wait_s": self.wait_s}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()


def _close(batch: _Batch, collecting: dict[Hashable, _Batch], key: Hashable) -> None:
    if collecting.get(key) is batch:
        del collecting[key]
    batch.full.set()
