"""Several public search engines at once, without a key, through the `ddgs` package.

The package reads the engines' own result pages, so an engine may block us at any time; when a block leaves us without
results it is a failure here, never an empty result.
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from retrieval.backends.environment import optional_setting, rate_of
from retrieval.backends.library_calls import LibraryCaller
from retrieval.backends.shape import describe_query, text_field, web_hits
from retrieval.base import Hit
from retrieval.http.client import Limits
from retrieval.http.failures import Failure, FailureError, status_failure
from signatures.errors import OptionError

if TYPE_CHECKING:
    from retrieval.backends.ddgs_engines import EngineReply

_log = logging.getLogger(__name__)

ENCYCLOPAEDIAS = frozenset({"wikipedia", "grokipedia"})
"""Engines that know titles of articles only; an answer from them alone is no search of the web."""

_REGION = re.compile(r"[a-z]{2}-[a-z]{2}")
_CHOICES = {"safesearch": ("on", "moderate", "off"), "timelimit": ("", "d", "w", "m", "y")}


class DdgsSearch:
    """Searches public engines.

    Args:
        backend: Names of engines, separated by commas, or `auto` for those the package thinks best.
        region: Country and language: `us-en`, `de-de`, …
        safesearch: `on`, `moderate` or `off`.
        timelimit: Age of the pages: `d`, `w`, `m`, `y`, or empty for any.
        proxy: URL of an HTTP or SOCKS proxy; by default the environment's DDGS_PROXY.
        ca_file: PEM file of certificates to trust instead of the usual ones, for a proxy that looks inside.
        limits: Time, retries and waits; `read_s` is the time each engine has.
        requests_per_second: How often to search; None for no limit. Engines block those who ask too often.

    Raises:
        OptionError: An engine or another value is unknown.
    """

    name = "ddgs"

    def __init__(
        self,
        backend: str = "auto",
        region: str = "us-en",
        safesearch: str = "moderate",
        timelimit: str = "",
        proxy: str | None = None,
        ca_file: str | None = None,
        limits: Limits | None = None,
        requests_per_second: float | None = 1.0,
    ) -> None:
        self.backend = backend
        self.region = region
        self.safesearch = safesearch
        self.timelimit = timelimit
        self.proxy = proxy
        self.ca_file = ca_file
        self._caller = LibraryCaller(self.name, limits, rate_of(requests_per_second, self.name))
        self._check()

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. One page of each engine is asked for, about 10 hits."""
        proxy = optional_setting(self.proxy, "DDGS_PROXY")

        async def attempt() -> list[Hit]:
            return await self._ask(query.strip(), k, proxy)

        secret = urlsplit(proxy).password or "" if proxy else ""
        return await self._caller.call(attempt, what=describe_query(query), secrets=(secret,))

    def identity(self) -> str:
        """Return engines, region and filters."""
        return f"{self.name}:{self.backend}:{self.region}:{self.safesearch}:{self.timelimit}"

    def _check(self) -> None:
        from retrieval.backends.ddgs_engines import text_engines

        for engine in self.backend.split(","):
            if engine.strip() not in (known := ["auto", *text_engines()]):
                raise OptionError(f"ddgs: unknown engine {engine.strip()!r}; known are: {', '.join(known)}.")
        if not _REGION.fullmatch(self.region):
            raise OptionError(f"ddgs: the region is {self.region!r}; write country and language, such as us-en.")
        for option, choices in _CHOICES.items():
            if (value := getattr(self, option)) not in choices:
                raise OptionError(f"ddgs: {option} is {value!r}; choose from: {', '.join(map(repr, choices))}.")

    async def _ask(self, query: str, k: int, proxy: str) -> list[Hit]:
        from retrieval.backends.ddgs_engines import NOTHING_FOUND, search_engines

        connection = {
            "proxy": proxy or None,
            "timeout": max(1, round(self._caller.limits.read_s)),
            "verify": self.ca_file or True,
        }
        options = {
            "backend": self.backend,
            "region": self.region,
            "safesearch": self.safesearch,
            "timelimit": self.timelimit or None,
        }
        # The package blocks; a thread whose time is over ends by itself when its engines' time is over.
        outcome = await asyncio.to_thread(search_engines, query, k, connection, options)
        failed = {reply.engine: reply for reply in outcome.replies if reply.problem}
        hits = web_hits(
            (
                Hit(text_field(record, "title"), text_field(record, "href"), text_field(record, "body"))
                for record in outcome.records
            ),
            k,
        )
        problems = ", ".join(f"{engine} {reply.problem}" for engine, reply in sorted(failed.items()))
        if hits:
            answered = {reply.engine for reply in outcome.replies} - failed.keys()
            if failed and answered <= ENCYCLOPAEDIAS:
                _log.warning("ddgs: only encyclopaedias gave results for %r: %s.", query[:200], problems)
            return hits
        if failed:
            raise FailureError(_failure(list(failed.values()), problems))
        if outcome.replies and outcome.problem == NOTHING_FOUND:
            return []
        raise FailureError(Failure("http", f"the ddgs package gave no results: {outcome.problem or 'no engine asked'}"))


def _failure(failed: list[EngineReply], problems: str) -> Failure:
    statuses = [reply.status for reply in failed]
    waits = [reply.retry_after for reply in failed if reply.retry_after is not None]
    return Failure(
        reason="blocked",
        text=f"no engine gave results: {problems}; ask less often, name other engines or set DDGS_PROXY",
        status=429 if {202, 429} & set(statuses) else next(filter(None, statuses), None),
        again=any(status is None or status_failure(status, {}, b"").again for status in statuses),
        retry_after=max(waits, default=None),
    )
