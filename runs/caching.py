"""The cache as a person looks after it: `search-o1 cache` and the same as Python functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from retrieval.caching.merging import Imported, import_store
from retrieval.caching.store import Kind
from retrieval.caching.upkeep import Holding, Pruned, export_store, holdings, prune
from runs.home import Home
from signatures.errors import OptionError

__all__ = ["Holding", "Imported", "Pruned", "cache_stats", "export_cache", "import_cache", "prune_cache"]

MOST_BYTES = 2**62
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}
_BYTES = {"": 1, "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "t": 1_000_000_000_000}


def cache_stats(*, home: Home | None = None) -> list[Holding]:
    """Return what the cache holds, by kind and provider.

    Args:
        home: Home folder; by default the user's.

    Returns:
        One record a kind and provider: entries, bytes, oldest and newest.

    Raises:
        DataError: There is no cache yet, or its file is damaged.
    """
    return holdings((home or Home()).cache)


def export_cache(target: str | Path, *, force: bool = False, home: Home | None = None) -> list[Holding]:
    """Write the cache into one file that `import_cache` takes elsewhere; others may go on writing meanwhile.

    Args:
        target: The file to write.
        force: Write over a file that is there.
        home: Home folder; by default the user's.

    Returns:
        What the file holds.

    Raises:
        DataError: There is no cache, or the file is there or cannot be written.
    """
    return export_store((home or Home()).cache, Path(target), replace=force)


def import_cache(source: str | Path, *, home: Home | None = None) -> Imported:
    """Bring the entries of an exported cache into this one; of two entries for the same question the newer one wins.

    Args:
        source: A file that `export_cache` wrote.
        home: Home folder; by default the user's.

    Returns:
        How many entries were added, replaced, kept and left out.

    Raises:
        DataError: The file is missing, no cache, or damaged; nothing is changed then.
    """
    return import_store((home or Home()).cache, Path(source))


def prune_cache(
    *,
    older_than: str | float | None = None,
    kinds: Sequence[str] = (),
    providers: Sequence[str] = (),
    max_bytes: str | int | None = None,
    home: Home | None = None,
) -> Pruned:
    """Remove entries from the cache and give their room back.

    Args:
        older_than: Remove what is older: seconds, or text such as `30d`, `12h`.
        kinds: Only these kinds; empty means all.
        providers: Only these providers; empty means all.
        max_bytes: Remove the oldest of them until all entries together are at most so large: bytes, or `500MB`.
        home: Home folder; by default the user's.

    Returns:
        What was removed, and the size of the file before and after.

    Raises:
        OptionError: Nothing says what to remove, or a value makes no sense.
        DataError: There is no cache, or it is locked or damaged.
    """
    return prune(
        (home or Home()).cache,
        older_than_s=None if older_than is None else parse_age(older_than),
        kinds=cast(Sequence[Kind], tuple(kinds)),
        providers=tuple(providers),
        max_bytes=None if max_bytes is None else parse_bytes(max_bytes),
    )


def parse_age(given: str | float) -> float:
    """Read an age.

    Args:
        given: Seconds, or a number with s, m, h, d or w: `90s`, `12h`, `30d`, `2w`.

    Returns:
        Seconds.

    Raises:
        OptionError: It is no age.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw]?)", str(given).strip().lower())
    if match is None:
        raise OptionError(f"{given!r} is no age; write for example 30d, 12h or 90s.")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def parse_bytes(given: str | int) -> int:
    """Read a size.

    Args:
        given: Bytes, or a number with kB, MB, GB or TB (thousands).

    Returns:
        Bytes.

    Raises:
        OptionError: It is no size.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)b?", str(given).strip().lower())
    if match is None:
        raise OptionError(f"{given!r} is no size; write for example 500MB or 2GB.")
    # Beyond what a disk holds every number means the same.
    return int(min(float(match[1]) * _BYTES[match[2]], MOST_BYTES))
