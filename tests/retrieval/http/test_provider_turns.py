from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from retrieval.http.client import HttpClient, Limits
from retrieval.http.failures import Failure, retry_wait
from retrieval.http.rates import Rate, bucket_for
from signatures.errors import ReadError, SearchError
from tests.servers.web import Answer, WebServer

QUICK = Limits(connect_s=2, read_s=2, total_s=4, attempts=3, backoff_s=0.01, retry_after_s=5)


def reset_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("x-reset")
    return float(value) if value else None


def client(**options: Any) -> HttpClient:
    return HttpClient("test", ReadError, **{"limits": QUICK, **options})


async def get(one: HttpClient, url: str) -> bytes:
    # A pause that is waited for by mistake is to fail a test, not to hang it.
    async with asyncio.timeout(20):
        return (await one.request("GET", url, what="the page")).body


async def test_a_rate_limit_has_a_reason_of_its_own() -> None:
    with WebServer(pages={"/": Answer("slow down", status=429)}) as server:
        with pytest.raises(ReadError, match=r"answered 429 \(rate limited\), tried 3 times: slow down") as caught:
            await get(client(), server.url + "/")
        assert (caught.value.reason, caught.value.status) == ("rate_limited", 429)
        with pytest.raises(SearchError, match="rate limited") as found:
            await HttpClient("bing", SearchError, limits=QUICK).request("GET", server.url + "/", what="the query 'x'")
        assert found.value.status == 429


async def test_a_rate_limit_stops_everybody_who_asks_that_provider_there() -> None:
    limited = [Answer(status=429, headers={"Retry-After": "1"}), Answer("fine")]
    with WebServer(pages={"/": limited}) as server, WebServer(pages={"/": "other"}) as other:
        began = time.monotonic()
        first = asyncio.create_task(get(client(), server.url + "/"))
        while not bucket_for("test", f"127.0.0.1:{server.port}").pause_left() and not first.done():
            await asyncio.sleep(0.005)
        rest = [asyncio.create_task(get(client(), server.url + "/")) for _ in range(5)]
        # Neither another server nor another provider is concerned.
        assert await get(client(), other.url + "/") == b"other"
        someone = HttpClient("someone", ReadError, limits=QUICK)
        assert await get(someone, server.url + "/") == b"fine"
        if time.monotonic() - began < 0.8:
            assert server.count("/") == 2
        assert await asyncio.gather(first, *rest) == [b"fine"] * 6
        assert time.monotonic() - began >= 1
        assert server.count("/") == 8


async def test_a_long_pause_is_told_at_once_and_nothing_is_sent() -> None:
    with WebServer(pages={"/": [Answer(status=429, headers={"Retry-After": "3600"}), Answer("fine")]}) as server:
        with pytest.raises(ReadError, match="asks to wait 3600 s"):
            await get(client(), server.url + "/")
        with pytest.raises(ReadError, match=r"is paused \(rate limited\) for 3(600|59\d) s more") as caught:
            await get(client(), server.url + "/")
        assert (caught.value.reason, caught.value.status, server.count("/")) == ("rate_limited", 429, 1)


async def test_a_waiter_notices_a_long_pause_that_begins_meanwhile() -> None:
    with WebServer(pages={"/": "fine"}) as server:
        bucket = bucket_for("test", f"127.0.0.1:{server.port}")
        bucket.pause(0.2)
        waiter = asyncio.create_task(get(client(), server.url + "/"))
        await asyncio.sleep(0.05)
        bucket.pause(3600)
        with pytest.raises(ReadError, match="rate limited"):
            await waiter
        assert server.requests == []


@pytest.mark.parametrize("rate", [None, Rate(100)])
@pytest.mark.parametrize("status", [200, 404])
async def test_a_provider_that_tells_its_pace_is_not_asked_sooner(rate: Rate | None, status: int) -> None:
    told = [Answer("one", status=status, headers={"X-Reset": "0.5"}), Answer("two")]
    with WebServer(pages={"/": told}) as server:
        one = client(rate=rate, pace=reset_after)
        began = time.monotonic()
        if status == 404:
            with pytest.raises(ReadError):
                await get(one, server.url + "/")
        else:
            assert await get(one, server.url + "/") == b"one"
        assert await get(one, server.url + "/") == b"two"
        assert time.monotonic() - began >= 0.5


async def test_a_pace_that_is_too_slow_is_a_rate_limit() -> None:
    with WebServer(pages={"/": Answer("one", headers={"X-Reset": "86400"})}) as server:
        assert await get(client(pace=reset_after), server.url + "/") == b"one"
        with pytest.raises(ReadError, match=r"rate limited\) for 86\d\d\d s more") as caught:
            await get(client(pace=reset_after), server.url + "/")
        assert (caught.value.reason, server.count("/")) == ("rate_limited", 1)


async def test_requests_keep_to_the_rate_and_waiting_for_a_turn_takes_nobodys_time() -> None:
    with WebServer(pages={"/": "fine"}) as server:
        one = client(rate=Rate(2, 0.5), limits=Limits(total_s=0.4, attempts=1))
        began = time.monotonic()
        await asyncio.gather(*(get(one, server.url + "/") for _ in range(5)))
        assert time.monotonic() - began >= 1.0
        assert server.count("/") == 5


async def test_who_waits_for_a_turn_holds_no_slot() -> None:
    with WebServer(pages={"/": "fine"}) as server:
        narrow = Limits(per_host=1, attempts=1)
        slow = client(rate=Rate(1, 3600), limits=narrow)
        await get(slow, server.url + "/")
        waiter = asyncio.create_task(get(slow, server.url + "/"))
        await asyncio.sleep(0.05)
        other = HttpClient("other", ReadError, limits=narrow)
        assert await asyncio.wait_for(get(other, server.url + "/"), 10) == b"fine"
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert not bucket_for("test", f"127.0.0.1:{server.port}", Rate(1, 3600))._queue


async def test_a_cancelled_request_in_flight_gives_slot_and_place_back() -> None:
    with WebServer(pages={"/": [Answer("late", latency_s=5), Answer("fine")]}) as server:
        one = client(limits=Limits(per_host=1, attempts=1))
        stuck = asyncio.create_task(get(one, server.url + "/"))
        while not server.requests:
            await asyncio.sleep(0.005)
        stuck.cancel()
        assert await asyncio.wait_for(get(one, server.url + "/"), 4) == b"fine"
        assert stuck.cancelled()


def test_retries_wait_with_full_jitter_and_after_what_the_server_asks() -> None:
    limits = Limits(backoff_s=1, attempts=4, retry_after_s=30)
    waits = [retry_wait(limits, Failure("http", "x", 503, again=True), 3) or 0 for _ in range(500)]
    assert min(waits) < 0.5
    assert 3.5 < max(waits) <= 4
    asked = [
        retry_wait(limits, Failure("rate_limited", "x", 429, again=True, retry_after=7), 1) or 0 for _ in range(100)
    ]
    assert 7 <= min(asked) < max(asked) <= 8
    assert retry_wait(limits, Failure("rate_limited", "x", 429, again=True, retry_after=31), 1) is None
    assert retry_wait(limits, Failure("http", "x", 503, again=True), 4) is None
    assert retry_wait(limits, Failure("http", "x", 404), 1) is None
