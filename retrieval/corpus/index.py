"""A corpus as a Tantivy index on disk, opened for reading."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tantivy

from retrieval.corpus.analysis import ENGLISH, cjk_terms, index_analyzer, query_terms
from retrieval.corpus.build import build_index
from retrieval.corpus.documents import Document
from retrieval.corpus.info import FORMAT_VERSION, INFO_FILE, IndexInfo, open_info
from retrieval.corpus.schema import from_record, id_term, index_schema
from signatures.errors import DataError

__all__ = [
    "FORMAT_VERSION",
    "INFO_FILE",
    "CorpusIndex",
    "IndexInfo",
    "build_index",
    "iter_documents",
    "open_info",
]

TITLE_WEIGHT = 0.3
"""Weight of the title as a field of its own. A title is short, so BM25 lets a match there count much by itself. Of 0 to
1, weights from 0.15 to 0.5 found most gold paragraphs of 2WikiMultihopQA, HotpotQA and MuSiQue questions."""

SURPLUS = 10
"""Documents looked at beyond the number asked for, so that equal scores are ordered by id, not by position on disk."""

MOST_TIES = 1000
"""Where more documents than this share one score, which of them are found is left to the index."""

SCORE_DIGITS = 3
"""Digits behind the point in which scores differ; adding the same numbers in another order changes those behind."""

_CHUNK = 10_000


class CorpusIndex:
    """An index opened for reading; may be open in many processes and threads at once.

    Args:
        directory: Its folder.

    Raises:
        DataError: There is no index, or it is damaged or of another format.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = Path(directory)
        self.info = open_info(self._directory)
        try:
            self._index = tantivy.Index.open(str(directory))
        except (ValueError, OSError) as error:
            raise DataError(
                f"The index in {directory} is damaged ({error}); "
                f"build it again with: search-o1 index build {self.info.name} FILE"
            ) from error
        self._index.register_tokenizer(ENGLISH, index_analyzer())
        self._schema = index_schema()
        self._searcher = self._index.searcher()

    def search(self, query: str, k: int) -> list[Document]:
        """Find documents by BM25 over title and text together, and over the title alone with `TITLE_WEIGHT`.

        Args:
            query: A question or key words; nothing in it is query syntax.
            k: At most this many documents.

        Returns:
            Documents from the best; those with equal scores by id.
        """
        terms = query_terms(query)
        titles = [tantivy.Query.boost_query(self._term("title", term), TITLE_WEIGHT) for term in terms]
        texts = [self._term("text", term) for term in terms]
        cjk = [self._term("cjk", term) for term in cjk_terms(query)]
        clauses = [(tantivy.Occur.Should, clause) for clause in (*titles, *texts, *cjk)]
        if not clauses or k < 1:
            return []
        found = self._best(tantivy.Query.boolean_query(clauses), k)
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
        found = self._searcher.search(self._term("id", id_term(document_id)), 1, count=False).hits
        return self._document(found[0][1]) if found else None

    def get_many(self, document_ids: Sequence[str]) -> list[Document | None]:
        """Return documents by their ids.

        Args:
            document_ids: Their ids.

        Returns:
            One entry an id, in the order asked for; None where there is no such document.
        """
        return [self.get(document_id) for document_id in document_ids]

    def documents(self, start: int = 0) -> Iterator[Document]:
        """Read documents in the order of the corpus, one at a time in memory.

        Args:
            start: Documents to pass over.

        Yields:
            The documents from there to the end.
        """
        for number, segment, position, length in sorted(self._runs()):
            for step in range(max(0, start - number), length):
                yield self._document(tantivy.DocAddress(segment, position + step))

    def __len__(self) -> int:
        return self.info.documents

    def _runs(self) -> Iterator[tuple[int, int, int, int]]:
        """Find where the corpus lies in the segments: (number of the first document, segment, position, length)."""
        segments = json.loads((self._directory / "meta.json").read_text(encoding="utf-8"))["segments"]
        for segment, size in enumerate(entry["max_doc"] for entry in segments):
            first = begin = length = 0
            for chunk in range(0, size, _CHUNK):
                addresses = [tantivy.DocAddress(segment, i) for i in range(chunk, min(size, chunk + _CHUNK))]
                for position, number in enumerate(self._searcher.fast_field_values("number", addresses), start=chunk):
                    if length and number == first + length:
                        length += 1
                        continue
                    if length:
                        yield first, segment, begin, length
                    first, begin, length = number, position, 1
            if length:
                yield first, segment, begin, length

    def _best(self, query: Any, k: int) -> list[tuple[float, Any]]:
        """Return the k best addresses with rounded scores, and all others that share the score of the last."""
        limit = k + SURPLUS
        while True:
            hits = [
                (round(score, SCORE_DIGITS), address)
                for score, address in self._searcher.search(query, limit, count=False).hits
            ]
            if len(hits) < limit or hits[k - 1][0] != hits[-1][0] or limit > MOST_TIES:
                return [hit for hit in hits if hit[0] >= hits[min(k, len(hits)) - 1][0]]
            limit *= 4

    def _term(self, field: str, term: str) -> Any:
        return tantivy.Query.term_query(self._schema, field, term, index_option="freq")

    def _document(self, address: Any) -> Document:
        return from_record(bytes(self._searcher.doc(address).get_first("record")))


def iter_documents(directory: Path, start: int = 0) -> Iterator[Document]:
    """Read the documents of an index in the order of the corpus, one at a time in memory.

    Args:
        directory: Folder of the index.
        start: Documents to pass over.

    Yields:
        The documents; `open_info(directory).documents` says how many there are.

    Raises:
        DataError: There is no index, or it is damaged or of another format.
    """
    yield from CorpusIndex(directory).documents(start)
