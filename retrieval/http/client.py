"""The one HTTP client of all network backends and readers: turns, retries, caps and errors.

A backend or reader only builds requests and parses replies. One attempt is in `retrieval.http.exchange`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from retrieval.http.exchange import Reply, Request, exchange
from retrieval.http.failures import Failure, paused_failure, reply_start, retry_wait, to_error
from retrieval.http.limits import Limits
from retrieval.http.proxies import proxy_secrets
from retrieval.http.rates import Bucket, PausedError, Rate, bucket_for, wait_turn
from retrieval.http.sessions import MakeResolver, host_slot
from signatures.errors import RetrievalError

__all__ = ["HttpClient", "Limits", "Rate", "Reply"]

SHORTEST_KEY = 8
"""Shorter values in the query string of a configured address are settings, not keys."""
USER_AGENT = "search-o1 (research; https://arxiv.org/abs/2501.05366)"

Pace = Callable[[Mapping[str, str]], float | None]


class HttpClient:
    """Sends requests for one backend or reader.

    It holds options only; sessions and buckets are the process's, so it survives pickling and deepcopy.

    Args:
        provider: Name of the backend or reader, for errors.
        error: What failures become: `SearchError` or `ReadError`.
        limits: Time-outs, retries and caps.
        guarded: Refuse addresses that are not public; see `retrieval.http.guard`.
        rate: How often one host may be asked, or None for no limit but `limits.per_host`. All clients with the same
            provider and rate share it.
        pace: Reads from the header fields (names in lower case) of any reply, whatever its status, how many seconds the
            provider is not to be asked again, or None; a module-level function, so that the client can be pickled.
        resolver: Makes what names are resolved with when `guarded`; by default the system's resolver. A module-level
            function or class, as `pace`.
    """

    def __init__(
        self,
        provider: str,
        error: type[RetrievalError],
        *,
        limits: Limits | None = None,
        guarded: bool = False,
        rate: Rate | None = None,
        pace: Pace | None = None,
        resolver: MakeResolver | None = None,
    ) -> None:
        self.provider = provider
        self.error = error
        self.limits = limits or Limits()
        self.guarded = guarded
        self.rate = rate
        self.pace = pace
        self.resolver = resolver

    async def request(
        self,
        method: str,
        url: str,
        *,
        what: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        json_body: Any = None,
        data: Mapping[str, str] | bytes | None = None,
        secrets: tuple[str, ...] = (),
    ) -> Reply:
        """Send a request, again when that can help, and read the whole reply.

        A reply with status 429 pauses the provider's bucket for that host, for everybody in the process. A pause, by
        429 or by `pace`, that is longer than `limits.retry_after_s` fails at once and sends nothing.

        Args:
            method: HTTP method.
            url: Absolute URL.
            what: What is asked for, for errors: `the query 'x'`, `the page https://…`.
            params: Query parameters.
            headers: Header fields.
            json_body: Body to send as JSON.
            data: Body to send as a form (a mapping) or as it is (bytes), in place of `json_body`.
            secrets: Strings that must not appear in errors.

        Returns:
            A reply with a status below 300.

        Raises:
            SearchError: It failed, if `error` is that type; its status is 429 when the provider limits the rate.
            ReadError: It failed, if `error` is that type; `reason` says how.
        """
        headers = {"User-Agent": USER_AGENT, **(headers or {})}
        # What a provider is asked at was set by the user, and may hold a key; what a page is read from may be cited.
        secrets = (*secrets, *_password(url), *(() if self.guarded else _query_values(url)))
        unsendable = _unsendable(headers)
        if unsendable is not None:
            raise self._to_error(unsendable, what, 0, secrets)
        request = Request(method, url, params, headers, json_body, data)
        bucket = bucket_for(self.provider, _server(url), self.rate)
        attempt = 1
        while True:
            try:
                outcome = await self._in_turn(bucket, request)
            except PausedError as paused:
                raise self._to_error(paused_failure(paused.seconds), what, attempt - 1, secrets) from None
            if isinstance(outcome, Reply):
                return outcome
            wait = retry_wait(self.limits, outcome, attempt)
            if outcome.status == 429:
                bucket.pause(outcome.retry_after if outcome.retry_after is not None else wait or self.limits.backoff_s)
            if wait is None:
                raise self._to_error(outcome, what, attempt, secrets)
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
            failure = Failure("http", _no_json(reply.body), reply.status, reply_start(reply.body))
            raise self._to_error(failure, what, 1, options.get("secrets", ())) from error

    async def _in_turn(self, bucket: Bucket, request: Request) -> Reply | Failure:
        ticket = bucket.enter()
        try:
            while True:
                await wait_turn(bucket, ticket, self.limits.retry_after_s)
                async with host_slot(request.url, self.limits.per_host):
                    # Waiting for the slot may have taken long enough for a pause to begin.
                    if bucket.go(ticket):
                        return await exchange(
                            request,
                            self.limits,
                            guarded=self.guarded,
                            resolver=self.resolver,
                            on_headers=lambda headers: self._heed(bucket, headers),
                        )
        finally:
            bucket.leave(ticket)

    def _heed(self, bucket: Bucket, headers: Mapping[str, str]) -> None:
        if self.pace is not None and (seconds := self.pace(headers)) is not None:
            bucket.pause(seconds)

    def _to_error(self, failure: Failure, what: str, attempts: int, secrets: tuple[str, ...]) -> RetrievalError:
        secrets = (*secrets, *proxy_secrets())
        return to_error(failure, self.error, self.provider, what, attempts=attempts, secrets=secrets)


def _no_json(body: bytes) -> str:
    if not body.strip():
        return "the reply is empty, not valid JSON"
    page = " (a login or error page?)" if body.lstrip().startswith(b"<") else ""
    return f"the reply is not valid JSON{page}"


def _server(url: str) -> str:
    return _authority(url).rpartition("@")[2].lower()


def _authority(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _password(url: str) -> tuple[str, ...]:
    password = _authority(url).rpartition("@")[0].partition(":")[2]
    return (password, unquote(password)) if password else ()


def _query_values(url: str) -> tuple[str, ...]:
    try:
        values = [value for _, value in parse_qsl(urlsplit(url).query) if len(value) >= SHORTEST_KEY]
    except ValueError:
        return ()
    return tuple(values)


def _unsendable(headers: Mapping[str, str]) -> Failure | None:
    for name, value in headers.items():
        if any(character < " " and character != "\t" for character in name + value):
            return Failure(
                "http", f"the value for the header field {name!r:.60} holds a line break or control character"
            )
    return None
