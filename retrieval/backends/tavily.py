"""The Tavily search API.

Request, reply and statuses: https://docs.tavily.com/documentation/api-reference/endpoint/search.
"""

from __future__ import annotations

from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, require_setting, route_url, shown_url
from retrieval.backends.refusals import explain, refused_key
from retrieval.backends.shape import cut_query, day, describe_query, records, shape_error, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from signatures.errors import SearchError

SERVER = "https://api.tavily.com/search"
MOST_PER_REQUEST = 20
MOST_QUERY_CHARS = 400
"""Longer queries are answered with status 400."""

_KEYS_AT = "https://app.tavily.com"
_REFUSED = refused_key("TAVILY_API_KEY", _KEYS_AT)
_MEANINGS = {
    401: _REFUSED,
    403: _REFUSED,
    432: f"the usage limit of the key or of the plan is reached; raise it at {_KEYS_AT} or wait for the next month",
    433: f"the limit set for pay-as-you-go use is reached; raise it at {_KEYS_AT}",
}


class TavilySearch:
    """Searches with Tavily.

    Args:
        endpoint: URL of a server that speaks its API; by default the environment's TAVILY_URL, else Tavily's own.
        key: API key; by default the environment's TAVILY_API_KEY.
        search_depth: `basic` (one credit a search) or `advanced` (two credits, longer snippets).
        topic: `general`, `news` or `finance`.
        limits: Time-outs, retries and caps.
        requests_per_second: How often to ask; None for no limit. A development key takes 100 a minute.
    """

    name = "tavily"

    def __init__(
        self,
        endpoint: str | None = None,
        key: str | None = None,
        search_depth: str = "basic",
        topic: str = "general",
        limits: Limits | None = None,
        requests_per_second: float | None = 1.5,
    ) -> None:
        self.endpoint = endpoint
        self.search_depth = search_depth
        self.topic = topic
        self._key = key
        self._client = HttpClient(self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. More than 20 hits cannot be had."""
        key = require_setting(self._key, "TAVILY_API_KEY", provider=self.name, meaning=f"your key from {_KEYS_AT}")
        what = describe_query(query)
        try:
            reply = await self._client.request_json(
                "POST",
                self._url(),
                what=what,
                json_body={
                    "query": cut_query(query, MOST_QUERY_CHARS),
                    "max_results": max(1, min(k, MOST_PER_REQUEST)),
                    "search_depth": self.search_depth,
                    "topic": self.topic,
                },
                headers={"Authorization": f"Bearer {key}"},
                secrets=(key,),
            )
        except SearchError as error:
            raise explain(error, what, _MEANINGS) from error
        return self._parse(reply, what, k)

    def identity(self) -> str:
        """Return server, depth and topic."""
        return f"{self.name}:{shown_url(self._url())}:{self.search_depth}:{self.topic}"

    def _url(self) -> str:
        return route_url(optional_setting(self.endpoint, "TAVILY_URL", SERVER), "/search")

    def _parse(self, reply: Any, what: str, k: int) -> list[Hit]:
        found = records(reply["results"]) if isinstance(reply, dict) and "results" in reply else None
        if found is None:
            raise shape_error(self.name, what, "Tavily's")
        return web_hits(
            (
                Hit(
                    title=text_field(record, "title"),
                    url=text_field(record, "url"),
                    snippet=text_field(record, "content"),
                    date=day(text_field(record, "published_date")),
                )
                for record in found
            ),
            k,
        )
