"""A scripted retrieval server that answers like those of Search-R1, FlashRAG and ReCall, faults included.

with RetrieverServer({"who": [document("7", "Ada", "Ada wrote programs.")]}, kind="dense") as server:
    RetrieverSearch(endpoint=server.url)
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from tests.servers.web import Recorded, WebServer

KINDS = ("dense", "bm25", "rerank", "google", "flashrag")
DEFAULT_TOPK = 3


def document(identifier: str, title: str, text: str) -> dict[str, str]:
    """Return a document as wiki-18 has it."""
    return {"id": identifier, "contents": f'"{title}"\n{text}'}


class RetrieverServer(WebServer):
    """The server; `script` puts other answers in front of a path, as for any `WebServer`.

    Args:
        documents: Documents for each query; other queries have none.
        kind: Whose server it is, one of `KINDS`.
        poison: A query that makes the server fail with status 500.
        latency_s: Seconds before every reply.
    """

    def __init__(
        self,
        documents: Mapping[str, Sequence[dict[str, str]]],
        kind: str = "dense",
        poison: str = "",
        latency_s: float = 0.0,
    ) -> None:
        assert kind in KINDS
        super().__init__(latency_s=latency_s)
        self.documents = documents
        self.kind = kind
        self.poison = poison

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What was asked so far."""
        return [json.loads(request.body) for request in self.requests]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if self._scripts.get(request.path):
            return await super()._answer(request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.read()
        self.requests.append(Recorded(request.method, request.path, dict(request.query), headers, body))
        async with self._counted():
            await asyncio.sleep(self.latency_s)
            routes = ("/search", "/batch_search") if self.kind == "flashrag" else ("/retrieve",)
            if request.path not in routes:
                return web.json_response({"detail": "Not Found"}, status=404)
            return self._reply(request.path, json.loads(body))

    def _reply(self, path: str, body: dict[str, Any]) -> web.Response:
        field, several = ("query", path == "/batch_search") if self.kind == "flashrag" else ("queries", True)
        queries = body.get(field)
        if not isinstance(queries, list if several else str):
            detail = [{"type": "missing", "loc": ["body", field], "msg": "Field required"}]
            return web.json_response({"detail": detail}, status=422)
        asked: list[str] = queries if isinstance(queries, list) else [queries]
        # Search-R1's endpoint unpacks a pair that is only there when scores are asked for.
        scoreless = self.kind in ("dense", "bm25") and not body.get("return_scores")
        if scoreless or self.poison in asked:
            return web.Response(status=500, text="Internal Server Error")
        if self.kind == "flashrag":
            return web.json_response(self._flashrag(asked, body, several))
        answer = {"rerank": self._rerank, "google": self._google}.get(self.kind, self._search_r1)
        return web.json_response({"result": answer(asked, body)})

    def _found(self, query: str) -> list[dict[str, str]]:
        return list(self.documents.get(query, []))

    def _search_r1(self, queries: list[str], body: dict[str, Any]) -> list[Any]:
        topk = body.get("topk") or DEFAULT_TOPK
        shown = [self._found(query)[:topk] for query in queries]
        if self.kind == "bm25":
            shown = [[_with_title(d) for d in documents] for documents in shown]
        return [[{"document": d, "score": 9.0 - n} for n, d in enumerate(documents)] for documents in shown]

    def _rerank(self, queries: list[str], body: dict[str, Any]) -> list[Any]:
        # Every query gets the documents of all of them, and a request without documents leaves its queries out.
        texts = [d["contents"] for query in queries for d in self._found(query)]
        texts = [f'"{text.partition(chr(10))[0]}"\n{text.partition(chr(10))[2]}' for text in texts]
        kept = texts[: body.get("topk_rerank") or DEFAULT_TOPK]
        return [[{"document": text, "score": 0.5} for text in kept] for _ in queries if kept]

    def _google(self, queries: list[str], _: dict[str, Any]) -> list[Any]:
        return [[{"document": {"contents": d["contents"]}} for d in self._found(query)] for query in queries]

    def _flashrag(self, queries: list[str], body: dict[str, Any], several: bool) -> Any:
        shown = [self._found(query)[: body.get("top_n", 10)] for query in queries]
        scores = [[0.5] * len(documents) for documents in shown]
        if not several:
            return [shown[0], scores[0]] if body.get("return_score") else shown[0]
        return [shown, scores] if body.get("return_score") else shown


def _with_title(document: dict[str, str]) -> dict[str, str]:
    first, _, rest = document["contents"].partition("\n")
    return {"title": first.strip('"'), "text": rest, "contents": document["contents"]}
