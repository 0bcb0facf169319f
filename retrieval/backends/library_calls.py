"""Calls to search libraries that bring their own connections, under the same limits as our HTTP client.

What such a library hides, such as sockets and redirects, stays its own business; rate, time, retries and errors are
ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from retrieval.http.client import Limits
from retrieval.http.failures import Failure, FailureError, paused_failure, retry_wait, to_error
from retrieval.http.rates import Bucket, PausedError, Rate, bucket_for, wait_turn
from signatures.errors import SearchError

T = TypeVar("T")


class LibraryCaller:
    """Calls a library for one backend.

    It holds options only, so it survives pickling and deepcopy.

    Args:
        provider: Name of the backend, for errors and its token bucket.
        limits: Time, attempts and waits; the caps on connections and bytes do not apply.
        rate: How often the library may be called, or None for no limit.
    """

    def __init__(self, provider: str, limits: Limits | None = None, rate: Rate | None = None) -> None:
        self.provider = provider
        self.limits = limits or Limits()
        self.rate = rate

    async def call(self, attempt: Callable[[], Awaitable[T]], *, what: str, secrets: tuple[str, ...] = ()) -> T:
        """Call it, again when that can help.

        Args:
            attempt: Makes one call; raises `FailureError` with what went wrong.
            what: What is asked for, for errors.
            secrets: Strings that must not appear in errors.

        Returns:
            What the attempt returned.

        Raises:
            SearchError: It failed.
        """
        bucket = bucket_for(self.provider, "", self.rate)
        count = 1
        while True:
            try:
                await self._turn(bucket)
                async with asyncio.timeout(self.limits.total_s):
                    return await attempt()
            except PausedError as paused:
                failure, count = paused_failure(paused.seconds), count - 1
            except FailureError as error:
                failure = error.failure
            except TimeoutError:
                failure = Failure("timeout", f"not complete within {self.limits.total_s:g} s")
            wait = retry_wait(self.limits, failure, count)
            if failure.status == 429:
                bucket.pause(failure.retry_after if failure.retry_after is not None else wait or 0.0)
            if wait is None:
                raise to_error(failure, SearchError, self.provider, what, attempts=count, secrets=secrets)
            await asyncio.sleep(wait)
            count += 1

    async def _turn(self, bucket: Bucket) -> None:
        ticket = bucket.enter()
        try:
            while not bucket.go(ticket):
                await wait_turn(bucket, ticket, self.limits.retry_after_s)
        finally:
            bucket.leave(ticket)
