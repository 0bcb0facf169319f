"""Undoing the content encoding of a reply, within caps on its size and on how much it may grow.

It is done here and not by aiohttp because only whoever sees both sides knows the ratio. Only encodings whose output can
be asked for piece by piece are offered to servers.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from retrieval.http.failures import Failure, FailureError

if TYPE_CHECKING:
    from zlib import _Decompress

ACCEPTED = "gzip, deflate"
"""Value of the `Accept-Encoding` field."""

FREE_BYTES = 1_000_000
"""A reply may grow to this size whatever its ratio."""
PIECE_BYTES = 262_144
MOST_MEMBERS = 1000
"""Gzip members in one reply; a stream of tiny ones costs much and gives nothing."""

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS


class Decoder:
    """Collects a reply piece by piece.

    Args:
        encoding: The reply's `Content-Encoding` field, or empty.
        max_bytes: Longest reply, before and after decompression.
        max_ratio: How many times its size a reply may grow beyond `FREE_BYTES`.

    Raises:
        FailureError: The encoding was not offered.
    """

    def __init__(self, encoding: str, max_bytes: int, max_ratio: float) -> None:
        names = [name for part in encoding.split(",") if (name := part.strip().lower()) not in ("", "identity")]
        if len(names) > 1 or (names and names[0] not in ("gzip", "x-gzip", "deflate")):
            raise FailureError(
                Failure("unsupported", f"the reply is encoded as {encoding!r:.100}; only {ACCEPTED} was asked for")
            )
        self.body = bytearray()
        self._encoding = names[0].removeprefix("x-") if names else ""
        self._max_bytes = max_bytes
        self._max_ratio = max_ratio
        self._raw_bytes = 0
        self._held = b""
        self._inflater: _Decompress | None = None
        self._members = 0
        self._complete = False

    def feed(self, raw: bytes) -> None:
        """Take the next piece as it came over the wire.

        Args:
            raw: The piece.

        Raises:
            FailureError: The reply is too long, grows too much, or cannot be decompressed.
        """
        self._raw_bytes += len(raw)
        if self._raw_bytes > self._max_bytes:
            raise self._too_long()
        if not self._encoding:
            self.body += raw
            return
        data = self._held + raw
        self._held = b""
        while data and not self._complete:
            if self._inflater is None and not self._begin(data):
                return
            data = self._inflate(data)

    def finish(self) -> bytes:
        """Return the whole reply, decompressed.

        Raises:
            FailureError: Its compressed form is incomplete.
        """
        if self._encoding and self._raw_bytes and not self._complete and self._inflater is not None:
            raise FailureError(Failure("connection", "the compressed reply ends too early", again=True))
        if self._held and not self._members:
            raise self._damaged()
        return bytes(self.body)

    def _begin(self, data: bytes) -> bool:
        if len(data) < 2:
            self._held = data
            return False
        if self._encoding == "gzip":
            if self._members and not data.startswith(_GZIP_MAGIC):
                # Padding after the last member; browsers pass it over too.
                self._complete = True
                return False
            window = _GZIP
        else:
            # Some servers send bare deflate data under this name, most the zlib format that the standard asks for.
            wrapped = data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
            window = zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise FailureError(Failure("too_large", f"the reply has more than {MOST_MEMBERS} compressed parts"))
        self._inflater = zlib.decompressobj(window)
        return True

    def _inflate(self, data: bytes) -> bytes:
        inflater = self._inflater
        assert inflater is not None
        while True:
            try:
                piece = inflater.decompress(data, PIECE_BYTES)
            except zlib.error as error:
                raise self._damaged() from error
            data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            self._keep(piece, len(data))
            if inflater.eof:
                self._inflater = None
                self._complete = self._encoding == "deflate"
                return data
            # Without input there may still be output, held back by the limit on a piece.
            if not data and len(piece) < PIECE_BYTES:
                return b""

    def _keep(self, piece: bytes, unread: int) -> None:
        self.body += piece
        if len(self.body) > self._max_bytes:
            raise self._too_long()
        if len(self.body) > max(FREE_BYTES, self._max_ratio * (self._raw_bytes - unread)):
            text = f"the reply grows to more than {self._max_ratio:g} times its size when it is decompressed"
            raise FailureError(Failure("too_large", text))

    def _too_long(self) -> FailureError:
        return FailureError(Failure("too_large", f"the reply is longer than {self._max_bytes} bytes"))

    def _damaged(self) -> FailureError:
        return FailureError(Failure("binary", "the reply cannot be decompressed"))
