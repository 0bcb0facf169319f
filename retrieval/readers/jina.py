"""Reads pages through Jina Reader (r.jina.ai), which renders them in a browser and gives Markdown.

Source: the service's documentation and its published code (github.com/jina-ai/reader), as of 2026.
"""

from __future__ import annotations

import math
import os
import re
from typing import Any

from retrieval.backends.environment import optional_setting, shown_url
from retrieval.base import Page
from retrieval.http.client import HttpClient, Limits, Rate
from retrieval.http.guard import RefusedAddress, check_url
from retrieval.readers.extraction import VERSION
from retrieval.readers.jina_reply import JinaFailure, parse_reply, service_failure
from retrieval.readers.page_quality import page_problem
from signatures.errors import OptionError, ReadError

ENDPOINT = "https://r.jina.ai"
ANONYMOUS_RPM = 20.0
"""Requests a minute that the service takes from one address without a key."""
KEY_RPM = 500.0
"""Requests a minute that it takes with a free or paid key (5,000 with a premium one)."""

JINA_LIMITS = Limits(read_s=60.0, total_s=75.0, attempts=3)
"""The service sends nothing until the page is rendered: 8 s on average, 30 s and more for slow sites."""


_MESSAGE = re.compile(r'"message"\s*:\s*"([^"]*)')


class JinaReader:
    """Reads pages through Jina Reader.

    The page's address is checked before it is sent: a private address, or one with a user name or password in it, is
    never handed to the service. Only the address as written can be checked. What its name resolves to, at this moment
    and at the service, cannot, and neither can redirects that the service follows; it runs outside your network.

    Args:
        key: API key; by default the environment's JINA_API_KEY. None, blank and the word `None` all mean no key: the
            service then works too, more slowly.
        endpoint: URL of the service; by default the environment's JINA_URL, else https://r.jina.ai.
        requests_per_minute: How often it is asked; by default 20 without a key and 500 with one.
        page_chars: Text is cut to its first so many characters.
        allow_private: Send private addresses too, for an instance of the service inside your network.
        limits: Time-outs, retries and caps.

    Raises:
        OptionError: `requests_per_minute` is not above 0.
    """

    name = "jina"

    def __init__(
        self,
        key: str | None = None,
        endpoint: str | None = None,
        requests_per_minute: float | None = None,
        page_chars: int = 50_000,
        allow_private: bool = False,
        limits: Limits | None = None,
    ) -> None:
        if requests_per_minute is not None and not (math.isfinite(requests_per_minute) and requests_per_minute > 0):
            raise OptionError(f"jina: requests_per_minute is {requests_per_minute!r}; give a number above 0.")
        self.endpoint = endpoint
        self.requests_per_minute = requests_per_minute
        self.page_chars = page_chars
        self.allow_private = allow_private
        self.limits = limits or JINA_LIMITS
        self._key = key

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`. Harmless warnings of the service are kept in `meta`."""
        what = f"the page {url!r:.300}"
        self._check(url, what)
        key = self._usable_key()
        headers = {"Accept": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        try:
            # Posted, because in a path the service would undo percent-encoding and lose the fragment.
            reply = await self._client(key).request_json(
                "POST",
                self._endpoint(),
                what=what,
                json_body={"url": url},
                headers=headers,
                secrets=(key,) if key else (),
            )
        except ReadError as error:
            failure = None if error.status is None else service_failure(error.status, error.body, bool(key))
            if failure is None:
                raise
            # Less the JSON that the client's message ends in; the failure says it for people.
            happened = str(error).partition(': {"')[0].rstrip(".")
            said = f" ({match.group(1)})" if (match := _MESSAGE.search(error.body)) else ""
            message = f"{happened}{said}: {failure}."
            raise ReadError(
                message, reason=failure.reason, provider=self.name, status=failure.status, body=error.body
            ) from error
        try:
            page = parse_reply(reply, bool(key))
        except JinaFailure as failure:
            raise self._error(what, failure) from failure
        problem = page_problem(page.text, page.title)
        if page.failure is not None and (problem is None or not problem.reason.endswith("_wall")):
            raise self._error(what, page.failure)
        if problem is not None:
            raise self._error(what, JinaFailure(problem.text, problem.reason, page.status))
        meta: dict[str, Any] = {"final_url": page.url or url, "content_type": "text/markdown"}
        if page.warnings:
            meta["warnings"] = page.warnings
        return Page(url=url, text=page.text[: self.page_chars], title=page.title, status=page.status, meta=meta)

    def identity(self) -> str:
        """Return what changes the pages: the service, how much of them is kept, and the version of the rules."""
        return f"{self.name}:{shown_url(self._endpoint())}:{self.page_chars}:v{VERSION}"

    def _check(self, url: str, what: str) -> None:
        try:
            parsed = check_url(url, allow_private=self.allow_private)
            if parsed.user or parsed.password:
                raise RefusedAddress("it holds a user name or password, which is not handed to a service")
        except RefusedAddress as error:
            # The address is shown without its credentials.
            shown = what if "@" not in url.partition("?")[0] else "the page"
            raise ReadError(f"{self.name}: {shown} failed: {error}.", reason="refused", provider=self.name) from error

    def _usable_key(self) -> str:
        for key in (self._key or "", os.environ.get("JINA_API_KEY", "")):
            if key.strip() and key.strip().lower() not in ("none", "null"):
                return key.strip()
        return ""

    def _endpoint(self) -> str:
        return optional_setting(self.endpoint, "JINA_URL", ENDPOINT)

    def _client(self, key: str) -> HttpClient:
        rpm = self.requests_per_minute or (KEY_RPM if key else ANONYMOUS_RPM)
        return HttpClient(self.name, ReadError, limits=self.limits, rate=Rate(rpm, 60.0))

    def _error(self, what: str, failure: JinaFailure) -> ReadError:
        message = f"{self.name}: {what} failed: {failure}."
        return ReadError(message, reason=failure.reason, provider=self.name, status=failure.status)
