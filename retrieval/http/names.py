"""The system's name service, asked in threads of its own.

Pages lie on many hosts, and a name server may be slow on purpose. In the event loop's common thread pool, of a handful
of threads on a small machine, a few such names would hold up all others, and the extraction of pages that runs there.
"""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

THREADS = 64


class SystemNames(AbstractResolver):
    """Resolves names as the system does, `/etc/hosts` included."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a name.

        Args:
            host: Name or IP address.
            port: Port to connect to.
            family: Address family wanted.

        Returns:
            Its addresses.

        Raises:
            OSError: It cannot be resolved.
        """
        ask = functools.partial(
            socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG
        )
        found = await asyncio.get_running_loop().run_in_executor(_threads(), ask)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=int(address[1]),
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Nothing is held; the threads are the process's."""


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="search-o1-names")


if hasattr(os, "register_at_fork"):
    # Threads do not live on in a forked child.
    os.register_at_fork(after_in_child=_threads.cache_clear)
