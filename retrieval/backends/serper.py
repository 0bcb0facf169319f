"""Google results by serper.dev.

Request and reply: https://serper.dev/playground. A search of up to 10 results costs one credit, of more two.
"""

from __future__ import annotations

from typing import Any

from retrieval.backends.environment import optional_setting, rate_of, require_setting, route_url, shown_url
from retrieval.backends.refusals import explain, refused_key
from retrieval.backends.shape import cut_query, describe_query, records, shape_error, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from signatures.errors import SearchError

SERVER = "https://google.serper.dev/search"
MOST_PER_REQUEST = 100
MOST_QUERY_CHARS = 2048

_KEYS_AT = "https://serper.dev/api-keys"
_REFUSED = refused_key("SERPER_API_KEY", _KEYS_AT)


class SerperSearch:
    """Searches Google through serper.dev.

    Args:
        endpoint: URL of a server that speaks its API; by default the environment's SERPER_URL, else serper.dev.
        key: API key; by default the environment's SERPER_API_KEY.
        country: Country of the results (Google's `gl`): `us`, `de`, …
        language: Language of the results (Google's `hl`): `en`, `de`, …
        limits: Time-outs, retries and caps.
        requests_per_second: How often to ask; None for no limit. The smallest plan takes 50 a second.
    """

    name = "serper"

    def __init__(
        self,
        endpoint: str | None = None,
        key: str | None = None,
        country: str = "us",
        language: str = "en",
        limits: Limits | None = None,
        requests_per_second: float | None = 50.0,
    ) -> None:
        self.endpoint = endpoint
        self.country = country
        self.language = language
        self._key = key
        self._client = HttpClient(self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name))

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. More than 100 hits cannot be had."""
        key = require_setting(self._key, "SERPER_API_KEY", provider=self.name, meaning=f"your key from {_KEYS_AT}")
        what = describe_query(query)
        try:
            reply = await self._client.request_json(
                "POST",
                self._url(),
                what=what,
                json_body={
                    "q": cut_query(query, MOST_QUERY_CHARS),
                    "num": max(1, min(k, MOST_PER_REQUEST)),
                    "gl": self.country,
                    "hl": self.language,
                },
                headers={"X-API-KEY": key},
                secrets=(key,),
            )
        except SearchError as error:
            if error.status == 400 and "credits" in error.body.lower():
                raise explain(
                    error, what, {400: "the account has no credits left; buy more at https://serper.dev/billing"}
                ) from error
            raise explain(error, what, {401: _REFUSED, 403: _REFUSED}) from error
        return self._parse(reply, what, k)

    def identity(self) -> str:
        """Return server, country and language."""
        return f"{self.name}:{shown_url(self._url())}:{self.country}:{self.language}"

    def _url(self) -> str:
        return route_url(optional_setting(self.endpoint, "SERPER_URL", SERVER), "/search")

    def _parse(self, reply: Any, what: str, k: int) -> list[Hit]:
        # A search without results has no `organic`, but still says what was searched. The answer box and the
        # knowledge graph are Google's own words, not pages.
        if not isinstance(reply, dict) or not ({"organic", "searchParameters"} & reply.keys()):
            raise shape_error(self.name, what, "Serper's")
        found = records(reply.get("organic"))
        if found is None:
            raise shape_error(self.name, what, "Serper's")
        return web_hits(
            (
                Hit(
                    title=text_field(record, "title"),
                    url=text_field(record, "link"),
                    snippet=text_field(record, "snippet"),
                    date=text_field(record, "date"),
                )
                for record in found
            ),
            k,
        )
