"""A corpus as a Tantivy index on disk: building it, describing it, finding documents in it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import tantivy

from retrieval.cjk import cjk_bigrams, has_cjk, without_cjk
from retrieval.corpus.analysis import ENGLISH, cjk_terms, clean_text, index_analyzer, query_terms
from retrieval.corpus.documents import Document, read_documents
from signatures.errors import DataError, OptionError

FORMAT_VERSION = 1
"""Raised whenever an older index could no longer be read."""

INFO_FILE = "info.json"
WRITER_BYTES = 128_000_000
PROGRESS_EVERY = 1000
"""Documents between two calls of `on_progress`."""

SURPLUS = 10
"""Documents looked at beyond the number asked for, so that equal scores are ordered by id, not by position on disk."""


@dataclass(frozen=True)
class IndexInfo:
    """What an index holds.

    Attributes:
        name: Name of the corpus, as in `corpus://NAME/ID`.
        documents: Number of documents.
        corpus_hash: SHA-256, in hex, over the documents in order.
        format_version: Format of the index.
    """

    name: str
    documents: int
    corpus_hash: str
    format_version: int = FORMAT_VERSION


def build_index(
    jsonl_paths: Sequence[Path],
    directory: Path,
    name: str,
    on_progress: Callable[[int], None] | None = None,
) -> IndexInfo:
    """Build an index; what stood in its place is replaced only once the new one is whole.

    Args:
        jsonl_paths: Corpus files; see `retrieval.corpus.documents.read_documents` for their forms.
        directory: Where the index goes.
        name: Name of the corpus: letters, digits, `.`, `_` and `-`.
        on_progress: Called with the number of documents so far.

    Returns:
        What was built.

    Raises:
        OptionError: The name cannot be part of an address.
        DataError: A file or line is malformed, there is no document, the folder cannot be written, or something that is
            no index is in its place.
    """
    if not name or not all(c.isascii() and (c.isalnum() or c in "._-") for c in name) or name.startswith("."):
        raise OptionError(f"{name!r} cannot name a corpus; use letters, digits, '.', '_' and '-'.")
    directory = Path(directory)
    _check_place(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{directory.name}-building-", dir=directory.parent))
    except OSError as error:
        raise DataError(f"The index folder {directory} cannot be made: {error.strerror}.") from error
    try:
        info = _write_index(building, jsonl_paths, name, on_progress)
        (building / INFO_FILE).write_text(json.dumps(asdict(info), indent=2) + "\n", encoding="utf-8")
        building.chmod(0o755)
        _put_in_place(building, directory)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return info


def open_info(directory: Path) -> IndexInfo:
    """Read what an index holds.

    Args:
        directory: Its folder.

    Returns:
        Its description.

    Raises:
        DataError: There is no index, or one of another format.
    """
    path = Path(directory) / INFO_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        info = IndexInfo(**record)
    except FileNotFoundError as error:
        raise DataError(f"There is no index in {directory}; build it with: search-o1 index build NAME FILE") from error
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"The index description {path} cannot be read ({error}); build the index again.") from error
    if info.format_version != FORMAT_VERSION:
        raise DataError(
            f"The index in {directory} has format {info.format_version}, this version reads {FORMAT_VERSION}; "
            f"build it again with: search-o1 index build {info.name} FILE"
        )
    return info


class CorpusIndex:
    """An index opened for reading; may be open in many processes and threads at once.

    Args:
        directory: Its folder.

    Raises:
        DataError: There is no index, or it is damaged or of another format.
    """

    def __init__(self, directory: Path) -> None:
        self.info = open_info(directory)
        try:
            self._index = tantivy.Index.open(str(directory))
        except (ValueError, OSError) as error:
            raise DataError(
                f"The index in {directory} is damaged ({error}); "
                f"build it again with: search-o1 index build {self.info.name} FILE"
            ) from error
        self._index.register_tokenizer(ENGLISH, index_analyzer())
        self._schema = _schema()
        self._searcher = self._index.searcher()

    def search(self, query: str, k: int) -> list[Document]:
        """Find documents by BM25 over title and text.

        Args:
            query: A question or key words; nothing in it is query syntax.
            k: At most this many documents.

        Returns:
            Documents from the best; those with equal scores by id.
        """
        # A title is a short field, so BM25 itself lets a match there weigh more; a boost on top of it lowered recall.
        terms = [(field, term) for term in query_terms(query) for field in ("title", "text")]
        terms += [("cjk", term) for term in cjk_terms(query)]
        clauses = [(tantivy.Occur.Should, self._term(field, term)) for field, term in terms]
        if not clauses or k < 1:
            return []
        found = self._searcher.search(tantivy.Query.boolean_query(clauses), k + SURPLUS, count=False).hits
        ranked = [(-score, self._document(address)) for score, address in found]
        ranked.sort(key=lambda pair: (pair[0], pair[1].id))
        return [document for _, document in ranked[:k]]

    def get(self, document_id: str) -> Document | None:
        """Return a document by its id.

        Args:
            document_id: Its id.

        Returns:
            The document, or None if there is none.
        """
        found = self._searcher.search(self._term("id", clean_text(document_id)), 1, count=False).hits
        return self._document(found[0][1]) if found else None

    def _term(self, field: str, term: str) -> Any:
        return tantivy.Query.term_query(self._schema, field, term, index_option="freq")

    def _document(self, address: Any) -> Document:
        stored = self._searcher.doc(address)
        return Document(*json.loads(bytes(stored.get_first("record"))))


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=False, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=False, tokenizer_name=ENGLISH, index_option="freq")
    builder.add_text_field("text", stored=False, tokenizer_name=ENGLISH, index_option="freq")
    builder.add_text_field("cjk", stored=False, tokenizer_name="whitespace", index_option="freq")
    builder.add_bytes_field("record", stored=True, indexed=False)
    return builder.build()


def _check_place(directory: Path) -> None:
    if not directory.exists() or (directory / INFO_FILE).is_file():
        return
    if not directory.is_dir() or any(directory.iterdir()):
        raise DataError(f"{directory} exists and is no index; it is left alone. Choose another place for the index.")


def _write_index(
    folder: Path, paths: Sequence[Path], name: str, on_progress: Callable[[int], None] | None
) -> IndexInfo:
    index = tantivy.Index(_schema(), path=str(folder))
    index.register_tokenizer(ENGLISH, index_analyzer())
    writer = index.writer(heap_size=WRITER_BYTES, num_threads=1)
    digest = hashlib.sha256()
    count = 0
    try:
        for document in read_documents(paths):
            record = json.dumps([document.id, document.title, document.text]).encode()
            digest.update(record + b"\n")
            writer.add_document(_entry(document, record))
            count += 1
            if on_progress and count % PROGRESS_EVERY == 0:
                on_progress(count)
        if not count:
            files = ", ".join(str(path) for path in paths) or "none given"
            raise DataError(f"The corpus files hold no document: {files}.")
        writer.commit()
    finally:
        # The writer's threads must have ended before its folder can be moved or removed.
        writer.wait_merging_threads()
    if on_progress and count % PROGRESS_EVERY:
        on_progress(count)
    return IndexInfo(name, count, digest.hexdigest())


def _entry(document: Document, record: bytes) -> Any:
    entry = tantivy.Document()
    entry.add_text("id", clean_text(document.id))
    entry.add_bytes("record", record)
    for field, value in (("title", document.title), ("text", document.text)):
        # CJK runs have no spaces, so as words they could never be found; their bigrams are a field of their own.
        if has_cjk(value):
            entry.add_text("cjk", " ".join(cjk_bigrams(value)))
            value = without_cjk(value)
        entry.add_text(field, clean_text(value))
    return entry


def _put_in_place(building: Path, directory: Path) -> None:
    aside = building.with_name(building.name + "-replaced")
    while True:
        try:
            with contextlib.suppress(FileNotFoundError):
                os.rename(directory, aside)
            os.rename(building, directory)
            return
        except OSError as error:
            # Another process may have put its own index there between the two steps: then that one is replaced.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise DataError(f"The index folder {directory} cannot be replaced: {error.strerror}.") from error
        finally:
            shutil.rmtree(aside, ignore_errors=True)
