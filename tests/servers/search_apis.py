"""Scripted search providers: a local server that answers as Serper, Brave, Tavily, SearXNG and Exa do.

Shapes, limits and error replies are the providers' own, from their documentation and from what they were seen to
answer. One provider at a time:

    with ApiServer(Serper(hits=[{"title": "A", "url": "https://a.example", "snippet": "…"}])) as server:
        SerperSearch(endpoint=server.url, key=server.api.key)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import web

from tests.servers.web import HTML, Answer, Recorded, WebServer

JSON = "application/json"
HitRecord = Mapping[str, str]


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer with a JSON body."""
    return Answer(json.dumps(value), status=status, content_type=JSON, headers=dict(headers or {}))


class Api(Protocol):
    """One provider: where it listens, its key, and what it answers."""

    path: str
    key: str

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        ...


class ApiServer(WebServer):
    """A server that speaks for one provider.

    Args:
        api: The provider.

    Attributes:
        faults: Answers that the next requests get instead of the provider's own, in turn.
    """

    def __init__(self, api: Api) -> None:
        super().__init__()
        self.api = api
        self.faults: list[Answer] = []

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == self.api.path:
            body = await request.read()
            headers = {name.lower(): value for name, value in request.headers.items()}
            recorded = Recorded(request.method, request.path, dict(request.query), headers, body)
            self.script(request.path, self.faults.pop(0) if self.faults else self.api.answer(recorded))
        return await super()._answer(request)


@dataclass
class Serper:
    """serper.dev: no `organic` without results; 403 for a wrong key; 400 when the credits are spent."""

    hits: Sequence[HitRecord] = ()
    key: str = "serper-key-1234"
    path: str = "/search"
    more: Mapping[str, Any] = field(default_factory=dict)

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.headers.get("x-api-key") != self.key:
            return json_answer({"message": "Unauthorized.", "statusCode": 403}, 403)
        if request.method != "POST":
            return json_answer({"message": "Not Found", "statusCode": 404}, 404)
        asked = json.loads(request.body)
        reply = {"searchParameters": {**asked, "type": "search", "engine": "google"}, **self.more, "credits": 1}
        if self.hits:
            reply["organic"] = [
                {
                    "title": hit["title"],
                    "link": hit["url"],
                    "snippet": hit["snippet"],
                    **({"date": hit["date"]} if "date" in hit else {}),
                    "position": position,
                }
                for position, hit in enumerate(self.hits[: asked["num"]], 1)
            ]
        return json_answer(reply)

    @staticmethod
    def no_credits() -> Answer:
        """Return the answer of an account without credits."""
        return json_answer({"message": "Not enough credits", "statusCode": 400}, 400)


