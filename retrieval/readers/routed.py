"""A reader for addresses of several kinds: each scheme goes to the reader that serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval.base import Page, Reader
from signatures.errors import ReadError


class RoutedReader:
    """Reads each address with the reader of its scheme.

    Args:
        routes: Readers by scheme (`corpus`), as a mapping or as pairs; of several for one scheme, the next is asked
            when one does not know the document.
        default: Reader of all other schemes.
    """

    def __init__(self, routes: Mapping[str, Reader] | Sequence[tuple[str, Reader]], default: Reader) -> None:
        pairs = routes.items() if isinstance(routes, Mapping) else routes
        self.routes = tuple((scheme.lower(), reader) for scheme, reader in pairs)
        self.default = default
        self.name = "+".join(dict.fromkeys(reader.name for reader in [*(reader for _, reader in self.routes), default]))

    async def read(self, url: str) -> Page:
        """Read a page; see `retrieval.base.Reader.read`."""
        return (await self.read_with_origin(url))[0]

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        """Read a page, and tell whether its reader was spared by a cache.

        Args:
            url: Its address.

        Returns:
            The page, and True if it came from a cache.

        Raises:
            ReadError: It could not be read.
        """
        scheme, colon, _ = url.partition(":")
        readers = [reader for known, reader in self.routes if colon and known == scheme.strip().lower()] or [
            self.default
        ]
        for reader in readers[:-1]:
            try:
                return await _read(reader, url)
            except ReadError as error:
                if error.reason != "not_found":
                    raise
        return await _read(readers[-1], url)

    def identity(self) -> str:
        """Return the identities of all readers with their schemes."""
        parts = [f"{scheme}={reader.identity()}" for scheme, reader in self.routes]
        return f"routed({'|'.join([*parts, self.default.identity()])})"


async def _read(reader: Reader, url: str) -> tuple[Page, bool]:
    with_origin = getattr(reader, "read_with_origin", None)
    if with_origin is not None:
        found: tuple[Page, bool] = await with_origin(url)
        return found
    return await reader.read(url), False
