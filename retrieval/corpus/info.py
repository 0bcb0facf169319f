"""What an index holds, as its `info.json` says."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from retrieval.corpus.analysis import ANALYSIS_VERSION
from signatures.errors import DataError

FORMAT_VERSION = 2
"""Raised whenever an older index could no longer be read, or the corpus hash is defined anew."""

INFO_FILE = "info.json"


@dataclass(frozen=True)
class IndexInfo:
    """What an index holds.

    Attributes:
        name: Name of the corpus, as in `corpus://NAME/ID`.
        documents: Number of documents.
        corpus_hash: Hash, in hex, over the documents in order; see `retrieval.corpus.schema.chain_hash`.
        skipped: Lines, rows and files that gave no document.
        bytes: Bytes of the files it was built from.
        sources: Names of the files and folders it was built from.
        inputs: Hash over names, sizes and times of change of all files it was built from.
        created: When it was finished, UTC, ISO 8601.
        seconds: Time it took to build, without interruptions.
        format_version: Format of the index.
        analysis_version: How its terms were made.
    """

    name: str
    documents: int
    corpus_hash: str
    skipped: int = 0
    bytes: int = 0
    sources: tuple[str, ...] = ()
    inputs: str = ""
    created: str = ""
    seconds: float = 0.0
    format_version: int = FORMAT_VERSION
    analysis_version: int = ANALYSIS_VERSION


def write_info(folder: Path, info: IndexInfo) -> None:
    """Write the description of an index into its folder."""
    (folder / INFO_FILE).write_text(json.dumps(asdict(info), indent=2) + "\n", encoding="utf-8")


def open_info(directory: Path) -> IndexInfo:
    """Read what an index holds.

    Args:
        directory: Its folder.

    Returns:
        Its description.

    Raises:
        DataError: There is no index, or one of another format.
    """
    path = Path(directory) / INFO_FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        name, version, analysis = record["name"], record["format_version"], record.get("analysis_version")
        if (version, analysis) == (FORMAT_VERSION, ANALYSIS_VERSION):
            return IndexInfo(**{**record, "sources": tuple(record["sources"])})
    except FileNotFoundError as error:
        raise DataError(f"There is no index in {directory}; build it with: search-o1 index build NAME FILE") from error
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(f"The index description {path} cannot be read ({error}); build the index again.") from error
    which, found, wanted = "format", version, FORMAT_VERSION
    if version == FORMAT_VERSION:
        which, found, wanted = "analysis", analysis, ANALYSIS_VERSION
    raise DataError(
        f"The index in {directory} has {which} {found}, this version reads {wanted}; "
        f"build it again with: search-o1 index build {name} FILE"
    )
