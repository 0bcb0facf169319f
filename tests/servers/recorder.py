"""A proxy that stands between a client and a real server and keeps what went over the wire."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp
from aiohttp import web


@dataclass
class Exchange:
    """A request and its reply.

    Attributes:
        path: Path of the request.
        body: Its JSON, or None.
        status: Status of the reply; None when the server went away before it had answered.
        reply: JSON of the reply, or None.
        start: Seconds on `time.monotonic()` at arrival.
        end: Seconds at the end of the reply.
    """

    path: str
    body: Any
    status: int | None = None
    reply: Any = None
    start: float = field(default_factory=time.monotonic)
    end: float = 0.0


class Recorder:
    """The proxy; use it as a context manager.

    A request that the server leaves unanswered is left unanswered too: its connection is cut.

    Args:
        target: Address of the server, without a path.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.exchanges: list[Exchange] = []
        self.on_request: Callable[[Exchange], None] | None = None
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recorder", daemon=True)

    @property
    def base_url(self) -> str:
        """Address to give to a client, ending in `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    def of(self, path: str, *, answered: bool = True) -> list[Exchange]:
        """Return the exchanges of a path, in the order they began; only answered ones unless told otherwise."""
        return [e for e in self.exchanges if e.path == path and (e.status is not None or not answered)]

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _listen(self) -> None:
        self._client = aiohttp.ClientSession(
            self.target, connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.port = self._runner.addresses[0][1]

    async def _close(self) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.Response:
        exchange = Exchange(request.path, await request.json() if request.can_read_body else None)
        self.exchanges.append(exchange)
        if self.on_request is not None:
            self.on_request(exchange)
        try:
            async with self._client.request(request.method, request.path, json=exchange.body) as reply:
                content = await reply.read()
                exchange.reply = await reply.json(content_type=None) if content else None
                exchange.status = reply.status
        except aiohttp.ClientError:
            assert request.transport is not None
            request.transport.abort()
            raise asyncio.CancelledError from None
        finally:
            exchange.end = time.monotonic()
        return web.Response(body=content, status=reply.status, content_type=reply.content_type)
