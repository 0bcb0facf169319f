"""Running coroutines from synchronous code: one background event loop for the whole process."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from retrieval.base import Hit, Page, Reader, Search

Result = TypeVar("Result")


def run_sync(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the background event loop and wait for its result.

    May be called from any thread, also from one whose own event loop is running: that thread then just blocks. The
    caller's context variables are visible inside the coroutine.

    Args:
        coroutine: What to run; it must not be bound to another event loop.

    Returns:
        Its result.

    Raises:
        BaseException: Whatever the coroutine raised.
    """
    if _background.is_current_thread():
        # Waiting here would stop the very loop that has to do the work.
        return _in_own_thread(coroutine)
    future = asyncio.run_coroutine_threadsafe(coroutine, _background.loop())
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def run_blocking(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on its own event loop; in a notebook, where one runs, on the background's.

    Args:
        coroutine: What to run.

    Returns:
        Its result.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    return run_sync(coroutine)


def search_sync(search: Search, query: str, k: int) -> list[Hit]:
    """Search from synchronous code.

    Args:
        search: The backend.
        query: What to look for.
        k: At most this many hits.

    Returns:
        The hits.

    Raises:
        SearchError: The backend failed.
    """
    return run_sync(_search(search, query, k))


def read_sync(reader: Reader, url: str) -> Page:
    """Read a page from synchronous code.

    Args:
        reader: The page reader.
        url: Address of the page.

    Returns:
        The page.

    Raises:
        ReadError: It could not be read.
    """
    return run_sync(_read(reader, url))


async def _search(search: Search, query: str, k: int) -> list[Hit]:
    return await search.search(query, k)


async def _read(reader: Reader, url: str) -> Page:
    return await reader.read(url)


def _in_own_thread(coroutine: Coroutine[Any, Any, Result]) -> Result:
    import contextvars

    future: Future[Result] = Future()

    def work() -> None:
        try:
            future.set_result(asyncio.run(coroutine))
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="search-o1-nested", daemon=True)
    thread.start()
    thread.join()
    return future.result()


class _BackgroundLoop:
    """Owner of the loop and its thread; starts on first use and again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def is_current_thread(self) -> bool:
        return self._thread is threading.current_thread()

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="search-o1-loop", daemon=True)
                self._thread.start()
            return self._loop

    def forget(self) -> None:
        # In a forked child the parent's thread does not exist, and its lock may be held for ever.
        self.__init__()  # type: ignore[misc]

    def stop(self) -> None:
        loop, thread = self._loop, self._thread
        if loop is None or thread is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        # HTTP sessions close themselves here: see retrieval.http.client.
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


_background = _BackgroundLoop()
atexit.register(_background.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.forget)
