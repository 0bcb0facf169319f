"""How often a provider may be asked: one bucket of turns a provider and host, shared by everything in the process."""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

KEPT_BUCKETS = 1000
"""Idle buckets are dropped when there are more."""


@dataclass(frozen=True)
class Rate:
    """Requests that a provider takes.

    Attributes:
        requests: How many, above 0; may be a fraction.
        seconds: In how long, above 0.
    """

    requests: float
    seconds: float = 1.0


class Bucket:
    """A token bucket whose tokens come back `rate.seconds` after their use.

    So no window of that length ever sees more than `rate.requests` requests, also not the one after an idle time (a
    bucket that refills evenly would let nearly twice as many through). Whoever asks enters a queue and is told at once
    how long its turn takes; that needs no timer and no common event loop. A pause moves all queued turns. Someone who
    leaves the queue, or never comes back, costs the others that one turn; someone who comes back after others went past
    queues again.

    Args:
        rate: How often; None for no limit, so that only pauses count.
        clock: Gives seconds that never run backwards.
    """

    def __init__(self, rate: Rate | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._tickets = itertools.count()
        # Fractions become whole tokens: 2.5 a second are 2 in 0.8 s, 0.5 a second is 1 in 2 s.
        tokens = max(1, math.floor(rate.requests)) if rate else 0
        self._period = rate.seconds * tokens / rate.requests if rate else 0.0
        self._queue: dict[int, float] = {}
        self._used: deque[float] = deque(maxlen=tokens)
        # The newest turns, used or queued; the oldest of them holds the token that comes back next.
        self._newest: deque[float] = deque(maxlen=tokens)
        self._closed_until = -math.inf

    def enter(self) -> int:
        """Queue for a turn.

        Returns:
            A ticket for the other methods.
        """
        with self._lock:
            ticket = next(self._tickets)
            self._enqueue(ticket, self._clock())
            return ticket

    def wait_s(self, ticket: int) -> float:
        """Return for how many seconds a ticket still has to wait; a pause can lengthen it."""
        with self._lock:
            now = self._clock()
            if ticket not in self._queue and self._ready_at(ticket) > now:
                self._enqueue(ticket, now)
            return self._ready_at(ticket) - now

    def go(self, ticket: int) -> bool:
        """Use a turn if it has come.

        Args:
            ticket: From `enter`.

        Returns:
            Whether the request may be sent now; if not, `wait_s` tells when.
        """
        with self._lock:
            now = self._clock()
            if self._ready_at(ticket) > now:
                return False
            planned = self._queue.get(ticket)
            if planned is not None:
                # Those in front have let their turns pass.
                for overtaken in list(itertools.takewhile(lambda other: other != ticket, self._queue)):
                    del self._queue[overtaken]
                del self._queue[ticket]
            self._used.append(now)
            if self.rate is not None and planned != now:
                # It comes late or after others went past, so its token comes back later than planned.
                self._reschedule()
            return True

    def leave(self, ticket: int) -> None:
        """Give a place in the queue up; does nothing if the turn was used."""
        with self._lock:
            self._queue.pop(ticket, None)

    def pause(self, seconds: float) -> None:
        """Let nobody through for a while, because the provider said so.

        Args:
            seconds: From now; what is no number above 0 is passed over.
        """
        if not (math.isfinite(seconds) and seconds > 0):
            return
        with self._lock:
            self._closed_until = max(self._closed_until, self._clock() + seconds)
            self._reschedule()

    def pause_left(self) -> float:
        """Return for how many seconds the bucket is still closed by `pause`; 0 when it is not."""
        with self._lock:
            return max(0.0, self._closed_until - self._clock())

    def is_idle(self) -> bool:
        """Tell whether a new bucket would behave the same."""
        with self._lock:
            now = self._clock()
            last = self._newest[-1] if self._newest else -math.inf
            return not self._queue and now >= self._closed_until and now >= last + self._period

    def _ready_at(self, ticket: int) -> float:
        due = max(self._queue.get(ticket, -math.inf), self._closed_until)
        return max(due, self._used[0] + self._period) if len(self._used) == self._used.maxlen != 0 else due

    def _enqueue(self, ticket: int, earliest: float) -> None:
        due = max(earliest, self._closed_until)
        if self._newest.maxlen:
            if self._newest:
                due = max(due, self._newest[-1])
            if len(self._newest) == self._newest.maxlen:
                due = max(due, self._newest[0] + self._period)
            self._newest.append(due)
        self._queue[ticket] = due

    def _reschedule(self) -> None:
        queued, self._queue = self._queue, {}
        self._newest = deque(self._used, maxlen=self._used.maxlen)
        for ticket, due in queued.items():
            self._enqueue(ticket, due)


class PausedError(Exception):
    """The provider is paused for longer than the caller waits.

    Args:
        seconds: What is left of the pause.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(f"paused for {seconds:.0f} s")
        self.seconds = seconds


async def wait_turn(bucket: Bucket, ticket: int, longest_pause_s: float = math.inf) -> None:
    """Wait until a turn has come; `Bucket.go` then uses it.

    Args:
        bucket: The bucket.
        ticket: From its `enter`.
        longest_pause_s: A pause that lasts longer is not waited for; waiting for the others in the queue may take long.

    Raises:
        PausedError: There is such a pause.
    """
    while (wait := bucket.wait_s(ticket)) > 0:
        if (left := bucket.pause_left()) > longest_pause_s:
            raise PausedError(left)
        await asyncio.sleep(wait)


_buckets: dict[tuple[str, str, Rate | None], Bucket] = {}
_buckets_lock = threading.Lock()


def bucket_for(provider: str, server: str, rate: Rate | None = None) -> Bucket:
    """Return the bucket of a provider; the same one in the whole process.

    Args:
        provider: Name of the provider.
        server: Host and port it is asked at: two servers of one kind do not share a bucket, and a page reader has one
            for each host.
        rate: How often it may be asked, or None.
    """
    with _buckets_lock:
        key = (provider, server, rate)
        bucket = _buckets.get(key)
        if bucket is None:
            if len(_buckets) >= KEPT_BUCKETS:
                for other in [other for other, held in _buckets.items() if held.is_idle()]:
                    del _buckets[other]
            bucket = _buckets[key] = Bucket(rate)
        return bucket


def forget_buckets() -> None:
    """Forget what all providers were asked and all pauses."""
    with _buckets_lock:
        _buckets.clear()


def _begin_anew() -> None:
    # In a forked child the parent's queues are nobody's, and its locks may be held for ever.
    global _buckets_lock
    _buckets_lock = threading.Lock()
    _buckets.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
