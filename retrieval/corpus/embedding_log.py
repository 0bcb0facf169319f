"""Vectors on their way to disk: appended as they come, so that a killed build goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from retrieval.corpus.shards import NUMBER_BYTES, ShardFiles


class EmbeddingLog:
    """The vectors of a build that have been paid for, in shards of equal size.

    A row counts once its vector and its id are complete on disk. Whatever lies behind is cut off on opening.

    Args:
        folder: Folder of the build.
        dimension: Numbers a vector.
        shard_rows: Vectors a shard.
        total: Vectors in all, once complete.

    Attributes:
        count: Rows so far.
    """

    def __init__(self, folder: Path, dimension: int, shard_rows: int, total: int) -> None:
        self.folder = folder
        self.dimension = dimension
        self.shard_rows = shard_rows
        self.total = total
        self.count = 0
        for number in range(self.shards):
            if self.count < number * shard_rows:
                _remove(ShardFiles(folder, number))
            else:
                self.count += self._sound_rows(number)

    @property
    def shards(self) -> int:
        """Number of shards of the complete build."""
        return -(-self.total // self.shard_rows)

    def rows_of(self, number: int) -> int:
        """Return how many rows a shard has once it is complete."""
        return min(self.shard_rows, self.total - number * self.shard_rows)

    def last_id(self) -> str:
        """Return the document id of the last row; there must be one."""
        number, position = divmod(self.count - 1, self.shard_rows)
        with open(ShardFiles(self.folder, number).ids, "rb") as lines:
            return str(json.loads(next(islice(lines, position, None))))

    def append(self, ids: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add rows; once this returns they survive the death of the process.

        Args:
            ids: Their document ids.
            vectors: Their vectors, shape (rows, dimension).
        """
        while ids:
            number, used = divmod(self.count, self.shard_rows)
            part = min(self.shard_rows - used, len(ids))
            files = ShardFiles(self.folder, number)
            with open(files.ids, "ab") as lines, open(files.rows, "ab") as rows:
                lines.write("".join(json.dumps(document_id) + "\n" for document_id in ids[:part]).encode())
                rows.write(vectors[:part].astype("<f2").tobytes())
            self.count += part
            ids, vectors = ids[part:], vectors[part:]

    def _sound_rows(self, number: int) -> int:
        files = ShardFiles(self.folder, number)
        if files.graph.exists():
            return self.rows_of(number)
        if not files.rows.exists() or not files.ids.exists():
            _remove(files)
            return 0
        lines = files.ids.read_bytes().splitlines(keepends=True)
        complete = sum(line[:1] == b'"' and line[-1:] == b"\n" for line in lines)
        row_bytes = NUMBER_BYTES * self.dimension
        rows = min(complete, files.rows.stat().st_size // row_bytes, self._rows_of_length_one(files.rows))
        with open(files.rows, "r+b") as file:
            file.truncate(rows * row_bytes)
        with open(files.ids, "r+b") as file:
            file.truncate(sum(map(len, lines[:rows])))
        return rows

    def _rows_of_length_one(self, path: Path) -> int:
        # After a power failure the end of a file can read as zeros.
        with open(path, "rb") as file:
            rows = 0
            while (part := np.fromfile(file, dtype="<f2", count=10_000 * self.dimension)).size >= self.dimension:
                vectors = part[: part.size // self.dimension * self.dimension].reshape(-1, self.dimension)
                odd = np.flatnonzero(~(np.abs(np.linalg.norm(vectors.astype(np.float32), axis=1) - 1) < 0.05))
                if odd.size:
                    return rows + int(odd[0])
                rows += len(vectors)
        return rows


def _remove(files: ShardFiles) -> None:
    for path in (files.rows, files.ids, files.offsets, files.graph):
        path.unlink(missing_ok=True)
