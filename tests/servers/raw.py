"""A server that writes whatever bytes a test wants, proper HTTP or not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable


@contextlib.asynccontextmanager
async def raw_server(pieces: Iterable[bytes], keep_open_s: float = 0.0) -> AsyncIterator[str]:
    """Serve every connection the same bytes, after its request head.

    Args:
        pieces: What to write, one after the other; may be without end if it can be iterated over again.
        keep_open_s: Seconds to leave the connection open afterwards.

    Yields:
        Address of the server, without a slash at the end.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            await asyncio.sleep(keep_open_s)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
