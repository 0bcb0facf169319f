"""The JSON document of a compiled program: written in one stroke, checked as a whole before anything is believed.

The checksum covers everything but itself, metadata included, so that a score cannot be edited without a trace.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from signatures.errors import ProgramError

FORMAT = 2
MOST_BYTES = 64 * 2**20
MOST_DEPTH = 40
_NAMES = ("method", "model", "task", "language")
_PREDICTOR = frozenset({"traces", "train", "demos", "signature", "lm"})
_SURROGATE = re.compile("[\ud800-\udfff]")


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value in canonical JSON: sorted keys, no spaces, UTF-8.

    Args:
        value: Anything JSON can hold.

    Returns:
        64 hexadecimal digits.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document with its format and checksum; a reader sees the old file or the new one, never half of it.

    Args:
        path: File to write; its folder is made if need be.
        document: `method`, `model`, `task`, `language`, `metadata`, `state`.

    Raises:
        ProgramError: The document holds what JSON cannot, has another layout, or the file cannot be written.
    """
    try:
        # What is hashed is what a reader will find: JSON makes lists of tuples and texts of keys.
        plain = json.loads(json.dumps({"format": FORMAT, **document}, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"{path} cannot be written: the program holds what JSON cannot: {error}.") from error
    _check_layout(path, plain)
    text = json.dumps({**plain, "sha256": digest_of(plain)}, ensure_ascii=False, indent=1) + "\n"
    # Half of a character, as a page cut at a wrong place leaves it, is no UTF-8; JSON has a way to write it.
    text = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    except OSError as error:
        raise ProgramError(f"{path} cannot be written: {error.strerror}; choose another file.") from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)


def read_document(path: Path) -> dict[str, Any]:
    """Read a document and check format, checksum and layout.

    Args:
        path: The JSON file.

    Returns:
        The document.

    Raises:
        ProgramError: The file is missing, is no compiled program, has another format or layout, or was changed after
            it was written.
    """
    document = _parse(path)
    if not isinstance(document, dict) or "state" not in document or "method" not in document:
        raise ProgramError(f"{path} is not a compiled program of this project; it lacks `method` or `state`.")
    again = _again(path, document)
    found = document.get("format")
    if found != FORMAT:
        newer = isinstance(found, int) and found > FORMAT
        way_out = f"update search-o1, or {again}" if newer else again
        raise ProgramError(f"{path} has format {found!r}; this version reads format {FORMAT}. Way out: {way_out}")
    plain = {name: value for name, value in document.items() if name != "sha256"}
    if digest_of(plain) != document.get("sha256"):
        raise ProgramError(
            f"{path} was changed after it was written (its checksum does not match): take the original, or {again}"
        )
    _check_layout(path, plain)
    return document


def _parse(path: Path) -> Any:
    try:
        found_there = path.stat()
        if not stat.S_ISREG(found_there.st_mode) and not stat.S_ISDIR(found_there.st_mode):
            raise ProgramError(f"{path} is no regular file, so it is not a compiled program.")
        if found_there.st_size > MOST_BYTES:
            raise ProgramError(f"{path} is not a compiled program: it is larger than {MOST_BYTES // 2**20} MiB.")
        found = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number, parse_float=_number)
    except FileNotFoundError:
        raise ProgramError(f"No compiled program at {path}; `search-o1 programs` lists those there are.") from None
    except IsADirectoryError:
        raise ProgramError(f"{path} is a folder, not a compiled program; name the JSON file.") from None
    except OSError as error:
        raise ProgramError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ProgramError(f"{path} is not a JSON file: it is not UTF-8 text.") from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError as error:
        raise ProgramError(f"{path} is not a JSON file: {error}.") from None
    if _is_deep(found):
        raise _too_deep(path)
    return found


def _too_deep(path: Path) -> ProgramError:
    return ProgramError(f"{path} is not a compiled program: its JSON is nested deeper than {MOST_DEPTH} levels.")


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [i for v in level for i in (v.values() if isinstance(v, dict) else v if isinstance(v, list) else ())]
    return bool(level)


def _again(path: Path, document: Mapping[str, Any]) -> str:
    """Return the way to another file, in a line that cannot hold what a damaged file may say of its method."""
    method = str(document.get("method"))
    return f"compile it again: search-o1 optimize --method {method if method.isidentifier() else 'METHOD'}"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _check_layout(path: Path, document: Mapping[str, Any]) -> None:
    """Refuse what DSPy would load without a word: it sets whatever a predictor's state names as an attribute."""
    wrong = [name for name in _NAMES if not _is_name(document.get(name))]
    wrong += [name for name in ("metadata", "state") if not isinstance(document.get(name), dict)]
    state = document.get("state")
    for name, predictor in state.items() if isinstance(state, dict) else ():
        wrong += [f"state.{name}{part}" for part in _wrong_parts(predictor)] if _is_name(name) else ["state"]
    if wrong:
        raise ProgramError(
            f"{path} has another layout than this version reads: {', '.join(wrong)}. It was written by other software; "
            + _again(path, document)
        )


def _wrong_parts(predictor: Any) -> list[str]:
    if not isinstance(predictor, dict):
        return [""]
    wrong = [f".{name if _is_name(name) else '?'}" for name in sorted(set(predictor) ^ _PREDICTOR)]
    wrong += [f".{name}" for name in ("traces", "train") if predictor.get(name) != [] and f".{name}" not in wrong]
    if predictor.get("lm") is not None:
        wrong.append(".lm")
    demos, signature = predictor.get("demos"), predictor.get("signature")
    if not isinstance(demos, list) or not all(isinstance(demo, dict) for demo in demos):
        wrong.append(".demos")
    # Python takes no half characters in the text of a class, which is where DSPy keeps instructions.
    if not isinstance(signature, dict) or not _is_text(signature.get("instructions")):
        return [*wrong, ".signature.instructions"]
    fields = signature.get("fields")
    if not isinstance(fields, list) or not all(_is_field(field) for field in fields):
        wrong.append(".signature.fields")
    return list(dict.fromkeys(wrong))


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isprintable()


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and _SURROGATE.search(value) is None


def _is_field(field: Any) -> bool:
    return isinstance(field, dict) and all(isinstance(field.get(name), str) for name in ("prefix", "description"))
