"""The journal of a run: one JSON line a finished (question, sample), appended at once, read again to go on."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from signatures.errors import DataError

Record = dict[str, Any]


class Journal:
    """An append-only JSONL file that survives being killed in the middle of a line.

    Args:
        path: The file; made when first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def read(self) -> dict[tuple[str, int], Record]:
        """Return the finished records by (question id, sample); the last one counts.

        A last line that was cut by a crash is dropped.

        Raises:
            DataError: A whole line is damaged.
        """
        if not self.path.is_file():
            return {}
        # What follows the last line end was cut by a crash, even if it happens to be whole: `append` drops it too.
        lines = self.path.read_bytes().split(b"\n")[:-1]
        found: dict[tuple[str, int], Record] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
                found[record["id"], record["sample"]] = record
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    f"{self.path}, line {number}: damaged; remove that line, or start anew with --fresh."
                ) from None
        return found

    def append(self, record: Record) -> None:
        """Write one record through to the disk.

        Args:
            record: Has `id` and `sample`, and is plain JSON.

        Raises:
            DataError: The file cannot be written.
        """
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            with self._lock:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._mend()
                with self.path.open("ab") as file:
                    file.write(line)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise DataError(
                f"The journal {self.path} cannot be written: {error.strerror}. Make room and start again."
            ) from error

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)

    def _mend(self) -> None:
        """Cut a last line that a crash left without its end, so that the next record starts on its own line."""
        if not self.path.is_file() or self.path.stat().st_size == 0:
            return
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) == b"\n":
                return
            content = self.path.read_bytes()
            file.truncate(content.rfind(b"\n") + 1)
