"""Reads pages of the web: HTML, plain text and PDF."""

from __future__ import annotations

import asyncio

from retrieval.base import Page
from retrieval.http.client import HttpClient, Limits, Reply
from retrieval.readers.extraction import Unreadable, extract
from signatures.errors import ReadError

READER_LIMITS = Limits(attempts=2)
INLINE_BYTES = 10_000
"""Shorter replies are extracted in the calling thread: that takes a few milliseconds."""

HEADERS = {"Accept": "text/html,application/xhtml+xml,application/pdf;q=0.9,text/plain;q=0.9,*/*;q=0.5"}


class WebReader:
    """Fetches a page and gives its readable text.

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
        reply = await self._client.request("GET", url, what=what, headers=HEADERS)
        try:
            title, text = await self._extract(reply)
        except Unreadable as error:
            raise ReadError(
                f"{self.name}: {what} failed: {error}.", reason=error.reason, provider=self.name, status=reply.status
            ) from error
        meta = {"final_url": reply.url, "content_type": reply.content_type}
        return Page(url=url, text=text[: self.page_chars], title=title, status=reply.status, meta=meta)

    def identity(self) -> str:
        """Return what changes the pages: how much of them is kept."""
        return f"{self.name}:{self.page_chars}"

    async def _extract(self, reply: Reply) -> tuple[str, str]:
        arguments = (reply.body, reply.headers.get("content-type", ""), self.page_chars)
        if len(reply.body) <= INLINE_BYTES and not reply.body.startswith(b"%PDF"):
            return extract(*arguments)
        return await asyncio.to_thread(extract, *arguments)
