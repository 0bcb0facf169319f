"""Writing documents into a Tantivy index in commits that a later process can go on from."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tantivy

from retrieval.corpus.analysis import ENGLISH, index_analyzer
from retrieval.corpus.documents import START, Document, Position
from retrieval.corpus.schema import EMPTY_HASH, chain_hash, id_term, index_schema, to_entry, to_record
from signatures.errors import DataError

WRITER_BYTES = 256_000_000
"""Memory that Tantivy collects postings in before it writes a segment."""

COMMIT_DOCUMENTS = 100_000
COMMIT_SECONDS = 60.0
"""A commit comes after so many documents or so much time, whichever is first."""


@dataclass(frozen=True)
class Commit:
    """What lies safely on disk.

    Attributes:
        documents: Number of documents.
        skipped: Lines, rows and files that gave no document.
        source: Number of the source being read, from 0.
        position: Where reading it goes on.
        digest: Corpus hash so far, in hex.
        seconds: Time spent so far.
    """

    documents: int = 0
    skipped: int = 0
    source: int = 0
    position: Position = START
    digest: str = EMPTY_HASH.hex()
    seconds: float = 0.0


class IndexWriter:
    """Writes an index; use it as a context manager.

    Args:
        folder: Folder of the index.
        begin: The commit to go on from.
        commit_documents: Documents between two commits.
        keep: Called before each commit with the last one and this one, which it must write to disk: after a crash the
            number of documents in the index tells which of them holds.
    """

    def __init__(
        self, folder: Path, begin: Commit, commit_documents: int, keep: Callable[[list[dict[str, object]]], None]
    ) -> None:
        self._index = _open(folder)
        # One thread keeps the order of the corpus within a segment, and is as fast as Python can hand it documents.
        self._writer: Any = self._index.writer(heap_size=WRITER_BYTES, num_threads=1)
        self._searcher = self._index.searcher()
        self._last = begin
        self._commit_documents = commit_documents
        self._keep = keep
        self._ids: set[str] = set()
        self._digest = bytes.fromhex(begin.digest)
        self._seconds = begin.seconds
        self._started = self._committed = time.monotonic()
        self.documents = begin.documents
        self.skipped = begin.skipped

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Without waiting for merges: what they wrote is dropped by the next build.
        self._writer = None

    def add(self, documents: Sequence[Document]) -> str:
        """Add the documents of one line, row or file.

        Args:
            documents: The documents.

        Returns:
            Empty, or what is wrong with them; then none of them was added.
        """
        terms = [id_term(document.id) for document in documents]
        for document, term in zip(documents, terms, strict=True):
            # Ids since the last commit are held in memory, those before are in the index.
            if term in self._ids or (self._last.documents and self._searcher.doc_freq("id", term)):
                return f"the id {document.id!r:.200} occurs twice; make it unique."
        for document in documents:
            record = to_record(document)
            self._digest = chain_hash(self._digest, record)
            self._writer.add_document(to_entry(document, self.documents, record))
            self.documents += 1
        self._ids.update(terms)
        return ""

    def unit_done(self, source: int, position: Position, *, skipped: bool) -> None:
        """Note that a line, row or file was dealt with, and commit if it is time.

        Args:
            source: Number of the source.
            position: Where reading it goes on.
            skipped: Whether it gave no document.
        """
        self.skipped += skipped
        if (
            self.documents - self._last.documents >= self._commit_documents
            or time.monotonic() - self._committed >= COMMIT_SECONDS
        ):
            self._commit(source, position)

    def finish(self, sources: int) -> Commit:
        """Commit what is left and wait for merges.

        Args:
            sources: Number of sources.

        Returns:
            The last commit.
        """
        self._commit(sources, START)
        self._writer.wait_merging_threads()
        return self._at(sources, START)

    @staticmethod
    def last_commit(folder: Path, commits: list[dict[str, Any]]) -> Commit | None:
        """Find out which of two commits an index holds.

        Args:
            folder: Folder of the index.
            commits: What `keep` was called with last.

        Returns:
            The commit, or None if the index cannot be read or holds something else.
        """
        try:
            documents = _open(folder).searcher().num_docs
            found = [Commit(**{**commit, "position": tuple(commit["position"])}) for commit in commits]
        except (OSError, ValueError, TypeError, KeyError, DataError):
            return None
        return next((commit for commit in reversed(found) if commit.documents == documents), None)

    def _commit(self, source: int, position: Position) -> None:
        commit = self._at(source, position)
        self._keep([asdict(self._last), asdict(commit)])
        self._writer.commit()
        self._index.reload()
        self._searcher = self._index.searcher()
        self._last = commit
        self._ids.clear()
        self._committed = time.monotonic()

    def _at(self, source: int, position: Position) -> Commit:
        seconds = self._seconds + time.monotonic() - self._started
        return Commit(self.documents, self.skipped, source, position, self._digest.hex(), seconds)


def _open(folder: Path) -> Any:
    try:
        index = tantivy.Index(index_schema(), path=str(folder))
    except (ValueError, OSError) as error:
        raise DataError(f"The half-built index in {folder} cannot be opened: {error}.") from error
    index.register_tokenizer(ENGLISH, index_analyzer())
    return index
