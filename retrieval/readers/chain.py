"""Several page readers, one after the other: what the first cannot read, the next may."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.base import Page, Reader
from signatures.errors import OptionError, ReadError

FINAL_REASONS = frozenset({"refused", "not_found"})
"""Failures that no other reader mends.

`refused`: an address that the guard refuses must not be handed to a service that might fetch it. `not_found`: the site
itself says that there is no such page; a service would ask it again, be told the same, and charge for it.
"""

SERVICE_REASONS = frozenset({"timeout", "connection", "http", "rate_limited", "quota", "unauthorized", "unsupported"})
"""Failures that speak of a reader and its moment rather than of the page."""


class ReaderChain:
    """Asks its readers in turn until one reads the page.

    When all fail, the error names every failure. Its reason is the last one that speaks of the page (a wall, an empty
    shell, a block, ...), as that is what a run should count; if none does, the last one.

    Args:
        readers: The readers, in order.

    Raises:
        OptionError: There is none.
    """

    def __init__(self, readers: Sequence[Reader]) -> None:
        if not readers:
            raise OptionError("A chain of readers needs at least one; name them like --reader web,jina.")
        self.readers = tuple(readers)
        self.name = ",".join(reader.name for reader in self.readers)

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`.

        `meta` says under `reader` who read it, and under `failed_readers` who could not, with reason and message.
        """
        return (await self.read_with_origin(url))[0]

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        """Read a page, and tell whether its reader was spared by a cache.

        Args:
            url: Its address.

        Returns:
            The page, and True if it came from a cache.

        Raises:
            ReadError: No reader could read it.
        """
        failures: list[tuple[str, ReadError]] = []
        for reader in self.readers:
            try:
                page, cached = await _read(reader, url)
            except ReadError as error:
                failures.append((reader.name, error))
                if error.reason in FINAL_REASONS:
                    break
                continue
            failed = [{"reader": name, "reason": error.reason, "message": str(error)} for name, error in failures]
            meta = {**page.meta, "reader": reader.name, "failed_readers": failed}
            return Page(url=page.url, text=page.text, title=page.title, status=page.status, meta=meta), cached
        raise self._error(url, failures)

    def identity(self) -> str:
        """Return the identities of the readers in their order."""
        return " then ".join(reader.identity() for reader in self.readers)

    def _error(self, url: str, failures: list[tuple[str, ReadError]]) -> ReadError:
        errors = [error for _, error in failures]
        of_page = [error for error in errors if error.reason not in SERVICE_REASONS]
        final = errors[-1].reason in FINAL_REASONS
        telling = errors[-1] if final or not of_page else of_page[-1]
        told = " ".join(f"[{name}, {error.reason}] {error}" for name, error in failures)
        message = f"{self.name}: the page {url!r:.300} could not be read. {told}"
        return ReadError(
            message, reason=telling.reason, provider=telling.provider, status=telling.status, body=telling.body
        )


async def _read(reader: Reader, url: str) -> tuple[Page, bool]:
    with_origin = getattr(reader, "read_with_origin", None)
    if with_origin is not None:
        found: tuple[Page, bool] = await with_origin(url)
        return found
    return await reader.read(url), False
