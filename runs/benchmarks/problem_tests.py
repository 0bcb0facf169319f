"""The tests of a code problem, left in their file until they are needed.

Private tests of one LiveCodeBench problem take megabytes, those of the whole set a gigabyte and several once decoded.
So a question keeps the place of its row, and reads the tests when its program is judged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metrics.livecodebench_tests import CodeTests, read_tests
from signatures.errors import DataError

TEST_FIELDS = ("public_test_cases", "private_test_cases", "func_name", "metadata", "starter_code", "question_id", "id")
"""Fields of a row that say how its program is tested."""


@dataclass(frozen=True)
class RowPlace:
    """Where a row stands in a JSON Lines file.

    Attributes:
        path: The file.
        offset: Byte at which its line begins.
        size: Bytes of the line.
    """

    path: Path
    offset: int
    size: int

    def read(self) -> dict[str, Any]:
        """Return the row.

        Raises:
            DataError: The file is gone or no longer holds the row there.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                row = json.loads(file.read(self.size))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path} no longer holds its row at byte {self.offset}: {error}.") from None
        if not isinstance(row, dict):
            raise DataError(f"{self.path} no longer holds its row at byte {self.offset}.")
        return row


@dataclass(frozen=True)
class ProblemTests:
    """Tests of one problem.

    Attributes:
        digest: SHA-256 of all that decides what is tested.
        fields: The row's `TEST_FIELDS`; empty where they are read from `place`.
        place: Where the row stands, or None where `fields` holds it.
    """

    digest: str
    fields: Mapping[str, Any]
    place: RowPlace | None = None

    @classmethod
    def of_row(cls, row: Mapping[str, Any], place: RowPlace | None = None) -> ProblemTests:
        """Take the tests of a row.

        Args:
            row: A row with `public_test_cases`.
            place: Where it can be read again; a row with private tests is then not kept.

        Returns:
            Its tests.
        """
        fields = {name: row[name] for name in TEST_FIELDS if row.get(name) is not None}
        if place is not None and fields.get("private_test_cases"):
            return cls(_digest(fields), {}, place)
        return cls(_digest(fields), fields)

    def read(self) -> CodeTests:
        """Return the tests, decoded.

        Raises:
            DataError: They are malformed or refused, or their file has changed since the question was read.
        """
        if self.place is None:
            return read_tests(self.fields)
        found = ProblemTests.of_row(self.place.read())
        if found.digest != self.digest:
            raise DataError(f"{self.place.path} has changed since its questions were read; start the run again.")
        return read_tests(found.fields)


def _digest(fields: Mapping[str, Any]) -> str:
    told = {name: value for name, value in fields.items() if name not in ("id", "question_id")}
    digest = hashlib.sha256()
    for name in sorted(told):
        text = told[name] if isinstance(told[name], str) else json.dumps(told[name], sort_keys=True, default=str)
        digest.update(f"{name} {len(text)} ".encode())
        digest.update(text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
