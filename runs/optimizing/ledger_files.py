"""The files of a ledger: an append-only JSONL file, and one JSON file a candidate."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from programs.saving import state_digest
from signatures.errors import DataError, ProgramError

_NAMED = 16
"""Characters of a digest that name a candidate's file."""


class LedgerFile:
    """Rows of JSON, each written at once; a last one that was cut by a kill is dropped.

    Args:
        path: The file; made when first written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._starts: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        """Wall time of all starts, each from its beginning to its last row."""
        return sum(last - first for first, last in self._starts)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; whoever takes them raises KeyError or TypeError for one that is damaged.

        Raises:
            DataError: A whole row is damaged.
        """
        if not self.path.is_file():
            return
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            # The next row must not be written onto one that a crash cut off.
            os.truncate(self.path, len(whole))
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                row = json.loads(line)
                self._clock(row)
            except (ValueError, KeyError, TypeError):
                raise self.damaged(number) from None
            yield row

    def damaged(self, number: int) -> DataError:
        """Return the error for a damaged row."""
        return DataError(
            f"{self.path}, line {number}: damaged; remove that line, or the folder {self.path.parent} to start anew "
            "(model replies stay in the cache)."
        )

    def append(self, row: dict[str, Any]) -> None:
        """Write a row with the time.

        Raises:
            DataError: The file cannot be written.
        """
        timed = {**row, "time": round(time.time(), 1)}
        self._clock(timed)
        line = json.dumps(timed, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                end = file.seek(0, os.SEEK_END)
                try:
                    if file.write(line) != len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                except OSError:
                    # Half a row would have the next one written onto it.
                    file.truncate(end)
                    raise
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def _clock(self, row: dict[str, Any]) -> None:
        if row["kind"] == "start" or not self._starts:
            self._starts.append((row["time"], row["time"]))
        self._starts[-1] = (self._starts[-1][0], max(self._starts[-1][1], row["time"]))


class CandidateFiles:
    """The states of candidates.

    Args:
        folder: Their folder; made when first written to.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, digest: str, number: int, origin: str, state: dict[str, Any]) -> None:
        """Store a candidate.

        Raises:
            DataError: The folder cannot be written.
        """
        path = self._path(digest)
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        content = {"digest": digest, "number": number, "origin": origin, "state": state}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"))
            draft.replace(path)
        except OSError as error:
            raise _unwritable(path, error) from error

    def state(self, digest: str) -> dict[str, Any]:
        """Return a candidate's state as it was stored.

        Raises:
            ProgramError: Its file is gone or damaged.
        """
        path = self._path(digest)
        try:
            state: dict[str, Any] = json.loads(path.read_bytes())["state"]
        except (OSError, ValueError, KeyError, TypeError):
            state = {}
        if state_digest(state) != digest:
            raise ProgramError(f"{path} is gone or damaged; remove {path.parent.parent} and start again.")
        return state

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest[:_NAMED]}.json"


def lean_state(program: Any) -> dict[str, Any]:
    """Return a program's state with what its prompts are made of, and nothing that an optimizer left behind."""
    return {
        name: {**predictor, "traces": [], "train": [], "lm": None} for name, predictor in program.dump_state().items()
    }


def _unwritable(path: Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be written: {error.strerror}. Make room and start again.")
