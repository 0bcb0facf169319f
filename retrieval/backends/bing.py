"""Bing Web Search v7: its request and reply shape, at an endpoint of your choice.

Microsoft retired its own endpoint in August 2025; proxies and recorded replies still speak this shape.
"""

from __future__ import annotations

from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, require_setting, shown_url
from retrieval.backends.refusals import explain
from retrieval.backends.shape import Record, records, shape_error, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from retrieval.passages import strip_tags
from signatures.errors import SearchError

MOST_PER_REQUEST = 50
"""The API gives no more results than this in one reply."""

_REFUSED = "the key is not accepted; check BING_KEY"
_FIELDS = frozenset({"_type", "queryContext", "rankingResponse", "webPages"})


class BingSearch:
    """Searches a server that speaks Bing Web Search v7.

    Args:
        endpoint: Full URL of its search route; by default the environment's BING_ENDPOINT.
        key: Subscription key; by default the environment's BING_KEY.
        market: Market of the results, such as `en-US` or `zh-CN`.
        language: Language of the interface strings; by default the market's.
        limits: Time-outs, retries and caps.
        requests_per_second: How often to ask; None for no limit.
    """

    name = "bing"

    def __init__(
        self,
        endpoint: str | None = None,
        key: str | None = None,
        market: str = "en-US",
        language: str | None = None,
        limits: Limits | None = None,
        requests_per_second: float | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.market = market
        self.language = language or market.partition("-")[0]
        self._key = key
        self._client = HttpClient(self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. More than 50 hits cannot be had."""
        endpoint = require_setting(
            self.endpoint, "BING_ENDPOINT", provider=self.name, meaning="the URL of a server that speaks Bing v7"
        )
        key = require_setting(self._key, "BING_KEY", provider=self.name, meaning="your subscription key")
        what = f"the query {query!r:.200}"
        try:
            reply = await self._client.request_json(
                "GET",
                endpoint,
                what=what,
                params={
                    "q": query,
                    "mkt": self.market,
                    "setLang": self.language,
                    "count": str(max(1, min(k, MOST_PER_REQUEST))),
                    "textDecorations": "true",
                    "textFormat": "HTML",
                },
                headers={"Ocp-Apim-Subscription-Key": key},
                secrets=(key,),
            )
        except SearchError as error:
            if error.status != 410:
                raise explain(error, what, {401: _REFUSED, 403: _REFUSED}) from error
            raise SearchError(
                f"bing: {what} failed: the endpoint answers 410, it is retired (Microsoft closed its own in August "
                "2025). Set BING_ENDPOINT to a proxy that speaks Bing v7, or choose another search backend.",
                provider=self.name,
                status=410,
                body=error.body,
            ) from error
        return web_hits(self._parse(reply, what), k)

    def identity(self) -> str:
        """Return endpoint, market and language."""
        endpoint = shown_url(optional_setting(self.endpoint, "BING_ENDPOINT"))
        return f"{self.name}:{endpoint}:{self.market}:{self.language}"

    def _parse(self, reply: Any, what: str) -> list[Hit]:
        # A query without results has no `webPages`, but still says what was asked; a proxy's own complaint does not.
        if not isinstance(reply, dict) or not _FIELDS & reply.keys():
            raise shape_error(self.name, what, "Bing v7")
        pages = reply.get("webPages") or {}
        found = records(pages.get("value")) if isinstance(pages, dict) else None
        if found is None:
            raise shape_error(self.name, what, "Bing v7")
        return [_hit(record) for record in found]


def _hit(record: Record) -> Hit:
    return Hit(
        title=strip_tags(text_field(record, "name")),
        url=text_field(record, "url"),
        snippet=strip_tags(text_field(record, "snippet")),
        date=text_field(record, "datePublished").partition("T")[0],
        site=text_field(record, "siteName"),
    )
