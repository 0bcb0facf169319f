"""Local indexes as a person looks after them: `search-o1 index` and the same as Python functions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval.base import Hit
from retrieval.corpus.build import is_corpus_name
from retrieval.corpus.build_folder import BuildFolder, building_folder
from retrieval.corpus.info import INFO_FILE, IndexInfo, open_info
from runs.home import Home
from signatures.errors import DataError, OptionError

__all__ = ["HeldIndex", "IndexInfo", "build_index", "index_info", "list_indexes", "remove_index", "search_index"]


@dataclass(frozen=True)
class HeldIndex:
    """An index in the home folder.

    Attributes:
        name: Its name there, for `--index`.
        directory: Its folder.
        info: What it holds, or None if it cannot be used.
        bytes: Its size on disk.
        dense: Whether it has passage vectors.
        problem: Why it cannot be used, or empty.
    """

    name: str
    directory: Path
    info: IndexInfo | None
    bytes: int
    dense: bool
    problem: str = ""


def build_index(
    name: str,
    files: Sequence[str | Path],
    *,
    strict: bool = False,
    fresh: bool = False,
    progress: bool = True,
    home: Home | None = None,
) -> IndexInfo:
    """Build an index of your own documents; a stopped or killed call goes on where it stopped.

    Args:
        name: Name of the index: letters, digits, `.`, `_` and `-`.
        files: JSONL files, plain or compressed, Parquet files, Markdown, HTML, PDF and text files, and folders of them.
        strict: Stop at the first line, row or file that gives no document instead of skipping and counting it.
        fresh: Start anew instead of going on.
        progress: Show on standard error how it goes and what is skipped.
        home: Home folder; by default the user's.

    Returns:
        What was built.

    Raises:
        OptionError: The name cannot be part of an address.
        DataError: A file is missing or of an unknown format, there is no document, or the folder cannot be written;
            with `strict`, a line, row or file is malformed.
    """
    from retrieval.corpus.build import build_index as build
    from runs.index_progress import IndexProgress

    if not is_corpus_name(name):
        raise OptionError(f"{name!r} cannot name a corpus; use letters, digits, '.', '_' and '-'.")
    directory = (home or Home()).indexes / name
    with IndexProgress(name, shown=progress) as shown:
        return build(
            [Path(file) for file in files],
            directory,
            name,
            shown.update,
            strict=strict,
            fresh=fresh,
            on_problem=shown.problem,
            say=shown.say,
        )


def list_indexes(*, home: Home | None = None) -> list[HeldIndex]:
    """Return the indexes of the home folder by name; those that cannot be used and half-built ones say why.

    Args:
        home: Home folder; by default the user's.

    Returns:
        The indexes.
    """
    folder = (home or Home()).indexes
    entries = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    whole = {path.name: path for path in entries if not path.name.startswith(".") and (path / INFO_FILE).is_file()}
    half = {name for path in entries if (name := path.name[1:].removesuffix("-building")) != path.name[1:]}
    held = [_held(path) for path in whole.values()]
    held += [_half_built(folder / name) for name in half - set(whole)]
    return sorted(held, key=lambda index: index.name)


def index_info(name: str, *, home: Home | None = None) -> HeldIndex:
    """Return what an index holds.

    Args:
        name: Name of the index.
        home: Home folder; by default the user's.

    Returns:
        The index.

    Raises:
        OptionError: There is no such index; the text lists those there are.
    """
    for held in list_indexes(home=home):
        if held.name == name:
            return held
    raise OptionError(_unknown(name, home))


def search_index(name: str, query: str, k: int = 5, *, home: Home | None = None) -> list[Hit]:
    """Search an index.

    Args:
        name: Name of the index.
        query: A question or key words.
        k: At most this many hits.
        home: Home folder; by default the user's.

    Returns:
        Hits from the best.

    Raises:
        OptionError: There is no such index, or k is not positive.
        SearchError: The index is damaged or of another format.
    """
    from retrieval.corpus.local import LocalSearch
    from retrieval.sync import search_sync

    if k < 1:
        raise OptionError(f"k = {k}: at least one hit must be asked for.")
    return search_sync(LocalSearch(index_info(name, home=home).directory), query, k)


def remove_index(name: str, *, home: Home | None = None) -> HeldIndex:
    """Remove an index and what a stopped build of it left.

    Args:
        name: Name of the index.
        home: Home folder; by default the user's.

    Returns:
        What was removed.

    Raises:
        OptionError: There is no such index.
        DataError: It is being built, or cannot be removed.
    """
    held = index_info(name, home=home)

    def busy() -> None:
        raise DataError(f"The index {name!r} is being built; stop that first.")

    place = BuildFolder(held.directory)
    with place.locked(busy):
        place.clear()
        if (held.directory / INFO_FILE).is_file():
            place.take_away()
    return held


def _held(directory: Path) -> HeldIndex:
    from retrieval.corpus.vectors import FOLDER

    info, problem = None, ""
    try:
        info = open_info(directory)
    except DataError as error:
        problem = str(error)
    return HeldIndex(
        directory.name, directory, info, _size(directory), dense=(directory / FOLDER / INFO_FILE).is_file(),
        problem=problem,
    )  # fmt: skip


def _half_built(directory: Path) -> HeldIndex:
    folder = building_folder(directory)
    documents = 0
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError):
        documents = int(json.loads((folder / "state.json").read_text(encoding="utf-8"))["commits"][-1]["documents"])
    problem = f"Half-built: {documents:,} documents so far; the command that built it goes on from there."
    return HeldIndex(directory.name, directory, None, _size(folder), dense=False, problem=problem)


def _size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        # A build that is under way merges and removes files meanwhile.
        with contextlib.suppress(FileNotFoundError):
            size += path.lstat().st_size
    return size


def _unknown(name: str, home: Home | None) -> str:
    known = ", ".join(held.name for held in list_indexes(home=home)) or "none yet"
    return f"There is no index {name!r}; there are: {known}. Build it with: search-o1 index build NAME FILE"
