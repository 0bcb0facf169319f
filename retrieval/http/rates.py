"""How often a provider may be asked: one token bucket a provider, shared by everything in the process."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Rate:
    """Requests that a provider takes.

    Attributes:
        requests: How many.
        seconds: In how long.
    """

    requests: float
    seconds: float = 1.0


class Bucket:
    """A token bucket that is paid in advance: whoever asks is told how long to wait for the turn it now owns.

    Being told at once keeps the order of those who ask, works from any event loop or thread, and needs no timer.

    Args:
        rate: How often; a burst of at most `rate.requests` (at least one) passes unhindered.
    """

    def __init__(self, rate: Rate) -> None:
        self.rate = rate
        self._lock = threading.Lock()
        self._spacing = rate.seconds / rate.requests
        self._burst = max(1.0, rate.requests)
        self._free_at = float("-inf")
        self._closed_until = float("-inf")

    def reserve(self) -> float:
        """Take the next turn.

        Returns:
            Seconds to wait before using it; 0 when it is there already.
        """
        with self._lock:
            now = time.monotonic()
            # The turn's own moment, if turns were evenly spaced; a burst is what idle time has saved up.
            turn = max(self._free_at, now - (self._burst - 1) * self._spacing)
            self._free_at = turn + self._spacing
            return max(0.0, turn - now, self._closed_until - now)

    def pause(self, seconds: float) -> None:
        """Let nobody through for a while, because the provider said so.

        Args:
            seconds: From now.
        """
        with self._lock:
            self._closed_until = max(self._closed_until, time.monotonic() + seconds)

    def pause_left(self) -> float:
        """Return for how many seconds the bucket is still closed by `pause`; 0 when it is not."""
        with self._lock:
            return max(0.0, self._closed_until - time.monotonic())


_buckets: dict[tuple[str, Rate], Bucket] = {}
_buckets_lock = threading.Lock()


def bucket_for(provider: str, rate: Rate) -> Bucket:
    """Return the bucket of a provider; the same one for the same provider and rate in the whole process.

    Args:
        provider: Name of the provider, with its endpoint where several servers share a name.
        rate: How often it may be asked.
    """
    with _buckets_lock:
        return _buckets.setdefault((provider, rate), Bucket(rate))


async def wait_turn(bucket: Bucket) -> None:
    """Wait for the next turn, and for the end of a pause that began meanwhile."""
    await asyncio.sleep(bucket.reserve())
    while left := bucket.pause_left():
        await asyncio.sleep(left)
