"""The Brave Search API.

Request, reply and header fields: https://api-dashboard.search.brave.com/documentation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, require_setting, route_url, shown_url
from retrieval.backends.refusals import explain, refused_key
from retrieval.backends.shape import (
    Record,
    cut_query,
    day,
    describe_query,
    object_field,
    records,
    shape_error,
    text_field,
    web_hits,
)
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from retrieval.passages import strip_tags
from signatures.errors import SearchError

ROUTE = "/res/v1/web/search"
SERVER = f"https://api.search.brave.com{ROUTE}"
MOST_PER_REQUEST = 20
LAST_OFFSET = 9
"""Pages are numbered from 0; the API knows no later one."""
MOST_QUERY_CHARS = 400
MOST_QUERY_WORDS = 50

LONGEST_WINDOW_S = 3600
"""A window that is closed for longer is the plan's quota."""

_KEYS_AT = "https://api-dashboard.search.brave.com/app/keys"
_REFUSED = refused_key("BRAVE_API_KEY", _KEYS_AT)
_QUOTA = (
    "the monthly quota of the plan is spent; wait for the next month, raise it at "
    "https://api-dashboard.search.brave.com, or choose another search backend"
)
_NO_SUBSCRIPTION = f"the key has no subscription to web search; add one at {_KEYS_AT}"
# What the client says of a request that it held back because of `pace`.
_HELD_BACK = re.compile(r"for (\d+) s more")
_QUOTA_CODES = ("QUOTA_LIMITED", "USAGE_LIMIT_EXCEEDED")


class BraveSearch:
    """Searches with Brave.

    Args:
        endpoint: URL of a server that speaks its API; by default the environment's BRAVE_URL, else Brave's own.
        key: Subscription token; by default the environment's BRAVE_API_KEY.
        country: Country of the results, two letters, or `ALL`.
        search_lang: Language of the results: `en`, `zh-hans`, …
        extra_snippets: Ask for up to five more passages of every page, which not every plan has; they are appended to
            the snippet.
        limits: Time-outs, retries and caps.
        requests_per_second: How often to ask; None for no limit. The smallest plan takes one a second.
    """

    name = "brave"

    def __init__(
        self,
        endpoint: str | None = None,
        key: str | None = None,
        country: str = "US",
        search_lang: str = "en",
        extra_snippets: bool = False,
        limits: Limits | None = None,
        requests_per_second: float | None = 1.0,
    ) -> None:
        self.endpoint = endpoint
        self.country = country
        self.search_lang = search_lang
        self.extra_snippets = extra_snippets
        self._key = key
        self._client = HttpClient(
            self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name), pace=pace
        )

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. Every 20 hits are a request, at most 200 can be had."""
        key = require_setting(
            self._key, "BRAVE_API_KEY", provider=self.name, meaning=f"your subscription token from {_KEYS_AT}"
        )
        what = describe_query(query)
        hits: list[Hit] = []
        for offset in range(LAST_OFFSET + 1):
            reply = await self._page(query, k, offset, key, what)
            found, more = self._parse(reply, what)
            # Pages overlap.
            hits = web_hits([*hits, *found], k)
            if len(hits) >= k or not more or not found:
                break
        return hits

    def identity(self) -> str:
        """Return server, country, language and whether more passages are asked for."""
        extra = ":extra" if self.extra_snippets else ""
        return f"{self.name}:{shown_url(self._url())}:{self.country}:{self.search_lang}{extra}"

    def _url(self) -> str:
        return route_url(optional_setting(self.endpoint, "BRAVE_URL", SERVER), ROUTE)

    async def _page(self, query: str, k: int, offset: int, key: str, what: str) -> Any:
        params = {
            "q": cut_query(query, MOST_QUERY_CHARS, MOST_QUERY_WORDS),
            "count": str(max(1, min(k, MOST_PER_REQUEST))),
            "offset": str(offset),
            "country": self.country,
            "search_lang": self.search_lang,
            "result_filter": "web",
            "text_decorations": "false",
        }
        if self.extra_snippets:
            params["extra_snippets"] = "true"
        headers = {"X-Subscription-Token": key, "Accept": "application/json"}
        try:
            return await self._client.request_json(
                "GET", self._url(), what=what, params=params, headers=headers, secrets=(key,)
            )
        except SearchError as error:
            raise _explain(error, what) from error

    def _parse(self, reply: Any, what: str) -> tuple[list[Hit], bool]:
        # A query without results has no `web`, but still says what was asked.
        if not isinstance(reply, dict) or not ({"web", "query"} & reply.keys()):
            raise shape_error(self.name, what, "Brave's")
        web = reply.get("web")
        found = records(web.get("results")) if isinstance(web, dict) else records(web)
        if found is None:
            raise shape_error(self.name, what, "Brave's")
        more = object_field(reply, "query").get("more_results_available") is True
        return [_hit(record) for record in found], more


def pace(headers: Mapping[str, str]) -> float | None:
    """Read from Brave's header fields how long it must not be asked again.

    They give one value for each window, the shortest first: `X-RateLimit-Limit: 1, 15000`,
    `X-RateLimit-Remaining: 0, 1234`, `X-RateLimit-Reset: 1, 419704` (seconds). A plan without a monthly quota has the
    limit 0 there.

    Args:
        headers: Header fields, names in lower case.

    Returns:
        Seconds until the last spent window opens; None when none is spent or the fields make no sense. A spent quota
        gives days, which the client does not wait for.
    """
    limits, remaining, resets = (_numbers(headers, name) for name in ("limit", "remaining", "reset"))
    waits = [
        float(reset)
        for limit, left, reset in zip(limits, remaining, resets, strict=False)
        if limit > 0 and left <= 0 and reset > 0
    ]
    return max(waits, default=None)


def _numbers(headers: Mapping[str, str], name: str) -> list[int]:
    parts = [part.strip() for part in headers.get(f"x-ratelimit-{name}", "").split(",")]
    return [int(part) for part in parts] if all(part.isascii() and part.isdigit() for part in parts) else []


def _explain(error: SearchError, what: str) -> SearchError:
    status = error.status or 0
    held_back = _HELD_BACK.search(str(error)) if status == 429 else None
    if held_back and int(held_back[1]) > LONGEST_WINDOW_S:
        days = int(held_back[1]) / 86_400
        text = f"{error.provider}: {what} was not sent: {_QUOTA} (rate limited for {days:.1f} days more)."
        return SearchError(text, provider=error.provider, status=429)
    if status == 402 or any(code in error.body for code in _QUOTA_CODES):
        return explain(error, what, {status: _QUOTA})
    # A wrong token is answered 422, as a wrong parameter is; only the reply tells them apart.
    if status == 422 and "TOKEN" not in error.body.upper():
        return error
    return explain(error, what, {401: _REFUSED, 403: _REFUSED, 422: _REFUSED, 404: _NO_SUBSCRIPTION})


def _hit(record: Record) -> Hit:
    more = record.get("extra_snippets")
    passages = [text_field(record, "description")]
    if isinstance(more, list):
        passages += [text_field({"text": passage}, "text") for passage in more]
    return Hit(
        title=strip_tags(text_field(record, "title")),
        url=text_field(record, "url"),
        snippet=" ".join(filter(None, map(strip_tags, passages))),
        date=day(text_field(record, "page_age")),
        site=strip_tags(text_field(object_field(record, "profile"), "name"))
        or text_field(object_field(record, "meta_url"), "hostname"),
    )
