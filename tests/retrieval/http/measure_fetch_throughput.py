"""Measures the fetch layer with many slow pages in flight, beside httpx in the same run.

    python -m tests.retrieval.http.measure_fetch_throughput [--pages 200] [--seconds 1.0] [--rounds 3]

A server in a process of its own drips every page in ten pieces over `--seconds`. Each client fetches `--pages` of them
at once, `--rounds` times. Ideal is every page in exactly `--seconds`, all at once. CPU is that of the client's process
(user and system) a page, and includes what the client's event loop costs. A second line for each client repeats this
with pages that come at once, where the client is the bottleneck. Not collected by pytest.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

import httpx

from retrieval.http.client import HttpClient, Limits
from signatures.errors import ReadError

PIECE = b"<p>" + b"lorem ipsum " * 160 + b"</p>\n"
PIECES = 10


def serve(ready: Connection, seconds: float) -> None:
    """Run the server until the process is ended.

    Args:
        ready: Is sent the port.
        seconds: How long a page takes; one asked for as `/quick` comes at once.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        length = len(PIECE) * PIECES
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % length)
                if head.startswith(b"GET /quick"):
                    writer.write(PIECE * PIECES)
                    continue
                for _ in range(PIECES):
                    await asyncio.sleep(seconds / PIECES)
                    writer.write(PIECE)
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2000)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def measure(name: str, fetch: Callable[[str], Awaitable[bytes]], url: str, pages: int, rounds: int) -> float:
    """Fetch pages and print what it took.

    Args:
        name: Name of the client.
        fetch: Fetches one page.
        url: Its address.
        pages: How many at once.
        rounds: How often.

    Returns:
        Milliseconds of the client's CPU a page.
    """
    walls, processors = [], []
    for _ in range(rounds):
        began, processor = time.perf_counter(), time.process_time()
        bodies = await asyncio.gather(*(fetch(url) for _ in range(pages)))
        walls.append(time.perf_counter() - began)
        processors.append((time.process_time() - processor) / pages * 1000)
        assert all(len(body) == len(PIECE) * PIECES for body in bodies)
    wall, processor = sorted(walls)[rounds // 2], sorted(processors)[rounds // 2]
    print(f"{name:<24} {pages / wall:8.0f} pages/s  {wall:6.2f} s  CPU {processor:6.2f} ms a page")
    return processor


async def compare(port: int, pages: int, seconds: float, rounds: int) -> None:
    """Measure both clients.

    Args:
        port: Port of the server.
        pages: How many pages at once.
        seconds: How long a slow page takes.
        rounds: How often; the median is shown.
    """
    client = HttpClient("web", ReadError, limits=Limits(per_host=pages, attempts=1))

    async def ours(url: str) -> bytes:
        return (await client.request("GET", url, what="the page")).body

    limits = httpx.Limits(max_connections=pages, max_keepalive_connections=pages)
    print(f"{'ideal':<24} {pages / seconds:8.0f} pages/s  {seconds:6.2f} s   ({pages} at once, median of {rounds})")
    for path in ("slow", "quick"):
        url = f"http://127.0.0.1:{port}/{path}"
        async with httpx.AsyncClient(limits=limits, timeout=60, trust_env=False) as other:

            async def theirs(url: str, other: httpx.AsyncClient = other) -> bytes:
                return (await other.get(url)).content

            mine = await measure(f"search-o1, {path}", ours, url, pages, rounds)
            httpxs = await measure(f"httpx, {path}", theirs, url, pages, rounds)
        print(f"{'':<24} httpx takes {httpxs / mine:.1f} times the CPU")


def main() -> None:
    """Start the server and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there, options.seconds), daemon=True)
    server.start()
    asyncio.run(compare(here.recv(), options.pages, options.seconds, options.rounds))
    server.terminate()


if __name__ == "__main__":
    main()
