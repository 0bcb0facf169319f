"""Documents from Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from retrieval.corpus.documents import START, Malformed, Position, Unit, parse_record
from signatures.errors import DataError

COLUMNS = ("id", "title", "text", "contents")
BATCH_ROWS = 1000
_BUFFER = 1 << 20


class ParquetRows:
    """A Parquet file with the columns id, title and text, or id and contents.

    Positions are numbers of rows. A row group is decoded piece by piece, so that its size does not matter.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = path.name
        self.size = path.stat().st_size

    def units(self, position: Position = START) -> Iterator[Unit]:
        """Read on; see `retrieval.corpus.documents.Source.units`."""
        import pyarrow
        import pyarrow.parquet

        try:
            with pyarrow.parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False) as file:
                names = file.schema_arrow.names
                columns = [name for name in COLUMNS if name in names]
                if "id" not in columns or not {"text", "contents"} & set(columns):
                    raise DataError(
                        f"{self.path} has the columns {', '.join(names) or 'none'}; "
                        "it needs id and text (and title), or id and contents."
                    )
                yield from self._rows(file, columns, position[0])
        except (OSError, pyarrow.ArrowException) as error:
            why = getattr(error, "strerror", None) or error
            raise DataError(f"The corpus file {self.path} cannot be read: {why}.") from error

    def _rows(self, file: Any, columns: list[str], start: int) -> Iterator[Unit]:
        total = max(1, file.metadata.num_rows)
        row, groups = 0, list(range(file.num_row_groups))
        while groups and row + file.metadata.row_group(groups[0]).num_rows <= start:
            row += file.metadata.row_group(groups.pop(0)).num_rows
        batches = file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)
        for batch in batches if groups else ():
            for record in batch.to_pylist():
                row += 1
                if row <= start:
                    continue
                position, done = (row, row), self.size * row // total
                where = f"{self.path}, row {row}"
                try:
                    yield Unit((parse_record(record),), where, "", position, done)
                except Malformed as error:
                    yield Unit((), where, str(error), position, done)
