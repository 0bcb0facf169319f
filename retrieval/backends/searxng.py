"""A SearXNG instance of your own.

Request and reply: https://docs.searxng.org/dev/search_api.html.
"""

from __future__ import annotations

from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, require_setting, shown_url
from retrieval.backends.refusals import explain
from retrieval.backends.shape import Record, day, describe_query, records, shape_error, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from signatures.errors import SearchError

MOST_PAGES = 10

_NO_JSON = (
    "the instance does not give JSON; put `formats: [html, json]` under `search:` in its settings.yml and restart it"
)
_LIMITED = (
    "rate limited by the instance's limiter; lower requests_per_second, or let this machine pass with `limiter: false` "
    "under `server:` in its settings.yml or with its address under `pass_ip` in its limiter.toml"
)


class SearxngSearch:
    """Searches a SearXNG instance.

    Args:
        endpoint: URL of the instance; by default the environment's SEARXNG_URL.
        engines: Names of its engines, separated by commas; empty for the instance's choice.
        categories: Its categories, separated by commas; SearXNG adds their engines to those named.
        language: Language of the results: `en`, `de-AT`, `all`, …
        safesearch: 0 off, 1 moderate, 2 strict.
        time_range: `day`, `week`, `month`, `year`, or empty for any time.
        limits: Time-outs, retries and caps.
        requests_per_second: How often to ask; None for no limit. The engines behind an instance suspend it when it
            asks too often.
    """

    name = "searxng"

    def __init__(
        self,
        endpoint: str | None = None,
        engines: str = "",
        categories: str = "",
        language: str = "en",
        safesearch: int = 0,
        time_range: str = "",
        limits: Limits | None = None,
        requests_per_second: float | None = 1.0,
    ) -> None:
        self.endpoint = endpoint
        self.engines = engines
        self.categories = categories
        self.language = language
        self.safesearch = safesearch
        self.time_range = time_range
        self._client = HttpClient(self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. Asks for further pages until `k` hits are there, at most 10."""
        require_setting(
            self.endpoint,
            "SEARXNG_URL",
            provider=self.name,
            meaning="the URL of your SearXNG instance, such as http://localhost:8080",
        )
        what = describe_query(query)
        hits: list[Hit] = []
        for number in range(1, MOST_PAGES + 1):
            reply = await self._page(query, number, what)
            known = len(hits)
            hits = web_hits([*hits, *self._parse(reply, what)], k)
            if not hits:
                self._check_engines(reply, what)
            if len(hits) >= k or len(hits) == known:
                break
        return hits

    def identity(self) -> str:
        """Return instance and options."""
        options = (self.engines, self.categories, self.language, str(self.safesearch), self.time_range)
        return ":".join((self.name, shown_url(self._url()), *options))

    def _url(self) -> str:
        address = optional_setting(self.endpoint, "SEARXNG_URL").rstrip("/")
        return address if address.endswith("/search") else f"{address}/search"

    async def _page(self, query: str, number: int, what: str) -> Any:
        params = {
            "q": query.strip(),
            "format": "json",
            "pageno": str(number),
            "engines": self.engines,
            "categories": self.categories,
            "language": self.language,
            "safesearch": str(self.safesearch),
            "time_range": self.time_range,
        }
        try:
            return await self._client.request_json(
                "GET", self._url(), what=what, params={name: value for name, value in params.items() if value}
            )
        except SearchError as error:
            meanings = {403: _NO_JSON, 429: _LIMITED}
            if error.body.startswith("<"):
                meanings[200] = _NO_JSON
            raise explain(error, what, meanings) from error

    def _parse(self, reply: Any, what: str) -> list[Hit]:
        found = records(reply["results"]) if isinstance(reply, dict) and "results" in reply else None
        if found is None:
            raise shape_error(self.name, what, "SearXNG's")
        return [
            Hit(
                title=text_field(record, "title"),
                url=text_field(record, "url"),
                snippet=text_field(record, "content"),
                date=day(text_field(record, "publishedDate")),
            )
            for record in found
        ]

    def _check_engines(self, reply: Record, what: str) -> None:
        engines = reply.get("unresponsive_engines")
        if not isinstance(engines, list) or not engines:
            return
        reasons = ", ".join(map(_reason, engines))
        raise SearchError(
            f"{self.name}: {what} failed: there are no results because engines did not answer: {reasons:.300}. Wait "
            "until the instance asks them again, or name other engines.",
            provider=self.name,
            status=200,
        )


def _reason(engine: Any) -> str:
    # `["google", "timeout"]`.
    words = [word for word in engine if isinstance(word, str)] if isinstance(engine, list) else []
    return f"{words[0]} ({', '.join(words[1:]) or 'no reason given'})" if words else "one without a name"
