"""One attempt of a request: through the guard and the proxy, over redirects, to the last byte of the reply."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
from yarl import URL

from retrieval.http.decompression import ACCEPTED, Decoder
from retrieval.http.failures import Failure, FailureError, status_failure
from retrieval.http.guard import RefusedAddress, check_url
from retrieval.http.limits import Limits
from retrieval.http.proxies import proxy_for, warn_of_rebinding
from retrieval.http.sessions import MakeResolver, guarded_resolver, session

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
CHUNK_BYTES = 65_536
ERROR_BYTES = 8192
"""So much of the body of an error is read, and not for longer than `ERROR_S`."""
ERROR_S = 2.0
_HARMLESS_HEADERS = frozenset({"user-agent", "accept", "accept-language", "accept-encoding"})


@dataclass(frozen=True)
class Request:
    """What is to be sent.

    Attributes:
        method: HTTP method.
        url: Absolute URL.
        params: Query parameters, added to the URL's own.
        headers: Header fields.
        json_body: Body to send as JSON, or None.
        data: Body to send as a form (a mapping) or as it is (bytes), or None.
    """

    method: str
    url: str
    params: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    json_body: Any = None
    data: Mapping[str, str] | bytes | None = None


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


async def exchange(
    request: Request,
    limits: Limits,
    *,
    guarded: bool = False,
    resolver: MakeResolver | None = None,
    on_headers: Callable[[Mapping[str, str]], None] | None = None,
) -> Reply | Failure:
    """Send a request once and read the whole reply.

    Args:
        request: What to send.
        limits: Time-outs and caps.
        guarded: Refuse addresses that are not public; see `retrieval.http.guard`.
        resolver: What names are resolved with when `guarded`; by default the system's resolver.
        on_headers: Is given the header fields (names in lower case) of the reply, whatever its status.

    Returns:
        The reply, with a status below 300, or what went wrong.
    """
    attempt = _Attempt(limits, guarded, resolver, on_headers)
    try:
        async with asyncio.timeout(limits.total_s):
            return await attempt.follow(request)
    except FailureError as error:
        return error.failure
    except RefusedAddress as error:
        return Failure("refused", str(error))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _describe(error, limits)


class _Attempt:
    def __init__(
        self,
        limits: Limits,
        guarded: bool,
        resolver: MakeResolver | None,
        on_headers: Callable[[Mapping[str, str]], None] | None,
    ) -> None:
        self.limits = limits
        self.guarded = guarded
        self.resolver = resolver
        self.on_headers = on_headers
        self.timeout = aiohttp.ClientTimeout(total=None, sock_connect=limits.connect_s, sock_read=limits.read_s)

    async def follow(self, request: Request) -> Reply:
        for _ in range(self.limits.max_redirects + 1):
            target = check_url(request.url, allow_private=not self.guarded)
            proxy, sender = await self._way(target)
            async with sender.request(
                request.method,
                target,
                params=request.params,
                headers={**(request.headers or {}), "Accept-Encoding": ACCEPTED},
                json=request.json_body,
                data=request.data,
                proxy=proxy,
                timeout=self.timeout,
                allow_redirects=False,
            ) as response:
                location = response.headers.get("Location")
                if response.status in REDIRECT_STATUSES and location:
                    request = _redirected(request, response, target, location)
                    continue
                return await self._reply(response)
        raise FailureError(Failure("http", f"more than {self.limits.max_redirects} redirects"))

    async def _way(self, target: URL) -> tuple[URL | None, aiohttp.ClientSession]:
        proxy = proxy_for(target)
        if proxy is None:
            return None, session(self.guarded, self.resolver)
        if self.guarded:
            warn_of_rebinding()
            try:
                await guarded_resolver(self.resolver).check_all(target.raw_host or "", target.port or 0)
            except RefusedAddress:
                raise
            except OSError as error:
                text = (
                    f"{target.host} cannot be resolved here, so it cannot be checked before the proxy fetches it; "
                    "--allow-private leaves the check out"
                )
                raise FailureError(Failure("connection", text)) from error
        # The proxy itself is configured, so it may be at any address.
        return proxy, session(False)

    async def _reply(self, response: aiohttp.ClientResponse) -> Reply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        if self.on_headers is not None:
            self.on_headers(headers)
        if response.status >= 300:
            raise FailureError(status_failure(response.status, headers, await self._error_start(response)))
        limits = self.limits
        try:
            if (response.content_length or 0) > limits.max_bytes:
                raise FailureError(Failure("too_large", f"the reply is longer than {limits.max_bytes} bytes"))
            decoder = Decoder(headers.get("content-encoding", ""), limits.max_bytes, limits.max_ratio)
            async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                decoder.feed(chunk)
            return Reply(response.status, headers, decoder.finish(), str(response.url))
        except FailureError as error:
            raise FailureError(replace(error.failure, status=response.status)) from error

    async def _error_start(self, response: aiohttp.ClientResponse) -> bytes:
        # Whatever is wrong with the body, the status is what happened.
        body = bytearray()
        with contextlib.suppress(FailureError, aiohttp.ClientError, TimeoutError):
            decoder = Decoder(response.headers.get("Content-Encoding", ""), ERROR_BYTES, self.limits.max_ratio)
            body = decoder.body
            async with asyncio.timeout(ERROR_S):
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    decoder.feed(chunk)
        return bytes(body)


def _redirected(request: Request, response: aiohttp.ClientResponse, here: URL, location: str) -> Request:
    try:
        onward = here.join(URL(location))
    except ValueError as error:
        text = f"the server redirects to {location!r:.200}, which is no address"
        raise FailureError(Failure("http", text)) from error
    if response.status == 303:
        request = replace(request, method="GET", json_body=None, data=None)
    if not _same_server(here, onward):
        if request.json_body is not None or request.data is not None:
            text = f"the server redirects to another one, {onward.host}, which is not sent what was meant for the first"
            raise FailureError(Failure("http", text, response.status))
        # Another server gets no keys.
        kept = {name: value for name, value in (request.headers or {}).items() if name.lower() in _HARMLESS_HEADERS}
        request = replace(request, headers=kept)
    return replace(request, url=str(onward), params=None)


def _same_server(one: URL, other: URL) -> bool:
    if one.host != other.host:
        return False
    upgraded = (one.scheme, one.port, other.scheme, other.port) == ("http", 80, "https", 443)
    return upgraded or (one.scheme, one.port) == (other.scheme, other.port)


def _describe(error: Exception, limits: Limits) -> Failure:
    match error:
        case aiohttp.ClientSSLError():
            return Failure("connection", f"no secure connection ({type(error).__name__})")
        case aiohttp.ClientConnectorError():
            if isinstance(error.os_error, RefusedAddress):
                return Failure("refused", str(error.os_error))
            where = " to the proxy" if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
            why = error.os_error.strerror or "unknown host"
            return Failure("connection", f"no connection{where} ({why})", again=True)
        case aiohttp.ClientHttpProxyError():
            again = error.status >= 500
            return Failure(
                "connection", f"the proxy answered {error.status} to the request for a connection", again=again
            )
        case aiohttp.ConnectionTimeoutError():
            return Failure("timeout", f"no connection within {limits.connect_s:g} s", again=True)
        case aiohttp.SocketTimeoutError():
            return Failure("timeout", f"no byte for {limits.read_s:g} s")
        case TimeoutError():
            return Failure("timeout", f"not complete within {limits.total_s:g} s")
        case aiohttp.ClientPayloadError():
            return Failure("connection", "the connection was lost in the middle of the reply", again=True)
        case aiohttp.ClientConnectionError() | ConnectionError():
            return Failure("connection", f"the connection was lost ({type(error).__name__})", again=True)
        case aiohttp.InvalidURL():
            return Failure("refused", "it is not a valid URL")
        case _:
            return Failure("connection", f"the reply is not proper HTTP ({type(error).__name__})")
