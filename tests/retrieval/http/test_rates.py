from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.http.rates import (
    KEPT_BUCKETS,
    Bucket,
    PausedError,
    Rate,
    bucket_for,
    forget_buckets,
    wait_turn,
)

RATES = st.builds(Rate, st.floats(0.2, 6), st.floats(0.1, 5))
EVENTS = st.lists(
    st.tuples(st.just("enter"), st.integers(1, 5))
    | st.tuples(st.just("pass"), st.floats(0, 3))
    | st.tuples(st.just("sleep in"), st.floats(0, 3))
    | st.tuples(st.just("pause"), st.floats(0, 4))
    | st.tuples(st.just("leave"), st.integers(0, 10)),
    max_size=40,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Queue:
    """Everybody who waits for one bucket, each waking when told to."""

    def __init__(self, rate: Rate | None) -> None:
        self.clock = Clock()
        self.bucket = Bucket(rate, self.clock)
        self.waiting: list[int] = []
        self.used: list[tuple[int, float]] = []

    def enter(self, number: int = 1) -> None:
        self.waiting += [self.bucket.enter() for _ in range(number)]

    def wake(self, last_first: bool = False) -> None:
        for ticket in self.waiting[::-1] if last_first else self.waiting[:]:
            if self.bucket.go(ticket):
                self.waiting.remove(ticket)
                self.used.append((ticket, self.clock.now))

    def pass_time(self, seconds: float) -> None:
        """Let time pass, everybody waking on time."""
        end = self.clock.now + seconds
        while self.waiting:
            soonest = min(max(0.0, self.bucket.wait_s(ticket)) for ticket in self.waiting)
            if self.clock.now + soonest > end:
                break
            # Timers never fire early, and by rounding a sum may lie below what was meant.
            self.clock.now = math.nextafter(self.clock.now + soonest, math.inf)
            # Whoever is asked first, it is those whose turn has come that go.
            self.wake(last_first=True)
        self.clock.now = max(self.clock.now, end)

    def drain(self) -> None:
        self.pass_time(1e6)
        assert not self.waiting


def most_in_window(times: Sequence[float], seconds: float) -> int:
    return max((sum(start <= time < start + seconds for time in times) for start in times), default=0)


@given(RATES, EVENTS)
def test_no_window_sees_more_than_allowed_and_no_pause_is_broken(rate: Rate, events: list[tuple[str, float]]) -> None:
    queue, pauses = Queue(rate), []
    for event, amount in events:
        if event == "enter":
            queue.enter(int(amount))
        elif event == "pass":
            queue.pass_time(amount)
        elif event == "sleep in":
            # A busy event loop: nobody wakes in time.
            queue.clock.now += amount
            queue.wake()
        elif event == "pause":
            pauses.append((queue.clock.now, queue.clock.now + amount))
            queue.bucket.pause(amount)
        elif queue.waiting:
            queue.bucket.leave(queue.waiting.pop(int(amount) % len(queue.waiting)))
    queue.drain()
    times = [moment for _, moment in queue.used]
    tokens = max(1, math.floor(rate.requests))
    period = rate.seconds * tokens / rate.requests
    assert most_in_window(times, period * (1 - 1e-9)) <= tokens
    assert not any(start < moment < end - 1e-9 for moment in times for start, end in pauses)
    # Whoever came first goes first, or at the same moment.
    assert sorted(queue.used) == sorted(queue.used, key=lambda used: (used[1], used[0]))


@given(st.integers(1, 6), st.floats(0.1, 5), st.integers(1, 30))
def test_the_allowed_rate_is_used_up(requests: int, seconds: float, number: int) -> None:
    queue = Queue(Rate(requests, seconds))
    queue.enter(number)
    queue.drain()
    began = queue.used[0][1]
    waits = [moment - began for _, moment in queue.used]
    assert waits == pytest.approx([index // requests * seconds for index in range(number)], abs=1e-6)


@pytest.mark.parametrize(("rate", "second"), [(Rate(0.5), 2.0), (Rate(1, 60), 60.0), (Rate(1.25), 0.8)])
def test_fractions_space_requests_out(rate: Rate, second: float) -> None:
    queue = Queue(rate)
    queue.enter(2)
    queue.drain()
    assert queue.used[1][1] - queue.used[0][1] == pytest.approx(second)


@given(st.integers(0, 9), st.integers(1, 3))
def test_who_leaves_costs_the_others_no_more_than_one_turn(gone: int, requests: int) -> None:
    queue = Queue(Rate(requests, 1.0))
    queue.enter(10)
    queue.bucket.leave(queue.waiting.pop(gone))
    queue.drain()
    assert queue.used[-1][1] - 100.0 <= 9 // requests + 1e-6


def test_who_never_comes_back_costs_the_others_one_turn() -> None:
    queue = Queue(Rate(1, 1.0))
    queue.bucket.enter()
    queue.enter(3)
    queue.drain()
    assert [moment - 100 for _, moment in queue.used] == pytest.approx([1, 2, 3])


def test_turns_used_out_of_order_are_all_counted() -> None:
    queue = Queue(Rate(5, 1.0))
    queue.enter(5)
    queue.wake(last_first=True)
    queue.enter(7)
    queue.drain()
    first, second, third = queue.used[:5], queue.used[5:10], queue.used[10:]
    assert [{ticket for ticket, _ in turn} for turn in (first, second, third)] == [
        {*range(5)},
        {*range(5, 10)},
        {10, 11},
    ]
    assert [turn[0][1] - 100 for turn in (first, second, third)] == pytest.approx([0, 1, 2])


def test_who_comes_late_queues_again() -> None:
    queue = Queue(Rate(1, 1.0))
    late = queue.bucket.enter()
    queue.enter(2)
    queue.pass_time(1.5)
    assert len(queue.used) == 1
    assert not queue.bucket.go(late)
    queue.waiting.append(late)
    queue.drain()
    assert [moment - 100 for _, moment in queue.used] == pytest.approx([1, 2, 3])
    assert queue.used[-1][0] == late


def test_after_a_pause_requests_go_on_at_the_rate() -> None:
    queue = Queue(Rate(1, 1.0))
    queue.enter(5)
    queue.wake()
    queue.bucket.pause(10)
    queue.drain()
    assert [moment - 100 for _, moment in queue.used] == pytest.approx([0, 10, 11, 12, 13])


def test_without_a_rate_only_pauses_count() -> None:
    queue = Queue(None)
    queue.enter(100)
    queue.wake()
    assert len(queue.used) == 100
    queue.bucket.pause(3)
    queue.enter(2)
    queue.drain()
    assert [moment - 100 for _, moment in queue.used[100:]] == pytest.approx([3, 3])


@pytest.mark.parametrize("nonsense", [0, -1, math.nan, math.inf, -math.inf])
def test_a_pause_of_nonsense_is_passed_over(nonsense: float) -> None:
    bucket = Bucket(Rate(1))
    bucket.pause(nonsense)
    assert bucket.pause_left() == 0


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    bucket = Bucket(None, clock := Clock())
    bucket.pause(5)
    bucket.pause(1)
    clock.now += 2
    assert bucket.pause_left() == 3


def test_several_threads_with_loops_of_their_own_share_a_bucket() -> None:
    seen = threading.local()
    used: list[float] = []

    def clock() -> float:
        seen.last = time.monotonic()
        return float(seen.last)

    rate = Rate(5, 0.1)
    bucket = Bucket(rate, clock)

    async def ask() -> None:
        ticket = bucket.enter()
        while True:
            await wait_turn(bucket, ticket)
            if bucket.go(ticket):
                used.append(seen.last)
                return

    async def ask_often() -> None:
        await asyncio.gather(*(ask() for _ in range(10)))

    threads = [threading.Thread(target=lambda: asyncio.run(ask_often())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(used) == 40
    assert most_in_window(used, rate.seconds) <= 5
    assert max(used) - min(used) >= 0.7


async def test_a_pause_that_is_too_long_is_not_waited_for() -> None:
    bucket = Bucket(Rate(1))
    ticket = bucket.enter()
    bucket.pause(3600)
    with pytest.raises(PausedError) as caught:
        await wait_turn(bucket, ticket, longest_pause_s=30)
    assert 3599 < caught.value.seconds <= 3600


async def test_a_long_queue_is_waited_for_whatever_the_longest_pause() -> None:
    bucket = Bucket(Rate(1, 0.2))
    first, second = bucket.enter(), bucket.enter()
    assert bucket.go(first)
    await wait_turn(bucket, second, longest_pause_s=0.01)
    assert bucket.go(second)


def test_a_bucket_belongs_to_provider_server_and_rate() -> None:
    forget_buckets()
    one = bucket_for("serper", "a.example:443", Rate(1))
    assert bucket_for("serper", "a.example:443", Rate(1)) is one
    others = [
        bucket_for("brave", "a.example:443", Rate(1)),
        bucket_for("serper", "b.example:443", Rate(1)),
        bucket_for("serper", "a.example:443", Rate(2)),
        bucket_for("serper", "a.example:443"),
    ]
    assert len({id(bucket) for bucket in (one, *others)}) == 5
    forget_buckets()
    assert bucket_for("serper", "a.example:443", Rate(1)) is not one


def test_idle_buckets_are_dropped_and_the_others_kept() -> None:
    forget_buckets()
    paused = bucket_for("web", "paused.example")
    paused.pause(60)
    queued = bucket_for("web", "queued.example", Rate(1))
    queued.enter()
    idle = bucket_for("web", "idle.example")
    for number in range(KEPT_BUCKETS):
        bucket_for("web", f"{number}.example")
    assert bucket_for("web", "paused.example") is paused
    assert bucket_for("web", "queued.example", Rate(1)) is queued
    assert bucket_for("web", "idle.example") is not idle
    forget_buckets()


def test_a_bucket_is_idle_once_its_tokens_are_back() -> None:
    bucket = Bucket(Rate(2, 10), clock := Clock())
    assert bucket.is_idle()
    ticket = bucket.enter()
    assert not bucket.is_idle()
    assert bucket.go(ticket)
    assert not bucket.is_idle()
    clock.now += 10
    assert bucket.is_idle()


def test_a_forked_child_begins_with_empty_buckets() -> None:
    forget_buckets()
    bucket = bucket_for("serper", "a.example", Rate(1))
    bucket.pause(3600)
    child = os.fork()
    if child == 0:
        os._exit(0 if bucket_for("serper", "a.example", Rate(1)).pause_left() == 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert bucket.pause_left() > 0
    forget_buckets()
