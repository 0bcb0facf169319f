"""Documents from a folder of text files, or from a single one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from retrieval.corpus.documents import LONGEST_ID, START, Malformed, Position, Unit
from retrieval.corpus.file_documents import CONTENT_TYPES, read_file


@dataclass(frozen=True, slots=True)
class Found:
    """A file in a folder.

    Attributes:
        path: The file, or a folder that cannot be opened.
        size: Its bytes; 0 if it is a link to nothing.
        mtime_ns: When it was last changed, in nanoseconds.
        problem: Why it cannot be read, or empty.
    """

    path: Path
    size: int
    mtime_ns: int
    problem: str = ""


def walk(folder: Path) -> Iterator[Found]:
    """Find the files below a folder.

    Hidden files and folders are passed over. Links to files are followed, links to folders are not, so there are no
    loops. One folder's names are in memory at a time.

    Args:
        folder: Where to look.

    Yields:
        The files, each folder's in the order of their names.
    """
    pending = [folder]
    while pending:
        path = pending.pop()
        if path is folder or (path.is_dir() and not path.is_symlink()):
            try:
                names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            except OSError as error:
                yield Found(path, 0, 0, f"cannot be opened: {error.strerror}.")
                continue
            pending += [path / name for name in reversed(names)]
            continue
        try:
            status = path.stat()
            yield Found(path, status.st_size, status.st_mtime_ns)
        except OSError:
            yield Found(path, 0, 0)


class TextFiles:
    """The Markdown, HTML, plain text and PDF files below a folder, or a single such file.

    A document's id is its path relative to the folder; files of other kinds are passed over. Positions are numbers of
    files.

    Args:
        root: Folder or file.
        prefix: Put before each id, so that several folders do not share ids.
        size: Bytes of all files.
    """

    def __init__(self, root: Path, prefix: str = "", size: int = 0) -> None:
        self.root = root
        self.prefix = prefix
        self.label = root.resolve().name
        self.size = size

    def units(self, position: Position = START) -> Iterator[Unit]:
        """Read on; see `retrieval.corpus.documents.Source.units`."""
        done = 0
        for number, found in enumerate(self._files(), start=1):
            done += found.size
            if number <= position[0]:
                continue
            where, here = str(found.path), (number, number)
            try:
                if found.problem:
                    raise Malformed(found.problem)
                identity = self._identity(found.path)
                yield Unit(read_file(found.path, identity), where, "", here, done)
            except Malformed as error:
                yield Unit((), where, str(error), here, done)

    def _files(self) -> Iterator[Found]:
        if not self.root.is_dir():
            status = self.root.stat()
            return iter([Found(self.root, status.st_size, status.st_mtime_ns)])
        return (found for found in walk(self.root) if found.problem or is_text_file(found.path))

    def _identity(self, path: Path) -> str:
        identity = self.prefix + (path.name if path == self.root else path.relative_to(self.root).as_posix())
        if len(identity) > LONGEST_ID:
            raise Malformed(f"its path has {len(identity):,} characters; at most {LONGEST_ID:,} are allowed.")
        return identity


def is_text_file(path: Path) -> bool:
    """Tell whether a file is read as text, by the end of its name."""
    return path.suffix.lower() in CONTENT_TYPES
