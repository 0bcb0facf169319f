"""A real HTTP proxy on the loopback interface: tunnels (CONNECT) and requests in absolute form.

with ProxyServer(names={"pages.example": ("127.0.0.1", server.port)}) as proxy:
    monkeypatch.setenv("HTTP_PROXY", proxy.url)
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Asked:
    """A request as the proxy got it.

    Attributes:
        method: HTTP method, `CONNECT` for tunnels.
        target: What it was asked for: an absolute URL, or host and port.
        headers: Header fields, names in lower case.
    """

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)


class ProxyServer:
    """The proxy.

    Args:
        names: Host and port to connect to for each host name: the proxy's own name service.
        credentials: `user:password` that it wants, or empty.
        status: Answer every request with this status, or 0 to serve them.

    Attributes:
        asked: What it was asked so far.
    """

    def __init__(
        self, names: Mapping[str, tuple[str, int]] | None = None, credentials: str = "", status: int = 0
    ) -> None:
        self.names = dict(names or {})
        self.credentials = credentials
        self.status = status
        self.asked: list[Asked] = []
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="proxy", daemon=True)

    @property
    def url(self) -> str:
        """Its address, with the credentials it wants."""
        return f"http://{self.credentials}{'@' if self.credentials else ''}127.0.0.1:{self.port}"

    def __enter__(self) -> ProxyServer:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *fields = head.strip().split("\r\n")
        method, target, _ = line.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
        self.asked.append(Asked(method, target, headers))
        wanted = "Basic " + base64.b64encode(self.credentials.encode()).decode()
        if self.credentials and headers.get("proxy-authorization") != wanted:
            return await _refuse(writer, 407)
        if self.status:
            return await _refuse(writer, self.status)
        parts = urlsplit(target if method != "CONNECT" else f"//{target}")
        host = parts.hostname or ""
        upstream = await asyncio.open_connection(*self.names.get(host, (host, parts.port or 80)))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = parts.path or "/"
            kept = [one for one in fields if not one.lower().startswith(("proxy-", "connection:"))]
            request = [f"{method} {path}{'?' if parts.query else ''}{parts.query} HTTP/1.1", *kept, "Connection: close"]
            upstream[1].write(("\r\n".join(request) + "\r\n\r\n").encode("latin-1"))
        await asyncio.gather(_pump(reader, upstream[1]), _pump(upstream[0], writer))


async def _refuse(writer: asyncio.StreamWriter, status: int) -> None:
    writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".encode())
    await writer.drain()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError):
        while piece := await reader.read(65_536):
            writer.write(piece)
            await writer.drain()
    writer.close()
