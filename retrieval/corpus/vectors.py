"""The passage vectors of an index: what they are, whether they fit the index, and finding the nearest.

They lie in the folder `vectors` of the index, as usearch shards (`retrieval.corpus.shards`) and a description.
usearch was chosen over LanceDB after both held the same 100,000 vectors of 384 numbers, on two busy cores: 0.5 and
19 ms a query, recall at 10 of 1.00 and 0.97, 87 and 127 MB on disk, 57 and 183 MB of packages beyond those that are
there anyway. Opening maps a file and starts no threads, so any number of processes can read the same pages.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.corpus.info import IndexInfo, open_info
from signatures.errors import DataError

FORMAT_VERSION = 1
"""Raised whenever older vectors could no longer be read."""

FOLDER = "vectors"
INFO_FILE = "info.json"

EXACT_UP_TO = 20_000
"""Corpora up to this size are compared with vector by vector, which takes about 3 ms and misses none."""

SURPLUS = 10
"""Vectors looked at beyond the number asked for, so that equal similarities are ordered by id, not by position."""


@dataclass(frozen=True)
class VectorsInfo:
    """What vectors there are.

    Attributes:
        model: Name of the embedding model.
        dimension: Numbers a vector.
        query_prefix: Text in front of queries, as known when the passages were embedded.
        passage_prefix: Text in front of each passage.
        count: Number of vectors.
        shards: Number of shards.
        shortened: Passages that the server found too long and that were embedded without their end.
        corpus_hash: Hash of the corpus they were made from.
        library: The library that wrote them, with its version.
        format_version: Format of the vectors.
    """

    model: str
    dimension: int
    query_prefix: str
    passage_prefix: str
    count: int
    shards: int
    shortened: int
    corpus_hash: str
    library: str
    format_version: int = FORMAT_VERSION

    def to_json(self) -> str:
        """Return the description as it is written to disk."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


def embed_command(name: str, model: str = "MODEL") -> str:
    """Return the command that makes the vectors of an index, for errors.

    Args:
        name: Name of the corpus.
        model: Embedding model.
    """
    return f"search-o1 index embed {name} --embeddings-url URL --embedding-model {model}"


def open_vectors_info(directory: Path, model: str | None = None) -> VectorsInfo:
    """Read what vectors an index has, and check that they belong to it.

    Args:
        directory: Folder of the index.
        model: The embedding model they must come from, if that matters.

    Returns:
        Their description.

    Raises:
        DataError: There is no index; or no vectors, or those of another corpus, model or format.
    """
    index = open_info(directory)
    # The index that a run makes of a corpus has a folder of another name, which is what commands go by.
    name = Path(directory).name
    path = Path(directory) / FOLDER / INFO_FILE
    try:
        info = VectorsInfo(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise DataError(
            f"The index {name!r} has no vectors for dense search; make them with: {embed_command(name)}"
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"The description of the vectors {path} cannot be read ({error}); "
            f"make them again with: {embed_command(name)}"
        ) from error
    _check(info, index, model, name)
    return info


class CorpusVectors:
    """The vectors of an index opened for reading; may be open in many processes and threads at once.

    Args:
        directory: Folder of the index.
        model: The embedding model they must come from, if that matters.

    Raises:
        DataError: There is no index; or no vectors, damaged ones, or those of another corpus, model or format.
    """

    def __init__(self, directory: Path, model: str | None = None) -> None:
        from retrieval.corpus.shards import Shard, ShardFiles

        self.info = open_vectors_info(directory, model)
        self.name = Path(directory).name
        folder = Path(directory) / FOLDER
        try:
            self._shards = [Shard(ShardFiles(folder, n), self.info.dimension) for n in range(self.info.shards)]
        except (ValueError, OSError) as error:
            raise DataError(
                f"The vectors in {folder} are damaged ({error}); remove that folder and make them again with: "
                f"{embed_command(self.name, self.info.model)}"
            ) from error

    @property
    def is_quick(self) -> bool:
        """Whether a search takes a few milliseconds at most, and may run in an event loop."""
        return len(self._shards) <= 1

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[str, float]]:
        """Find the documents nearest to a query.

        Args:
            vector: The query's vector, of length 1, shape (dimension,).
            k: At most this many documents.

        Returns:
            Document id and cosine similarity of each, best first; equal ones by id.

        Raises:
            DataError: The vector has another dimension.
        """
        if vector.shape != (self.info.dimension,):
            raise DataError(
                f"The embeddings server gave a vector of dimension {vector.size} for the query, the vectors of "
                f"{self.name!r} have {self.info.dimension} (model {self.info.model!r}): it serves another model. "
                f"Serve that one, or make the vectors again with: {embed_command(self.name)}"
            )
        if k < 1:
            return []
        exact = self.info.count <= EXACT_UP_TO
        found = [pair for shard in self._shards for pair in shard.search(vector, k + SURPLUS, exact=exact)]
        found.sort(key=lambda pair: (-pair[0], pair[1]))
        return [(document_id, similarity) for similarity, document_id in found[:k]]


def _check(info: VectorsInfo, index: IndexInfo, model: str | None, name: str) -> None:
    if info.format_version != FORMAT_VERSION:
        problem = f"have format {info.format_version}, this version reads {FORMAT_VERSION}"
    elif info.corpus_hash != index.corpus_hash or info.count != index.documents:
        problem = "were made from another corpus than the index now holds"
    elif model is not None and info.model != model:
        raise DataError(
            f"The vectors of the index {name!r} come from the model {info.model!r}, not {model!r}; leave out "
            f"--embedding-model, or make them again with: {embed_command(name, model)}"
        )
    else:
        return
    raise DataError(
        f"The vectors of the index {name!r} {problem}; make them again with: {embed_command(name, info.model)}"
    )
