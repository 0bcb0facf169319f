"""Pooled connections: one session for each event loop, and a cap on the requests in flight to a host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from weakref import WeakKeyDictionary, WeakValueDictionary

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from retrieval.http.guard import GuardedResolver, guarded_socket

_Loop = asyncio.AbstractEventLoop


MakeResolver = Callable[[], AbstractResolver]
"""Makes the resolver of names for a loop."""


class _Pool:
    def __init__(self) -> None:
        self.sessions: dict[bool | MakeResolver, aiohttp.ClientSession] = {}
        self.resolvers: dict[MakeResolver | None, GuardedResolver] = {}
        self.slots: WeakValueDictionary[tuple[str, int], asyncio.Semaphore] = WeakValueDictionary()
        self.closer: AsyncGenerator[None, None] | None = None


_pools: WeakKeyDictionary[_Loop, _Pool] = WeakKeyDictionary()


def session(guarded: bool, resolver: MakeResolver | None = None) -> aiohttp.ClientSession:
    """Return the running loop's session; it is closed with the loop.

    Args:
        guarded: Whether it connects to public addresses only.
        resolver: What a guarded session resolves names with; by default the system's resolver.

    Returns:
        An open session without a cap on connections in all and without cookies, which leaves replies compressed.
    """
    sessions = _pool().sessions
    key = resolver or True if guarded else False
    current = sessions.get(key)
    if current is None or current.closed:
        if guarded:
            connector = aiohttp.TCPConnector(
                limit=0, resolver=guarded_resolver(resolver), socket_factory=guarded_socket
            )
        else:
            connector = aiohttp.TCPConnector(limit=0)
        current = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False)
        sessions[key] = current
    return current


def guarded_resolver(resolver: MakeResolver | None = None) -> GuardedResolver:
    """Return the running loop's resolver of public addresses.

    Args:
        resolver: What it asks; by default the system's resolver.
    """
    resolvers = _pool().resolvers
    if resolver not in resolvers:
        resolvers[resolver] = GuardedResolver(resolver() if resolver else None)
    return resolvers[resolver]


@contextlib.asynccontextmanager
async def host_slot(url: str, per_host: int) -> AsyncIterator[None]:
    """Hold one of the slots for a host.

    Args:
        url: Address about to be requested.
        per_host: Number of slots.

    Yields:
        Once a slot is free.
    """
    try:
        host = URL(url).host or ""
    except ValueError:
        host = ""
    slots = _pool().slots
    slot = slots.get((host, per_host))
    if slot is None:
        slot = asyncio.Semaphore(per_host)
        slots[host, per_host] = slot
    async with slot:
        yield


def _pool() -> _Pool:
    loop = asyncio.get_running_loop()
    pool = _pools.get(loop)
    if pool is None:
        pool = _pools[loop] = _Pool()
        # asyncio.run and every other orderly end of a loop close its pending asynchronous generators, and with this
        # one the sessions, so nobody has to remember to close anything.
        pool.closer = _close_with_loop(loop, pool)
        with contextlib.suppress(StopIteration):
            pool.closer.asend(None).send(None)
    return pool


async def _close_with_loop(loop: _Loop, pool: _Pool) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        _pools.pop(loop, None)
        for current in pool.sessions.values():
            await current.close()
        for resolver in pool.resolvers.values():
            await resolver.close()
        # A transport lets go of its socket in the loop's next round, which a loop about to end may not have.
        await asyncio.sleep(0)
