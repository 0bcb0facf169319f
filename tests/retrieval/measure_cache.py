"""Measures the cache with 100,000 entries: hits, writes, and how long a write holds the event loop up.

Not collected by pytest; run it by hand: `python -m tests.retrieval.measure_cache [--entries 100000] [--folder DIR]`.
The file gets 80 % searches of ten hits (about 4 kB of JSON) and 20 % pages of 50 kB of text, in a temporary folder.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retrieval.cache import Cache, Kind

PAGE_CHARS = 50_000
WORDS = [
    f"{a}{b}" for a in ("ka", "lo", "mi", "ter", "sun", "vel", "dra", "pon") for b in ("ra", "ne", "to", "s", "ling")
]


def text(rng: random.Random, chars: int) -> str:
    """Return made-up prose that compresses about as English does."""
    return " ".join(rng.choices(WORDS, k=chars // 5) + [str(rng.random()) for _ in range(chars // 80)])[:chars]


def hits(rng: random.Random) -> list[dict[str, str]]:
    return [
        {"title": text(rng, 60), "url": f"https://e.org/{rng.random()}", "snippet": text(rng, 250)} for _ in range(10)
    ]


def search_key(i: int) -> dict[str, Any]:
    return {"backend": "bing:https://x:en-US:en", "query": f"question {i}", "k": 10}


def page_key(i: int) -> dict[str, Any]:
    return {"reader": "web:50000", "url": f"https://example.org/{i}"}


def fill(cache: Cache, entries: int, rng: random.Random) -> None:
    pages = [{"url": "u", "text": text(rng, PAGE_CHARS), "title": "T", "status": 200, "meta": {}} for _ in range(200)]
    results = [hits(rng) for _ in range(200)]
    for i in range(entries):
        if i % 5:
            cache.put("searches", search_key(i), results[i % 200], "bing")
        else:
            cache.put("pages", page_key(i), pages[i % 200], "web")


def show(what: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    p99 = ordered[int(len(ordered) * 0.99)]
    print(
        f"{what:44} n={len(ordered):<6} p50 {statistics.median(ordered) * 1e3:7.3f} ms  p99 {p99 * 1e3:7.3f} ms  "
        f"most {ordered[-1] * 1e3:8.3f} ms"
    )


def timed(work: Callable[[int], Any], numbers: list[int]) -> list[float]:
    found = []
    for number in numbers:
        began = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - began)
    return found


async def loop_lag(
    cache: Cache, write: Callable[[int], tuple[Kind, dict[str, Any], Any]], count: int
) -> tuple[list[float], list[float]]:
    """Return (seconds each write took until it was in the file, delays of the event loop meanwhile)."""
    lags: list[float] = []
    done = False

    async def watch() -> None:
        while not done:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            lags.append(time.perf_counter() - began - 0.001)

    watching = asyncio.create_task(watch())
    took = []
    for i in range(count):
        began = time.perf_counter()
        await cache.off_loop(cache.keep, *write(i))
        took.append(time.perf_counter() - began)
    done = True
    await watching
    return took, lags


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    rng = random.Random(7)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        cache = Cache(Path(folder) / "cache.sqlite")
        began = time.perf_counter()
        fill(cache, arguments.entries, rng)
        seconds = time.perf_counter() - began
        size = cache.stats()["bytes"] / 1e6
        print(f"{arguments.entries:,} entries, {size:,.0f} MB, filled at {arguments.entries / seconds:,.0f} a second")
        some = rng.sample(range(arguments.entries // 5), 3_000)
        show("hit, search of ten hits", timed(lambda i: cache.get("searches", search_key(5 * i + 1)), some))
        show("hit, page of 50 kB", timed(lambda i: cache.get("pages", page_key(5 * i)), some))
        show("miss", timed(lambda i: cache.get("pages", {"none": i}), some))
        page = {"url": "u", "text": text(rng, PAGE_CHARS), "title": "T", "status": 200, "meta": {}}
        show("put, search, blocking", timed(lambda i: cache.put("searches", {"w": i}, hits(rng), "bing"), some))
        show("put, page of 50 kB, blocking", timed(lambda i: cache.put("pages", {"w": i}, page, "web"), some))
        took, lags = asyncio.run(loop_lag(cache, lambda i: ("pages", {"x": i}, page), 3_000))
        show("write of a page off the loop, until it is safe", took)
        show("delay of the event loop meanwhile", lags)


if __name__ == "__main__":
    main()
