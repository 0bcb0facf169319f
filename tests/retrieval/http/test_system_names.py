from __future__ import annotations

import asyncio
import os
import socket
import threading

import pytest

from retrieval.http.names import SystemNames


async def test_names_and_addresses_are_resolved() -> None:
    names = SystemNames()
    found = await names.resolve("127.0.0.1", 80)
    assert [(one["hostname"], one["host"], one["port"]) for one in found] == [("127.0.0.1", "127.0.0.1", 80)]
    assert found[0]["family"] == socket.AF_INET
    assert {one["host"] for one in await names.resolve("localhost", 80, socket.AF_UNSPEC)} <= {"127.0.0.1", "::1"}
    with pytest.raises(OSError, match=r"."):
        await names.resolve("no-such-host.invalid", 80)
    await names.close()


async def test_names_are_resolved_while_the_loops_own_threads_are_busy() -> None:
    done = threading.Event()
    busy = [asyncio.create_task(asyncio.to_thread(done.wait, 30)) for _ in range(64)]
    await asyncio.sleep(0.05)
    try:
        found = await asyncio.wait_for(SystemNames().resolve("127.0.0.1", 80), 10)
        assert found
    finally:
        done.set()
        await asyncio.gather(*busy)


async def test_a_forked_child_resolves_names() -> None:
    await SystemNames().resolve("127.0.0.1", 80)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio._set_running_loop(None)
            loop = asyncio.new_event_loop()
            code = 0 if loop.run_until_complete(asyncio.wait_for(SystemNames().resolve("127.0.0.1", 80), 10)) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
