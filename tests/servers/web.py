"""A scripted web server: search replies in Bing's v7 shape and pages, with latency and faults on demand.

It listens on the loopback interface in a thread of its own. Use it as a context manager:

    with WebServer(hits={"who": [{"title": "A", "url": "/a", "snippet": "…"}]}, pages={"/a": "<p>…</p>"}) as server:
        BingSearch(endpoint=server.search_url, key="k")
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from aiohttp import web

from retrieval.http.rates import forget_buckets

SEARCH_PATH = "/v7.0/search"
HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
PDF = "application/pdf"


@dataclass(frozen=True)
class Answer:
    """What one request gets.

    Attributes:
        body: The reply; text is sent as UTF-8.
        status: HTTP status.
        content_type: The `Content-Type` field, sent as it is, true or not; empty sends none.
        headers: More header fields.
        latency_s: Seconds before anything is sent.
        drip_s: Seconds between single bytes of the body; 0 sends it at once.
        redirect: Address to send the client to (status 302 unless given).
        close_after: Bytes of the body after which the connection is cut; 0 cuts it before the status line.
        claimed_length: A `Content-Length` other than the true one; the connection is cut after the body.
        compress: Send the body gzip-encoded.
        endless: Repeat the body for ever.
    """

    body: str | bytes = b""
    status: int = 200
    content_type: str = HTML
    headers: Mapping[str, str] = field(default_factory=dict)
    latency_s: float = 0.0
    drip_s: float = 0.0
    redirect: str | None = None
    close_after: int | None = None
    claimed_length: int | None = None
    compress: bool = False
    endless: bool = False

    @cached_property
    def data(self) -> bytes:
        """The body as it goes over the wire."""
        data = self.body.encode() if isinstance(self.body, str) else self.body
        return gzip.compress(data) if self.compress else data


@dataclass(frozen=True)
class Recorded:
    """A request as the server got it.

    Attributes:
        method: HTTP method.
        path: Path without query.
        query: Query parameters.
        headers: Header fields, names in lower case.
        body: Body.
    """

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class WebServer:
    """The server.

    Args:
        hits: Hits for each query, as dicts with title, url, snippet, date, site; a url that begins with `/` gets the
            server's own address in front. Other queries get an empty result.
        pages: What each path gives: a text (HTML if it begins with `<`), bytes of a PDF, an `Answer`, or a list of
            these, one for each request in turn, the last one for all further ones.
        default_hits: Hits for queries that are not in `hits`.
        latency_s: Seconds before every reply, an answer's own on top.

    Attributes:
        requests: What was asked so far.
        in_flight: Requests being answered now.
        most_in_flight: The most that ever were at once.
    """

    def __init__(
        self,
        hits: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
        pages: Mapping[str, Any] | None = None,
        default_hits: Sequence[Mapping[str, str]] = (),
        latency_s: float = 0.0,
    ) -> None:
        self.hits = dict(hits or {})
        self.default_hits = default_hits
        self.latency_s = latency_s
        self.requests: list[Recorded] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.port = 0
        self._scripts: dict[str, list[Answer]] = {}
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="scripted-web-server", daemon=True)
        self._failure: BaseException | None = None
        for path, script in (pages or {}).items():
            self.script(path, *(script if isinstance(script, list | tuple) else [script]))

    def script(self, path: str, *answers: Any) -> None:
        """Say what a path gives from now on; also for the search path, in front of its replies.

        Args:
            path: The path; `SEARCH_PATH` for searches.
            *answers: One for each request in turn. For pages the last one stays; searches go back to normal after it.
        """
        self._scripts[path] = [_as_answer(answer) for answer in answers]

    @property
    def url(self) -> str:
        """Address of the server, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def search_url(self) -> str:
        """Address of its search route."""
        return self.url + SEARCH_PATH

    def count(self, path: str) -> int:
        """Return how often a path was asked for."""
        return sum(request.path == path for request in self.requests)

    def __enter__(self) -> WebServer:
        self._thread.start()
        self._ready.wait(10)
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        # Its port may be given to the next server, which has asked nobody to wait.
        forget_buckets()

    def _serve(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self._failure = error
            self._ready.set()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.port = runner.addresses[0][1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(
            Recorded(
                request.method,
                request.path,
                dict(request.query),
                {name.lower(): value for name, value in request.headers.items()},
                await request.read(),
            )
        )
        async with self._counted():
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            script = self._scripts.get(request.path, [])
            if request.path == SEARCH_PATH:
                if script:
                    return await _send(request, script.pop(0))
                return web.json_response(self._search_reply(request.query.get("q", ""), request.query.get("count")))
            if not script:
                return web.Response(status=404, text="not found")
            return await _send(request, script.pop(0) if len(script) > 1 else script[0])

    @contextlib.asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1

    def _search_reply(self, query: str, count: str | None) -> dict[str, Any]:
        hits = list(self.hits.get(query, self.default_hits))
        reply: dict[str, Any] = {"_type": "SearchResponse", "queryContext": {"originalQuery": query}}
        if hits:
            shown = hits[: int(count)] if count else hits
            reply["webPages"] = {
                "totalEstimatedMatches": len(hits),
                "value": [self._record(number, hit) for number, hit in enumerate(shown)],
            }
        return reply

    def _record(self, number: int, hit: Mapping[str, str]) -> dict[str, str]:
        url = hit.get("url", "")
        record = {
            "id": f"https://api.example.org/#WebPages.{number}",
            "name": hit.get("title", ""),
            "url": self.url + url if url.startswith("/") else url,
            "snippet": hit.get("snippet", ""),
        }
        if "date" in hit:
            record["datePublished"] = f"{hit['date']}T00:00:00.0000000"
        if "site" in hit:
            record["siteName"] = hit["site"]
        return record


def _as_answer(given: Any) -> Answer:
    if isinstance(given, bytes):
        given = Answer(given, content_type=PDF if given.startswith(b"%PDF") else "application/octet-stream")
    elif isinstance(given, str):
        given = Answer(given, content_type=HTML if given.lstrip().startswith("<") else TEXT)
    # Compressed now, so that no request waits for it.
    assert isinstance(given.data, bytes)
    return given


async def _send(request: web.Request, answer: Answer) -> web.StreamResponse:
    await asyncio.sleep(answer.latency_s)
    if answer.close_after == 0:
        return _cut(request)
    status = 302 if answer.redirect and answer.status == 200 else answer.status
    response = web.StreamResponse(status=status, headers=dict(answer.headers))
    if answer.redirect:
        response.headers["Location"] = answer.redirect
    if answer.content_type:
        response.headers["Content-Type"] = answer.content_type
    if answer.compress:
        response.headers["Content-Encoding"] = "gzip"
    data = answer.data
    if answer.claimed_length is not None:
        response.content_length = answer.claimed_length
    elif not answer.endless:
        response.content_length = len(data)
    with contextlib.suppress(ConnectionError):
        await response.prepare(request)
        for chunk in _pieces(data, answer):
            await response.write(chunk)
            if answer.drip_s:
                await asyncio.sleep(answer.drip_s)
        while answer.endless:
            await response.write(data)
            await asyncio.sleep(0)
        if answer.close_after is not None or answer.claimed_length is not None:
            return _cut(request)
        await response.write_eof()
    return response


def _pieces(data: bytes, answer: Answer) -> list[bytes]:
    kept = data if answer.close_after is None else data[: answer.close_after]
    return [kept[i : i + 1] for i in range(len(kept))] if answer.drip_s else [kept]


def _cut(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.close()
    return web.Response()