@dataclass
class Brave:
    """Brave: no `web` without results; 422 for a wrong token; two rate windows in the header fields."""

    hits: Sequence[HitRecord] = ()
    key: str = "brave-key-1234"
    path: str = "/res/v1/web/search"
    rate_headers: Mapping[str, str] = field(
        default_factory=lambda: {
            "X-RateLimit-Limit": "1, 15000",
            "X-RateLimit-Policy": "1;w=1, 15000;w=2592000",
            "X-RateLimit-Remaining": "1, 1234",
            "X-RateLimit-Reset": "1, 419704",
        }
    )

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.headers.get("x-subscription-token") != self.key:
            return self.error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.")
        query = request.query
        count, offset = int(query.get("count", "20")), int(query.get("offset", "0"))
        if not 1 <= count <= 20 or not 0 <= offset <= 9 or len(query["q"]) > 400 or len(query["q"].split()) > 50:
            return self.error(422, "VALIDATION", "Unable to validate request parameter(s)")
        shown = self.hits[offset * count : (offset + 1) * count]
        reply: dict[str, Any] = {
            "type": "search",
            "query": {"original": query["q"], "more_results_available": (offset + 1) * count < len(self.hits)},
        }
        if shown:
            extra = query.get("extra_snippets") == "true"
            reply["web"] = {"type": "search", "results": [self._record(hit, extra) for hit in shown]}
        return json_answer(reply, headers=self.rate_headers)

    @staticmethod
    def error(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return an error answer."""
        error = {"id": "5d832250-9396-4f6e-b84a-2a1fe524cd7d", "code": code, "detail": detail, "status": status}
        return json_answer({"type": "ErrorResponse", "error": error, "time": 1663072993}, status, headers)

    @classmethod
    def quota_spent(cls) -> Answer:
        """Return the answer of a plan whose month is used up."""
        headers = {
            "X-RateLimit-Limit": "1, 2000",
            "X-RateLimit-Policy": "1;w=1, 2000;w=2592000",
            "X-RateLimit-Remaining": "1, 0",
            "X-RateLimit-Reset": "1, 419704",
        }
        return cls.error(429, "QUOTA_LIMITED", "Request quota limit exceeded for plan.", headers)

    def _record(self, hit: HitRecord, extra: bool) -> dict[str, Any]:
        record: dict[str, Any] = {
            "type": "search_result",
            "title": hit["title"],
            "url": hit["url"],
            "description": hit["snippet"],
            "language": "en",
            "meta_url": {"scheme": "https", "hostname": "example.org", "path": ""},
        }
        if "date" in hit:
            record["page_age"] = f"{hit['date']}T00:00:00"
        if "site" in hit:
            record["profile"] = {"name": hit["site"], "url": hit["url"]}
        if extra:
            record["extra_snippets"] = ["One <strong>more</strong>.", "And another."]
        return record


@dataclass
class Tavily:
    """Tavily: 401 for a wrong key; 400 for a query that is too long; 432 and 433 for spent plans."""

    hits: Sequence[HitRecord] = ()
    key: str = "tvly-key-1234"
    path: str = "/search"

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.headers.get("authorization") != f"Bearer {self.key}":
            return self.error(401, "Unauthorized: missing or invalid API key.")
        asked = json.loads(request.body)
        if len(asked["query"]) > 400:
            return self.error(400, "Query is too long. Max query length is 400 characters.")
        if not 0 <= asked["max_results"] <= 20:
            return self.error(400, "Max results must be between 0 and 20.")
        results = [
            {
                "title": hit["title"],
                "url": hit["url"],
                "content": hit["snippet"],
                "score": 0.9,
                "raw_content": None,
                **({"published_date": hit["date"]} if "date" in hit else {}),
            }
            for hit in self.hits[: asked["max_results"]]
        ]
        return json_answer(
            {
                "query": asked["query"],
                "follow_up_questions": None,
                "answer": None,
                "images": [],
                "results": results,
                "response_time": 0.7,
                "request_id": "123e4567-e89b-12d3-a456-426614174111",
            }
        )

    @staticmethod
    def error(status: int, text: str) -> Answer:
        """Return an error answer."""
        return json_answer({"detail": {"error": text}}, status)


@dataclass
class Searxng:
    """A SearXNG instance: 403 in HTML for a format it does not list; engines that did not answer."""

    hits: Sequence[HitRecord] = ()
    key: str = ""
    path: str = "/search"
    formats: tuple[str, ...] = ("html", "json")
    unresponsive: Sequence[Sequence[str]] = ()
    per_page: int = 10

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.query.get("format", "html") not in self.formats:
            return Answer("<!doctype html>\n<title>403 Forbidden</title>\n<h1>Forbidden</h1>", 403, HTML)
        page = int(request.query.get("pageno", "1"))
        shown = self.hits[(page - 1) * self.per_page : page * self.per_page]
        return json_answer(
            {
                "query": request.query["q"],
                "number_of_results": 0,
                "results": [
                    {
                        "title": hit["title"],
                        "url": hit["url"],
                        "content": hit["snippet"],
                        "publishedDate": f"{hit['date']}T00:00:00" if "date" in hit else None,
                        "thumbnail": None,
                        "engine": "duckduckgo",
                        "template": "default.html",
                        "parsed_url": ["https", "example.org", "/", "", "", ""],
                        "engines": ["duckduckgo", "brave"],
                        "positions": [1, 2],
                        "score": 3.0,
                        "category": "general",
                    }
                    for hit in shown
                ],
                "answers": [],
                "corrections": [],
                "infoboxes": [],
                "suggestions": [],
                "unresponsive_engines": [list(engine) for engine in self.unresponsive],
            }
        )


@dataclass
class Exa:
    """Exa, as LiteLLM asks it."""

    hits: Sequence[HitRecord] = ()
    key: str = "exa-key-1234"
    path: str = "/search"

    def answer(self, request: Recorded) -> Answer:
        """Answer a request."""
        if request.headers.get("x-api-key") != self.key:
            return json_answer({"requestId": "b5947044c4b78efa9552a7c89b306d95", "error": "Invalid API key"}, 401)
        asked = json.loads(request.body)
        results = [
            {
                "id": hit["url"],
                "title": hit["title"],
                "url": hit["url"],
                "publishedDate": f"{hit['date']}T00:00:00.000Z" if "date" in hit else None,
                "author": None,
                "text": hit["snippet"],
            }
            for hit in self.hits[: asked["numResults"]]
        ]
        return json_answer({"requestId": "b5947044c4b78efa9552a7c89b306d95", "results": results})
