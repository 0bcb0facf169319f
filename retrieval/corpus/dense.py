"""Dense search: the passages whose vectors lie nearest to the query's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from retrieval.base import Hit
from retrieval.corpus.documents import Document
from retrieval.corpus.embeddings import EmbeddingsClient
from retrieval.corpus.index import CorpusIndex
from retrieval.corpus.info import open_info
from retrieval.corpus.local import CorpusReader, LocalSearch, corpus_url
from retrieval.corpus.opened import Opened
from retrieval.corpus.snippets import snippet_around_match
from retrieval.corpus.vectors import CorpusVectors, open_vectors_info
from retrieval.http.client import Limits
from signatures.errors import DataError, SearchError


class DenseSearch:
    """Search by meaning: the query is embedded by a server, the nearest passages are found on disk.

    It holds no connection until first used, so it survives pickling and deepcopy and costs nothing to make.

    Args:
        directory: Folder of the index; `retrieval.corpus.vector_building.build_vectors` must have embedded it.
        embeddings_url: Address of the embeddings server; by default the environment's EMBEDDINGS_URL.
        embedding_model: Name of the model; by default the one that the passages were embedded with, and any other is an
            error.
        key: Key of the embeddings server; by default the environment's EMBEDDINGS_API_KEY. May be missing.
        query_prefix: Text in front of queries; by default the one noted with the vectors.
        limits: Time-outs, retries and caps of the embeddings server.
    """

    name = "local"
    mode = "dense"

    def __init__(
        self,
        directory: str | Path,
        embeddings_url: str | None = None,
        embedding_model: str | None = None,
        key: str | None = None,
        query_prefix: str | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.directory = Path(directory)
        self.embeddings_url = embeddings_url
        self.embedding_model = embedding_model
        self.query_prefix = query_prefix
        self.limits = limits
        self._key = key
        self._index = Opened(partial(CorpusIndex, self.directory))
        self._vectors = Opened(partial(CorpusVectors, self.directory, embedding_model))
        self._client: EmbeddingsClient | None = None

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. A blank query has no hits."""
        if k < 1:
            return []
        try:
            ids = await self.nearest(query, k)
            return self.hits(self.documents(ids), query)
        except (DataError, ValueError, OSError) as error:
            raise SearchError(str(error), provider=self.name) from error

    async def nearest(self, query: str, k: int) -> list[str]:
        """Find the documents nearest to a query.

        Args:
            query: What to look for; a blank one has none.
            k: At most this many.

        Returns:
            Their ids, nearest first.

        Raises:
            DataError: The vectors are missing, damaged, or belong to another corpus or model.
            SearchError: The embeddings server failed.
        """
        if not query.strip():
            return []
        vectors = self._vectors.get()
        vector = await self._asker(vectors).embed_query(query)
        # One shard takes a few milliseconds, less than handing the search to another thread and back costs under load.
        find = partial(vectors.search, vector, k)
        return [found for found, _ in (find() if vectors.is_quick else await asyncio.to_thread(find))]

    def documents(self, ids: Iterable[str]) -> list[Document]:
        """Return the documents with these ids, in that order.

        Raises:
            DataError: One is not in the index.
        """
        wanted = list(ids)
        found = self._index.get().get_many(wanted)
        documents = [document for document in found if document is not None]
        if len(documents) < len(wanted):
            missing = next(i for i, document in zip(wanted, found, strict=True) if document is None)
            raise DataError(f"The index in {self.directory} lacks the document {missing!r} that its vectors name.")
        return documents

    def lexical(self, query: str, k: int) -> list[Document]:
        """Return the documents that BM25 finds for a query, best first."""
        return self._index.get().search(query, k)

    def hits(self, documents: Iterable[Document], query: str) -> list[Hit]:
        """Return what a search gives for these documents."""
        name = self._index.get().info.name
        return [
            Hit(
                title=document.title,
                url=corpus_url(name, document.id),
                snippet=snippet_around_match(document.text, query),
                site=name,
            )
            for document in documents
        ]

    def identity(self) -> str:
        """Return mode, corpus name and hash, embedding model, prefixes and formats.

        Raises:
            SearchError: There is no index, or no vectors that fit it.
        """
        try:
            index = open_info(self.directory)
            vectors = open_vectors_info(self.directory, self.embedding_model)
        except DataError as error:
            raise SearchError(str(error), provider=self.name) from error
        prefix = vectors.query_prefix if self.query_prefix is None else self.query_prefix
        return (
            f"{self.name}:{self.mode}:{index.name}:{index.corpus_hash}:{index.format_version}:{vectors.model}:"
            f"{vectors.dimension}:{prefix!r}:{vectors.passage_prefix!r}:{vectors.format_version}"
        )

    def reader(self) -> CorpusReader:
        """Return the reader of this index's documents.

        Raises:
            SearchError: There is no index.
        """
        return LocalSearch(self.directory).reader()

    def _asker(self, vectors: CorpusVectors) -> EmbeddingsClient:
        # Kept, since it learns what the server does not take.
        if self._client is None:
            self._client = EmbeddingsClient(
                url=self.embeddings_url,
                model=vectors.info.model,
                key=self._key,
                query_prefix=vectors.info.query_prefix if self.query_prefix is None else self.query_prefix,
                passage_prefix=vectors.info.passage_prefix,
                limits=self.limits or Limits(),
            )
        return self._client
