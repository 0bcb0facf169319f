"""Documents from JSON lines, plain or compressed."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from retrieval.corpus.documents import LONGEST_BYTES, START, Malformed, Position, Unit, parse_record
from signatures.errors import DataError

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_BUFFER = 1 << 20
_BOM = b"\xef\xbb\xbf"


class JsonLines:
    """A JSONL file, one object a line; see `retrieval.corpus.documents.parse_record` for its keys.

    Blank lines are passed over. Positions are byte offsets of the uncompressed text and numbers of lines.

    Args:
        path: The file.
        compression: One of `COMPRESSIONS`, or empty.
    """

    def __init__(self, path: Path, compression: str = "") -> None:
        self.path = path
        self.compression = compression
        self.label = path.name
        self.size = path.stat().st_size

    def units(self, position: Position = START) -> Iterator[Unit]:
        """Read on; see `retrieval.corpus.documents.Source.units`."""
        import lzma
        import zlib

        try:
            with ExitStack() as stack:
                raw = stack.enter_context(open(self.path, "rb", buffering=_BUFFER))
                lines: IO[bytes] = raw
                if self.compression:
                    inner = _decompressor(self.compression)(raw)
                    lines = stack.enter_context(io.BufferedReader(inner, _BUFFER))
                yield from self._lines(raw, lines, position)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"The corpus file {self.path} cannot be read: {why}.") from error

    def _lines(self, raw: IO[bytes], lines: IO[bytes], position: Position) -> Iterator[Unit]:
        offset, number = position
        _skip_to(lines, offset)
        while line := lines.readline(LONGEST_BYTES + 1):
            number += 1
            offset += len(line)
            where = f"{self.path}, line {number}"
            if len(line) > LONGEST_BYTES and not line.endswith(b"\n"):
                offset += _skip_line(lines)
                problem = f"longer than {LONGEST_BYTES:,} bytes; cut it into several documents."
                yield Unit((), where, problem, (offset, number), raw.tell())
                continue
            line = line.removeprefix(_BOM) if number == 1 else line
            if not line.strip():
                continue
            try:
                document = parse_record(_parse_json(line))
            except Malformed as error:
                yield Unit((), where, str(error), (offset, number), raw.tell())
            else:
                yield Unit((document,), where, "", (offset, number), raw.tell())


def _decompressor(compression: str) -> Callable[[IO[bytes]], Any]:
    if compression == ".gz":
        import gzip

        return gzip.open
    if compression == ".bz2":
        import bz2

        return bz2.open
    if compression == ".xz":
        import lzma

        return lzma.open
    import pyarrow

    return lambda raw: pyarrow.CompressedInputStream(raw, "zstd")


def _parse_json(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8 ({error.reason}); convert the file first.") from error
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not valid JSON ({error}).") from error


def _skip_to(lines: IO[bytes], offset: int) -> None:
    if isinstance(lines, io.BufferedReader) and isinstance(lines.raw, io.FileIO):
        lines.seek(offset, os.SEEK_SET)
        return
    while offset > 0 and (block := lines.read(min(offset, _BUFFER))):
        offset -= len(block)


def _skip_line(lines: IO[bytes]) -> int:
    """Pass over the rest of a line and return its bytes."""
    skipped = 0
    while block := lines.readline(_BUFFER):
        skipped += len(block)
        if block.endswith(b"\n"):
            break
    return skipped
