"""The tests of a LiveCodeBench problem, as its rows hold them.

Public tests are a JSON list. Private ones are that too, or, in the files of `code_generation_lite`, the same JSON text
pickled, compressed and in base64. A pickle can call any function when it is loaded; here every one is refused, and so
is a text that grows beyond a cap when it is decompressed.

Source: github.com/LiveCodeBench/LiveCodeBench, lcb_runner/benchmarks/code_generation.py.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import pickle
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signatures.errors import DataError

MAX_PRIVATE_BYTES = 512 << 20
"""Most bytes that private tests of one problem may have once decompressed."""

_KINDS = ("stdin", "functional")
_METHOD = re.compile(r"^\s*def\s+(\w+)\s*\(", re.MULTILINE)


@dataclass(frozen=True)
class CodeTest:
    """One test of a program.

    Attributes:
        input: Standard input; of a function its arguments, one JSON value a line.
        output: The expected output; of a function the expected value as JSON.
        functional: Whether a function is called.
    """

    input: str
    output: str
    functional: bool = False


@dataclass(frozen=True)
class CodeTests:
    """All tests of one problem.

    Attributes:
        public: Those that the problem's text shows.
        private: The others; empty where the file leaves them out.
        function: Name of the function or method that is called; empty for a program that reads standard input.
    """

    public: tuple[CodeTest, ...]
    private: tuple[CodeTest, ...] = ()
    function: str = ""

    @property
    def all(self) -> tuple[CodeTest, ...]:
        """Every test that is present, public ones first."""
        return self.public + self.private

    @property
    def coverage(self) -> str:
        """`all` with private tests, else `public only`: what a strict score of theirs must be labelled with."""
        return "all" if self.private else "public only"

    def to_label(self) -> str:
        """Return the tests as one JSON text, which fits where other tasks have their label."""
        named = {"public": self.public, "private": self.private}
        rows: dict[str, Any] = {
            name: [[test.input, test.output, int(test.functional)] for test in tests] for name, tests in named.items()
        }
        return json.dumps({**rows, "function": self.function}, ensure_ascii=False)

    @classmethod
    def from_label(cls, label: str) -> CodeTests:
        """Read what `to_label` wrote.

        Args:
            label: The JSON text.

        Returns:
            The tests.

        Raises:
            DataError: The text is something else.
        """
        try:
            rows = json.loads(label)
            public, private = (
                tuple(CodeTest(str(given), str(expected), bool(kind)) for given, expected, kind in rows[name])
                for name in ("public", "private")
            )
            return cls(public, private, str(rows["function"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(
                f"The label of a code question does not hold tests ({type(error).__name__}: {error}); "
                "write it with CodeTests.to_label()."
            ) from None


def read_tests(row: Mapping[str, Any]) -> CodeTests:
    """Read the tests of a LiveCodeBench row, or of the paper's authors' file.

    The function's name is the row's `func_name`, else that in its `metadata`, else the last one that its
    `starter_code` defines.

    Args:
        row: `public_test_cases` (a list, or its JSON text), and where present `private_test_cases` (the same, or
            encoded), `metadata`, `func_name`, `starter_code`, and `question_id` for messages.

    Returns:
        The tests.

    Raises:
        DataError: There is no test, one is malformed, or a function is to be called whose name is nowhere.
    """
    where = f"problem {row.get('question_id') or row.get('id') or '?'}"
    public = _tests(row.get("public_test_cases"), f"{where}, public_test_cases")
    private = _tests(_private(row.get("private_test_cases"), where), f"{where}, private_test_cases")
    if not public and not private:
        raise DataError(f"{where} has no tests; its public_test_cases must be a list with at least one.")
    function = ""
    if any(test.functional for test in (*public, *private)):
        function = _function(row)
        if not function:
            raise DataError(
                f"{where} calls a function, but its name is neither in func_name, nor in metadata, nor in starter_code."
            )
    return CodeTests(public, private, function)


def decode_private_tests(encoded: str, max_bytes: int = MAX_PRIVATE_BYTES) -> str:
    """Decode private tests.

    Args:
        encoded: Base64 of a zlib stream of a pickled string.
        max_bytes: Most bytes that the stream may decompress to.

    Returns:
        The string, a JSON list.

    Raises:
        DataError: It is not encoded so, names anything that could be executed, or is larger than allowed.
    """
    try:
        compressed = base64.b64decode(encoded, validate=True)
        stream = zlib.decompressobj()
        pickled = stream.decompress(compressed, max_bytes)
        if stream.unconsumed_tail or not stream.eof:
            raise DataError(
                f"Private tests were refused: they decompress to more than {max_bytes} bytes, or are cut off."
            )
        text = _TextOnly(io.BytesIO(pickled)).load()
    except DataError:
        raise
    # A damaged pickle raises almost anything.
    except (binascii.Error, zlib.error, pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError) as error:
        raise _damaged(error) from None
    except (IndexError, AttributeError, ImportError, OverflowError, MemoryError, RecursionError) as error:
        raise _damaged(error) from None
    if not isinstance(text, str):
        raise DataError(f"Private tests were refused: they hold a {type(text).__name__}, not a text.")
    return text


class _TextOnly(pickle.Unpickler):
    """An unpickler that makes nothing but plain data."""

    def find_class(self, module: str, name: str) -> Any:
        """Refuse every global, whatever it is."""
        raise DataError(f"Private tests were refused: their pickle asks for {module}.{name}, and a text needs nothing.")

    def persistent_load(self, pid: Any) -> Any:
        """Refuse references to outside."""
        raise DataError("Private tests were refused: their pickle refers to an object outside.")


def _damaged(error: Exception) -> DataError:
    return DataError(
        f"Private tests are damaged ({type(error).__name__}: {error}); expected base64 of a compressed pickled text."
    )


def _private(value: Any, where: str) -> Any:
    if not isinstance(value, str) or not value.strip() or value.lstrip().startswith("["):
        return value
    try:
        return decode_private_tests(value)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None


def _tests(value: Any, where: str) -> tuple[CodeTest, ...]:
    if isinstance(value, str) and value.strip():
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} is not JSON: {error}.") from None
    if not value:
        return ()
    if not isinstance(value, list):
        raise DataError(f"{where}: expected a list of tests, found {type(value).__name__}.")
    return tuple(_test(entry, f"{where}, test {number}") for number, entry in enumerate(value, 1))


def _test(entry: Any, where: str) -> CodeTest:
    if not isinstance(entry, dict) or not all(isinstance(entry.get(name), str) for name in ("input", "output")):
        raise DataError(f"{where}: expected an object with the texts input and output.")
    kind = entry.get("testtype") or "stdin"
    if kind not in _KINDS:
        raise DataError(f"{where}: unknown testtype {kind!r}; known: {', '.join(_KINDS)}.")
    test = CodeTest(entry["input"], entry["output"], kind == "functional")
    if test.functional:
        try:
            for line in (*test.input.split("\n"), test.output):
                if line.strip():
                    json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{where}: a functional test has one JSON value a line, and its output is one: {error}."
            ) from None
    return test


def _function(row: Mapping[str, Any]) -> str:
    metadata = row.get("metadata")
    if isinstance(metadata, str):
        try:
            metadata = json.loads(metadata)
        except ValueError:
            metadata = None
    named = row.get("func_name") or (metadata.get("func_name") if isinstance(metadata, dict) else None)
    if named:
        return str(named)
    defined = _METHOD.findall(str(row.get("starter_code") or ""))
    return defined[-1] if defined else ""
