"""From the paths a person gives to the sources that documents are read from."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retrieval.corpus.documents import Source
from retrieval.corpus.file_documents import CONTENT_TYPES
from retrieval.corpus.folder_documents import Found, TextFiles, is_text_file, walk
from retrieval.corpus.jsonl_documents import COMPRESSIONS, JsonLines
from retrieval.corpus.parquet_documents import ParquetRows
from signatures.errors import DataError

KNOWN = "JSONL (.jsonl, also .gz, .bz2, .xz, .zst), Parquet, Markdown, HTML, PDF, plain text (.txt), and folders"
_LINES = (".jsonl", ".ndjson")
_TABLES = (".parquet", ".pq")
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


@dataclass(frozen=True)
class Inputs:
    """Everything an index is built from.

    Attributes:
        sources: In the order given.
        names: File and folder names, as given.
        size: Bytes on disk.
        fingerprint: SHA-256, in hex, over names, sizes and times of change of all files.
        passed_over: Files in folders that are of none of the known formats, by the end of their names.
    """

    sources: tuple[Source, ...]
    names: tuple[str, ...]
    size: int
    fingerprint: str
    passed_over: Counter[str] = field(default_factory=Counter)


def find_sources(paths: Sequence[Path]) -> Inputs:
    """Find out what to read, and in which format.

    The end of a file's name decides, else its first bytes. A folder gives its text files, then every JSONL and Parquet
    file below it.

    Args:
        paths: Files and folders.

    Returns:
        The sources.

    Raises:
        DataError: A path is missing or of an unknown format, or a folder has nothing to read.
    """
    digest = hashlib.sha256()
    sources: list[Source] = []
    passed_over: Counter[str] = Counter()
    for path in paths:
        try:
            if path.is_dir():
                # Only several folders can have files of the same relative path.
                prefix = f"{path.resolve().name}/" if len(paths) > 1 else ""
                sources += _folder_sources(path, prefix, digest, passed_over)
            else:
                status = path.stat()
                _note(digest, path.name, Found(path, status.st_size, status.st_mtime_ns))
                sources.append(_file_source(path))
        except OSError as error:
            raise DataError(f"The corpus file {path} cannot be read: {error.strerror or error}.") from error
    names = tuple(path.resolve().name for path in paths)
    return Inputs(tuple(sources), names, sum(source.size for source in sources), digest.hexdigest(), passed_over)


def _folder_sources(folder: Path, prefix: str, digest: hashlib._Hash, passed_over: Counter[str]) -> Iterator[Source]:
    size = 0
    texts = False
    data: list[Source] = []
    for found in walk(folder):
        if found.problem or is_text_file(found.path):
            texts = True
            size += found.size
        elif _is_data_file(found.path) and found.path.is_file():
            data.append(_file_source(found.path))
        else:
            passed_over[found.path.suffix.lower() or "no suffix"] += 1
            continue
        _note(digest, prefix + found.path.relative_to(folder).as_posix(), found)
    if not texts and not data:
        raise DataError(f"The folder {folder} holds no file that can be read; known formats: {KNOWN}.")
    if texts:
        yield TextFiles(folder, prefix, size)
    yield from data


def _note(digest: hashlib._Hash, name: str, found: Found) -> None:
    digest.update(f"{name}\0{found.size}\0{found.mtime_ns}\0".encode("utf-8", "surrogateescape"))


def _is_data_file(path: Path) -> bool:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in _LINES + _TABLES


def _file_source(path: Path) -> Source:
    suffix = path.suffix.lower()
    if suffix in _LINES:
        return JsonLines(path)
    if suffix in COMPRESSIONS:
        return JsonLines(path, suffix)
    if suffix in _TABLES:
        return ParquetRows(path)
    if suffix in CONTENT_TYPES:
        return TextFiles(path, size=path.stat().st_size)
    with open(path, "rb") as file:
        start = file.read(4096)
    if start.startswith(b"PAR1"):
        return ParquetRows(path)
    for magic, compression in _MAGIC.items():
        if start.startswith(magic):
            return JsonLines(path, compression)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return JsonLines(path)
    if text.startswith(b"["):
        raise DataError(f"{path} is one JSON list; write one object a line instead: jq -c '.[]' FILE > FILE.jsonl")
    kind = "is empty" if not start else "has an unknown format"
    raise DataError(f"The corpus file {path} {kind}; known formats: {KNOWN}.")
