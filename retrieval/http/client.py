"""The one HTTP client of all network backends and readers: time-outs, retries, caps and errors.

A backend or reader only builds requests and parses replies.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from retrieval.http.failures import Failure, FailureError, reply_start, status_failure, to_error
from retrieval.http.guard import RefusedAddress, check_url
from retrieval.http.rates import Rate, bucket_for, wait_turn
from retrieval.http.sessions import host_slot, session
from signatures.errors import RetrievalError

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
USER_AGENT = "search-o1 (research; https://arxiv.org/abs/2501.05366)"
CHUNK_BYTES = 65_536


@dataclass(frozen=True)
class Limits:
    """How long, how often and how much.

    Attributes:
        connect_s: Seconds to establish a connection.
        read_s: Seconds without a byte after which a reply counts as stalled.
        total_s: Seconds for one attempt, redirects included; waiting for a free slot does not count.
        attempts: Attempts in all.
        backoff_s: Longest wait before the second attempt; doubles with each further one.
        retry_after_s: A server that asks to wait longer than this is not waited for.
        max_bytes: Longest reply, after decompression.
        max_redirects: Redirects followed.
        per_host: Requests in flight to one host.
    """

    connect_s: float = 10.0
    read_s: float = 20.0
    total_s: float = 45.0
    attempts: int = 4
    backoff_s: float = 1.0
    retry_after_s: float = 30.0
    max_bytes: int = 10_000_000
    max_redirects: int = 10
    per_host: int = 16


@dataclass(frozen=True)
class Reply:
    """A reply that was read completely.

    Attributes:
        status: HTTP status, below 300.
        headers: Header fields, names in lower case.
        body: Its bytes, decompressed.
        url: Where it came from after redirects.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def content_type(self) -> str:
        """Media type in lower case without parameters, or empty."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class HttpClient:
    """Sends requests for one backend or reader.

    It holds options only; sessions are pooled by event loop, so it survives pickling and deepcopy.

    Args:
        provider: Name of the backend or reader, for errors.
        error: What failures become: `SearchError` or `ReadError`.
        limits: Time-outs, retries and caps.
        guarded: Refuse addresses that are not public; see `retrieval.http.guard`.
        rate: How often the provider may be asked, or None for no limit but `limits.per_host`.
        pace: Reads from the header fields (names in lower case) of any reply how many seconds the provider is not to be
            asked again, or None; a module-level function, so that the client can be pickled. Needs `rate`.
    """

    def __init__(
        self,
        provider: str,
        error: type[RetrievalError],
        *,
        limits: Limits | None = None,
        guarded: bool = False,
        rate: Rate | None = None,
        pace: Callable[[Mapping[str, str]], float | None] | None = None,
    ) -> None:
        self.provider = provider
        self.error = error
        self.limits = limits or Limits()
        self.guarded = guarded
        self.rate = rate
        self.pace = pace

    async def request(
        self,
        method: str,
        url: str,
        *,
        what: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        json_body: Any = None,
        secrets: tuple[str, ...] = (),
    ) -> Reply:
        """Send a request, again when that can help, and read the whole reply.

        Args:
            method: HTTP method.
            url: Absolute URL.
            what: What is asked for, for errors: `the query 'x'`, `the page https://…`.
            params: Query parameters.
            headers: Header fields.
            json_body: Body to send as JSON.
            secrets: Strings that must not appear in errors.

        Returns:
            A reply with a status below 300.

        Raises:
            SearchError: It failed, if `error` is that type.
            ReadError: It failed, if `error` is that type; `reason` says how.
        """
        headers = {"User-Agent": USER_AGENT, **(headers or {})}
        attempt = 1
        while True:
            if self.rate is not None:
                await wait_turn(bucket_for(self.provider, self.rate))
            failure = await self._attempt(method, url, params, headers, json_body)
            if isinstance(failure, Reply):
                return failure
            wait = self._wait(failure, attempt)
            if wait is None:
                raise self._to_error(failure, what, attempt, secrets)
            await asyncio.sleep(wait)
            attempt += 1

    async def request_json(self, method: str, url: str, *, what: str, **options: Any) -> Any:
        """Send a request and parse the reply as JSON.

        Args:
            method: HTTP method.
            url: Absolute URL.
            what: What is asked for, for errors.
            **options: As for `request`.

        Returns:
            The parsed reply.

        Raises:
            RetrievalError: As for `request`, or the reply is no JSON.
        """
        reply = await self.request(method, url, what=what, **options)
        try:
            return json.loads(reply.body)
        except (ValueError, RecursionError) as error:
            failure = Failure("http", "the reply is not valid JSON", reply.status, reply_start(reply.body))
            raise self._to_error(failure, what, 1, options.get("secrets", ())) from error

    async def _attempt(
        self, method: str, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str], json_body: Any
    ) -> Reply | Failure:
        try:
            async with host_slot(url, self.limits.per_host), asyncio.timeout(self.limits.total_s):
                return await self._follow(method, url, params, headers, json_body)
        except FailureError as error:
            return error.failure
        except RefusedAddress as error:
            return Failure("refused", str(error))
        except aiohttp.ClientSSLError as error:
            return Failure("connection", f"no secure connection ({type(error).__name__})")
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, RefusedAddress):
                return Failure("refused", str(error.os_error))
            return Failure("connection", f"no connection ({error.os_error.strerror or 'unknown host'})", again=True)
        except aiohttp.ConnectionTimeoutError:
            return Failure("timeout", f"no connection within {self.limits.connect_s:g} s", again=True)
        except aiohttp.SocketTimeoutError:
            return Failure("timeout", f"no byte for {self.limits.read_s:g} s")
        except TimeoutError:
            return Failure("timeout", f"not complete within {self.limits.total_s:g} s")
        except aiohttp.ClientPayloadError as error:
            if isinstance(error.__cause__, ContentEncodingError):
                return Failure("binary", "the reply cannot be decompressed")
            return Failure("connection", "the connection was lost in the middle of the reply", again=True)
        except (aiohttp.ClientConnectionError, ConnectionError) as error:
            return Failure("connection", f"the connection was lost ({type(error).__name__})", again=True)
        except (aiohttp.ClientError, ValueError) as error:
            return Failure("connection", f"the reply is not proper HTTP ({type(error).__name__})")

    async def _follow(
        self, method: str, url: str, params: Mapping[str, str] | None, headers: Mapping[str, str], json_body: Any
    ) -> Reply:
        limits = self.limits
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.read_s)
        for _ in range(limits.max_redirects + 1):
            target = check_url(url, allow_private=not self.guarded)
            async with session(self.guarded).request(
                method,
                target,
                params=params,
                headers=headers,
                json=json_body,
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                location = response.headers.get("Location")
                if response.status in REDIRECT_STATUSES and location:
                    onward = _redirect_target(response.url, location)
                    if response.status == 303:
                        method, json_body = "GET", None
                    if (onward.scheme, onward.host, onward.port) != (target.scheme, target.host, target.port):
                        # Another server gets no keys.
                        headers = {"User-Agent": headers["User-Agent"]}
                    url, params = str(onward), None
                    continue
                body = await self._body(response)
                reply = Reply(
                    response.status,
                    {name.lower(): value for name, value in response.headers.items()},
                    body,
                    str(response.url),
                )
                if response.status >= 300:
                    raise FailureError(status_failure(reply.status, reply.headers, body))
                return reply
        raise FailureError(Failure("http", f"more than {limits.max_redirects} redirects"))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            body += chunk
            if len(body) > self.limits.max_bytes:
                text = f"the reply is longer than {self.limits.max_bytes} bytes"
                raise FailureError(Failure("too_large", text, response.status))
        return bytes(body)

    def _wait(self, failure: Failure, attempt: int) -> float | None:
        if not failure.again or attempt >= self.limits.attempts:
            return None
        if failure.retry_after is not None:
            # A little spread, so that all who were told the same moment do not come back at once.
            wait = failure.retry_after + random.uniform(0, 0.1 * self.limits.backoff_s)
            return wait if failure.retry_after <= self.limits.retry_after_s else None
        return random.uniform(0, self.limits.backoff_s * 2 ** (attempt - 1))

    def _to_error(self, failure: Failure, what: str, attempts: int, secrets: tuple[str, ...]) -> RetrievalError:
        return to_error(failure, self.error, self.provider, what, attempts=attempts, secrets=secrets)


def _redirect_target(here: URL, location: str) -> URL:
    try:
        return here.join(URL(location))
    except ValueError as error:
        text = f"the server redirects to {location!r:.200}, which is no address"
        raise FailureError(Failure("http", text)) from error
