"""Hybrid search: BM25's list and the dense list of a query, joined by their ranks."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from retrieval.base import Hit
from retrieval.corpus.dense import DenseSearch
from retrieval.http.client import Limits
from retrieval.rank_fusion import RANK_CONSTANT, reciprocal_ranks
from signatures.errors import DataError, OptionError, SearchError

DEPTH = 100


def fuse_ranks(rankings: Sequence[Sequence[str]], rank_constant: int = RANK_CONSTANT) -> list[str]:
    """Join rankings by reciprocal rank fusion: an id scores the sum of 1 / (rank_constant + rank) over its ranks.

    Args:
        rankings: Ids from the best, ranks from 1; each at most once in a ranking.
        rank_constant: How little the first ranks stand out; the paper's 60 by default.

    Returns:
        All ids from the best; equal ones by id.
    """
    scores = reciprocal_ranks(rankings, rank_constant)
    return sorted(scores, key=lambda found: (-scores[found], found))


class HybridSearch(DenseSearch):
    """Search by words and by meaning, joined by reciprocal rank fusion.

    Args:
        directory: Folder of the index; see `DenseSearch`, also for the options of the embeddings server.
        embeddings_url: As for `DenseSearch`.
        embedding_model: As for `DenseSearch`.
        key: As for `DenseSearch`.
        query_prefix: As for `DenseSearch`.
        limits: As for `DenseSearch`.
        rank_constant: The constant of the fusion, at least 0.
        depth: Hits taken from each list, at least 1; more if more are asked for.

    Raises:
        OptionError: A number is too small.
    """

    mode = "hybrid"

    def __init__(
        self,
        directory: str | Path,
        embeddings_url: str | None = None,
        embedding_model: str | None = None,
        key: str | None = None,
        query_prefix: str | None = None,
        limits: Limits | None = None,
        rank_constant: int = RANK_CONSTANT,
        depth: int = DEPTH,
    ) -> None:
        if rank_constant < 0:
            raise OptionError(f"The rank constant of hybrid search must be at least 0, not {rank_constant}.")
        if depth < 1:
            raise OptionError(f"The depth of hybrid search must be at least 1, not {depth}.")
        super().__init__(directory, embeddings_url, embedding_model, key, query_prefix, limits)
        self.rank_constant = rank_constant
        self.depth = depth

    async def search(self, query: str, k: int) -> list[Hit]:
        """Search; see `retrieval.base.Search.search`. A blank query has no hits."""
        if k < 1:
            return []
        depth = max(k, self.depth)
        dense = asyncio.create_task(self.nearest(query, depth))
        try:
            # Lets the query be sent, so that BM25 runs while the server embeds it.
            await asyncio.sleep(0)
            lexical = self.lexical(query, depth)
            fused = fuse_ranks([[document.id for document in lexical], await dense], self.rank_constant)[:k]
            known = {document.id: document for document in lexical}
            others = self.documents(found for found in fused if found not in known)
            known.update({document.id: document for document in others})
            return self.hits((known[found] for found in fused), query)
        except (DataError, ValueError, OSError) as error:
            raise SearchError(str(error), provider=self.name) from error
        finally:
            dense.cancel()

    def identity(self) -> str:
        """Return what `DenseSearch.identity` does, with the options of the fusion."""
        return f"{super().identity()}:{self.rank_constant}:{self.depth}"
