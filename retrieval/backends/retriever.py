"""Retrieval servers of research code: Search-R1's `/retrieve`, FlashRAG's and ReCall's `/search` and `/batch_search`.

Sources: search_r1/search/retrieval_server.py, retrieval_rerank_server.py, google_search_server.py and
serp_search_server.py of PeterGriffinJin/Search-R1; scripts/serving/retriever_serving.py of Agent-RL/ReCall.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

from retrieval.backends.batching import MicroBatcher
from retrieval.backends.environment import optional_setting, rate_of, require_setting
from retrieval.backends.retriever_replies import make_hits, split_reply
from retrieval.backends.shape import describe_query
from retrieval.base import Hit
from retrieval.http.client import HttpClient, Limits
from signatures.errors import OptionError, SearchError

STYLES = {
    "search_r1": "retrieve",
    "search_r1_rerank": "retrieve",
    "flashrag": "search",
    "flashrag_batch": "batch_search",
}
"""Request styles, and the last part of the path they live at."""

_ONE_BY_ONE = ("flashrag", "search_r1_rerank")
# One query in a batch, or its size, can bring this about for all of them; 200 is a reply too long or cut short.
_BATCH_FAULTS = (200, 400, 413, 422, 500)
_WRONG_ROUTE = (404, 405, 422)


class RetrieverSearch:
    """Searches a retrieval server; hits bring their whole passage, so that nothing needs to be read.

    Documents without a `url` have the address `retriever://HOST/ID`, or a hash of their content in place of the id.

    Args:
        endpoint: URL of the server, by default the environment's RETRIEVER_URL; without a path, the style's is used.
        style: How requests look: `search_r1`; `search_r1_rerank` (its reranking server, which counts in
            `topk_rerank`); `flashrag` (FlashRAG and ReCall, one query a request); `flashrag_batch`; `auto` goes by the
            path: `/retrieve`, `/search`, `/batch_search`.
        corpus: Name for what the server serves, such as `wiki-18-e5`. It stands for the host in addresses and in the
            cache, so that the same index served elsewhere counts as the same, and is the hits' site.
        limits: Time-outs, retries and caps.
        requests_per_second: How often the server may be asked, or None for no limit.
        batch_size: Most queries in one request, for styles that take several; 1 sends each alone.
        batch_wait_ms: How long a query waits for others to go with it.

    Raises:
        OptionError: The style is unknown, or a number is impossible.
    """

    name = "retriever"

    def __init__(
        self,
        endpoint: str | None = None,
        style: str = "auto",
        corpus: str = "",
        limits: Limits | None = None,
        requests_per_second: float | None = None,
        batch_size: int = 32,
        batch_wait_ms: float = 2.0,
    ) -> None:
        if style != "auto" and style not in STYLES:
            raise OptionError(f"retriever: unknown style {style!r}; known are: auto, {', '.join(STYLES)}.")
        if batch_size < 1 or batch_wait_ms < 0:
            raise OptionError(
                f"retriever: batch_size must be at least 1 and batch_wait_ms at least 0, not {batch_size} and "
                f"{batch_wait_ms}."
            )
        self.endpoint = endpoint
        self.style = style
        self.corpus = corpus
        self._together = batch_size > 1
        self._client = HttpClient(self.name, SearchError, limits=limits, rate=rate_of(requests_per_second, self.name))
        self._batcher = MicroBatcher(batch_size, batch_wait_ms / 1000)

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`."""
        given = require_setting(
            self.endpoint, "RETRIEVER_URL", provider=self.name, meaning="the URL of your retrieval server"
        )
        endpoint, style = self._route(given)
        if not self._together or style in _ONE_BY_ONE:
            return await self._ask_one(endpoint, style, query, k)

        async def ask(queries: Sequence[str]) -> list[list[Hit] | Exception]:
            return await self._ask_together(endpoint, style, queries, k)

        return await self._batcher.ask((endpoint, style, k), query, ask)

    def identity(self) -> str:
        """Return style and server; the corpus name in place of the server where one is given."""
        given = optional_setting(self.endpoint, "RETRIEVER_URL")
        if self.corpus or not given:
            return f"{self.name}:{self.style}:{self.corpus}"
        endpoint, style = self._route(given)
        parts = urlsplit(endpoint)
        # A query string may hold a key; a hash of it tells servers apart as well.
        query = hashlib.sha256(parts.query.encode()).hexdigest()[:12] if parts.query else ""
        return f"{self.name}:{style}:{parts.scheme}://{_host(parts)}{parts.path}{query and '?' + query}"

    def _route(self, given: str) -> tuple[str, str]:
        """Return (full URL, style)."""
        try:
            parts = urlsplit(given if "://" in given else f"http://{given}")
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            valid = False
        if not valid:
            raise SearchError(
                f"retriever: {given.rpartition('@')[2]!r:.200} is no address of a server; write RETRIEVER_URL "
                "like http://localhost:8000/retrieve.",
                provider=self.name,
            )
        path = parts.path.rstrip("/")
        style = self.style
        if style == "auto":
            last = path.rpartition("/")[2]
            style = next((known for known, route in STYLES.items() if route == last), "search_r1")
        return parts._replace(path=parts.path if path else f"/{STYLES[style]}").geturl(), style

    async def _ask_together(
        self, endpoint: str, style: str, queries: Sequence[str], k: int
    ) -> list[list[Hit] | Exception]:
        if len(queries) > 1:
            found = await self._try_together(endpoint, style, queries, k)
            if found is not None:
                return [
                    self._hits(endpoint, query, documents, k) for query, documents in zip(queries, found, strict=True)
                ]
        alone = (self._ask_one(endpoint, style, query, k) for query in queries)
        answers = await asyncio.gather(*alone, return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Exception):
                raise answer
        return answers  # type: ignore[return-value]

    async def _try_together(self, endpoint: str, style: str, queries: Sequence[str], k: int) -> list[list[Any]] | None:
        """Return the documents of each query, or None if the queries have to be asked one by one."""
        try:
            found = await self._post(endpoint, style, queries, k)
        except SearchError as error:
            if error.status not in _BATCH_FAULTS:
                raise
            return None
        if len(found) == len(queries) and not _is_reranked(found):
            return found
        # Search-R1's reranking server leaves out queries without documents and mixes the documents of the others.
        self._together = False
        return None

    async def _ask_one(self, endpoint: str, style: str, query: str, k: int) -> list[Hit]:
        found = await self._post(endpoint, style, [query], k)
        if len(found) != 1:
            raise self._shape_error(_what([query]), "there are several lists of documents for one query", found)
        hits = self._hits(endpoint, query, found[0], k)
        if isinstance(hits, Exception):
            raise hits
        return hits

    async def _post(self, endpoint: str, style: str, queries: Sequence[str], k: int) -> list[list[Any]]:
        what = _what(queries)
        try:
            reply = await self._client.request_json("POST", endpoint, what=what, json_body=_body(style, queries, k))
        except SearchError as error:
            if error.status not in _WRONG_ROUTE:
                raise
            raise SearchError(
                f"{error} Is the path of RETRIEVER_URL right, and does the server speak the style {style!r}? Known "
                f"styles are: {', '.join(STYLES)}.",
                provider=self.name,
                status=error.status,
                body=error.body,
            ) from error
        try:
            return split_reply(reply, len(queries))
        except ValueError as error:
            raise self._shape_error(what, str(error), reply) from error

    def _hits(self, endpoint: str, query: str, documents: Sequence[Any], k: int) -> list[Hit] | SearchError:
        authority = quote(self.corpus, safe="") or _host(urlsplit(endpoint))
        try:
            return make_hits(documents, authority, self.corpus, k)
        except ValueError as error:
            return self._shape_error(_what([query]), str(error), documents)

    def _shape_error(self, what: str, why: str, reply: Any) -> SearchError:
        return SearchError(
            f"retriever: {what} failed: the reply does not have the shape of a retrieval server: {why}.",
            provider=self.name,
            status=200,
            body=json.dumps(reply, ensure_ascii=False)[:200],
        )


def _body(style: str, queries: Sequence[str], k: int) -> dict[str, Any]:
    k = max(1, k)
    if style == "flashrag":
        return {"query": queries[0], "top_n": k, "return_score": False}
    if style == "flashrag_batch":
        return {"query": list(queries), "top_n": k, "return_score": False}
    if style == "search_r1_rerank":
        return {"queries": list(queries), "topk_retrieval": max(10, k), "topk_rerank": k, "return_scores": True}
    # Scores are asked for because Search-R1's server fails without them.
    return {"queries": list(queries), "topk": k, "return_scores": True}


def _is_reranked(found: Sequence[Sequence[Any]]) -> bool:
    """Tell Search-R1's reranking server by its documents, which are bare texts."""
    items = [item for documents in found for item in documents]
    return any(
        isinstance(item["document"] if isinstance(item, dict) and "document" in item else item, str) for item in items
    )


def _what(queries: Sequence[str]) -> str:
    others = f" and {len(queries) - 1} more in the same request" if len(queries) > 1 else ""
    return describe_query(queries[0]) + others


def _host(parts: SplitResult) -> str:
    """Return host and port of a URL, without user and password."""
    return parts.netloc.rpartition("@")[2].lower()
