"""Reads pages of the web: HTML, plain text and PDF."""

from __future__ import annotations

import asyncio

from retrieval.base import Page
from retrieval.http.client import HttpClient, Limits, Reply
from retrieval.readers.extraction import VERSION, Extracted, Unreadable, extract_with_markup
from retrieval.readers.page_quality import error_page_problem, page_problem
from signatures.errors import ReadError

READER_LIMITS = Limits(attempts=2)
INLINE_BYTES = 10_000
"""Shorter replies are extracted in the calling thread: that takes a few milliseconds."""

HEADERS = {"Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.9,*/*;q=0.5"}


class WebReader:
    """Fetches a page and gives its readable text.

    What a site serves in a page's place (a check for robots, a cookie or login wall, an empty shell, noise, a word
    list) is a failure; see `retrieval.readers.page_quality`. Redirects are followed, refreshes in the HTML are not.

    Args:
        allow_private: Fetch from private addresses as well; see `retrieval.http.guard`.
        page_chars: Text is cut to its first so many characters.
        limits: Time-outs, retries and caps.
    """

    name = "web"

    def __init__(self, allow_private: bool = False, page_chars: int = 50_000, limits: Limits | None = None) -> None:
        self.allow_private = allow_private
        self.page_chars = page_chars
        self._client = HttpClient(self.name, ReadError, limits=limits or READER_LIMITS, guarded=not allow_private)

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`."""
        what = f"the page {url!r:.300}"
        try:
            reply = await self._client.request("GET", url, what=what, headers=HEADERS)
        except ReadError as error:
            wall = error_page_problem(error.body) if error.status in (401, 403, 429, 503) else None
            if wall is None:
                raise
            raise ReadError(
                f"{self.name}: {what} failed: {wall.text} (status {error.status}).",
                reason=wall.reason,
                provider=self.name,
                status=error.status,
                body=error.body,
            ) from error
        try:
            found = await self._extract(reply)
        except Unreadable as error:
            raise ReadError(
                f"{self.name}: {what} failed: {error}.", reason=error.reason, provider=self.name, status=reply.status
            ) from error
        meta = {"final_url": reply.url, "content_type": reply.content_type}
        return Page(url=url, text=found.text[: self.page_chars], title=found.title, status=reply.status, meta=meta)

    def identity(self) -> str:
        """Return what changes the pages: how much of them is kept, and the version of extraction and rules."""
        return f"{self.name}:{self.page_chars}:v{VERSION}"

    async def _extract(self, reply: Reply) -> Extracted:
        arguments = (reply.body, reply.headers.get("content-type", ""), self.page_chars)
        if len(reply.body) <= INLINE_BYTES and not reply.body.lstrip().startswith(b"%PDF"):
            return _readable(*arguments)
        return await asyncio.to_thread(_readable, *arguments)


def _readable(body: bytes, content_type: str, page_chars: int) -> Extracted:
    found = extract_with_markup(body, content_type, page_chars)
    problem = page_problem(found.text, found.title, found.markup)
    if problem is not None:
        raise Unreadable(problem.text, problem.reason)
    return found
