"""The engines of the `ddgs` package, with a watch on what each of them really answered.

The package takes every status but 200 for an empty result and keeps quiet about it. Each engine holds the HTTP client
it asks through in a public attribute, so the watch stands there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ddgs.ddgs import DDGS
from ddgs.engines import ENGINES
from ddgs.exceptions import DDGSException, TimeoutException

from retrieval.http.failures import retry_after_seconds

NOTHING_FOUND = "No results found."
"""What the package raises when every engine answered and none reported a problem."""

_LIMITED = frozenset({202, 429})
# DuckDuckGo answers 202 with a puzzle.
_WALL = re.compile(
    r"captcha|anomaly-modal|unusual traffic|automated (?:queries|requests)|(?:are|verify) you(?: are|'re)? (?:a )?human"
    r"|are you a robot|not a robot",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class EngineReply:
    """One answer of one engine.

    Attributes:
        engine: Its name.
        status: HTTP status, or None when there was no answer.
        problem: Why the answer is no search result, for people; empty if it is one.
        retry_after: Seconds the engine asks to wait, or None.
    """

    engine: str
    status: int | None = None
    problem: str = ""
    retry_after: float | None = None


@dataclass
class Outcome:
    """What one search over several engines gave.

    Attributes:
        records: Results with `title`, `href` and `body`.
        problem: What the package raised; empty if it returned results.
        replies: Every answer of every engine.
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    replies: list[EngineReply] = field(default_factory=list)


class WatchedEngines(DDGS):  # type: ignore[misc]
    """The package's search, which keeps every engine's answers in `replies`.

    Args:
        **options: As for `ddgs.DDGS`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.replies: list[EngineReply] = []

    def _get_engines(self, category: str, backend: str) -> list[Any]:
        engines: list[Any] = super()._get_engines(category, backend)
        for engine in engines:
            if not isinstance(engine.http_client, _Watch):
                engine.http_client = _Watch(engine.http_client, engine.name, self.replies)
        return engines


def text_engines() -> list[str]:
    """Return the names of the engines that find web pages."""
    return sorted(ENGINES["text"])


def search_engines(query: str, k: int, connection: dict[str, Any], options: dict[str, Any]) -> Outcome:
    """Search; blocks until the engines answered or their time is over.

    Args:
        query: What to look for.
        k: At most this many results.
        connection: Proxy, time-out and certificates, as for `ddgs.DDGS`.
        options: Engines, region and filters, as for `ddgs.DDGS.text`.

    Returns:
        Results and answers; nothing is raised for engines that fail.
    """
    engines = WatchedEngines(**connection)
    outcome = Outcome(replies=engines.replies)
    try:
        outcome.records = engines.text(query, max_results=k, **options)
    except DDGSException as error:
        outcome.problem = str(error) or type(error).__name__
    return outcome


class _Watch:
    def __init__(self, inner: Any, engine: str, replies: list[EngineReply]) -> None:
        self._inner = inner
        self._engine = engine
        self._replies = replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def request(self, *args: Any, **options: Any) -> Any:
        try:
            response = self._inner.request(*args, **options)
        except DDGSException as error:
            late = isinstance(error, TimeoutException)
            problem = "gave no answer in time" if late else "could not be reached"
            self._replies.append(EngineReply(self._engine, problem=problem))
            raise
        status = int(response.status_code)
        self._replies.append(EngineReply(self._engine, status, _problem(status, response.text), _wait(response)))
        return response


def _problem(status: int, text: str) -> str:
    if status in _LIMITED:
        return f"answered {status} (rate limited)"
    if status != 200:
        return f"answered {status}"
    return "showed a robot check" if _WALL.search(text) else ""


def _wait(response: Any) -> float | None:
    headers = getattr(getattr(response, "_resp", None), "headers", None)
    if not headers:
        return None
    return retry_after_seconds({str(name).lower(): str(value) for name, value in headers.items()})
