"""A shard: some hundred thousand passage vectors in one usearch file that is read through memory mapping.

Shards bound the memory that building takes, whatever the size of the corpus, and are what a killed build goes on from.
The file holds a vector in half precision (f16): measured on 100,000 vectors, recall is that of full precision at half
its size, while 8-bit numbers lost a tenth of the neighbours.
"""

from __future__ import annotations

import json
import mmap
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from usearch.index import Index

CONNECTIVITY = 16
EXPANSION_ADD = 128
EXPANSION_SEARCH = 128
"""Breadth of the graph and of the search in it; usearch widens the latter to the number of hits asked for."""

ADD_ROWS = 10_000
"""Vectors handed to usearch at once."""

NUMBER_BYTES = 2


class ShardFiles:
    """The files of one shard.

    Args:
        folder: Folder of the vectors.
        number: Number of the shard, from 0.

    Attributes:
        rows: Vectors before the graph is built, row after row; removed once it is.
        ids: Ids of the documents, a JSON string a line.
        offsets: Where each line of `ids` begins, 64-bit, with the end of the last as one more.
        graph: usearch's file: the vectors and the graph between them.
    """

    def __init__(self, folder: Path, number: int) -> None:
        self.rows = folder / f"{number:05}.f16"
        self.ids = folder / f"{number:05}.ids"
        self.offsets = folder / f"{number:05}.offsets"
        self.graph = folder / f"{number:05}.usearch"


def build_graph(files: ShardFiles, dimension: int) -> None:
    """Turn the rows of a shard into its graph; does nothing where that has been done.

    Args:
        files: The shard, its rows complete.
        dimension: Numbers a vector.
    """
    if files.graph.exists():
        files.rows.unlink(missing_ok=True)
        return
    sync(files.ids)
    lines = files.ids.read_bytes().splitlines(keepends=True)
    _write(files.offsets, np.cumsum([0, *map(len, lines)], dtype="<u8").tobytes())
    index = new_index(dimension)
    first = 0
    with open(files.rows, "rb") as rows:
        while (part := np.fromfile(rows, dtype="<f2", count=ADD_ROWS * dimension)).size:
            vectors = part.reshape(-1, dimension)
            index.add(np.arange(first, first + len(vectors), dtype=np.uint64), vectors)
            first += len(vectors)
    unfinished = files.graph.with_suffix(".part")
    index.save(str(unfinished))
    sync(unfinished)
    os.replace(unfinished, files.graph)
    files.rows.unlink()


def new_index(dimension: int) -> Index:
    """Return an empty usearch index in which vectors are found by position and compared by cosine.

    Args:
        dimension: Numbers a vector.
    """
    return Index(
        ndim=dimension,
        metric="cos",
        dtype="f16",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
        # Without the table of keys, opening a shard reads next to nothing.
        enable_key_lookups=False,
    )


def sync(path: Path) -> None:
    """Wait until a file has reached the disk."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


class Shard:
    """A finished shard opened for reading; its pages are shared by all processes that read it.

    Args:
        files: Its files.
        dimension: Numbers a vector.

    Raises:
        ValueError: The files do not fit together, or are damaged.
        OSError: A file cannot be read.
    """

    def __init__(self, files: ShardFiles, dimension: int) -> None:
        self._offsets = np.memmap(files.offsets, dtype="<u8", mode="r")
        with open(files.ids, "rb") as ids:
            self._ids = mmap.mmap(ids.fileno(), 0, access=mmap.ACCESS_READ)
        described = Index.metadata(str(files.graph))
        if described is None or described["dimensions"] != dimension:
            raise ValueError(f"{files.graph} holds no vectors of dimension {dimension}")
        self._index = new_index(dimension)
        try:
            self._index.view(str(files.graph))
        except RuntimeError as error:
            raise ValueError(f"{files.graph}: {error}") from error
        if len(self._index) != len(self) or int(self._offsets[-1]) != len(self._ids):
            raise ValueError(f"{files.graph} and {files.ids} do not fit together")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def search(self, vector: NDArray[np.float32], k: int, *, exact: bool) -> list[tuple[float, str]]:
        """Find the nearest vectors.

        Args:
            vector: The query's vector, shape (dimension,).
            k: At most this many.
            exact: Compare with every vector instead of walking the graph.

        Returns:
            Cosine similarity (from -1 to 1) and document id of each, best first.
        """
        found = self._index.search(vector.astype(np.float16), min(k, len(self)), exact=exact)
        return [(1.0 - float(d), self.id(int(row))) for row, d in zip(found.keys, found.distances, strict=True)]

    def id(self, row: int) -> str:
        """Return the document id of a row, from 0."""
        return str(json.loads(self._ids[int(self._offsets[row]) : int(self._offsets[row + 1])]))


def _write(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
