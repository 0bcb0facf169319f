"""What became of a question's searches and reads, counted from the events of its chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

UNKNOWN = "unknown"
"""Stands for a provider or a reason that an event does not name."""


def retrieval_counts(
    events: Sequence[Mapping[str, Any]], *, error_kind: str = "", error_provider: str = ""
) -> dict[str, Any]:
    """Count what was searched and read, and what failed.

    Args:
        events: Events of the chain.
        error_kind: Kind of the error that ended it, or empty.
        error_provider: Provider named by that error, for chains that ended before they had events.

    Returns:
        `reads` (pages a reader gave), `reads_cached` (of these from the cache), `reads_failed` (reason to count) and
        `searches_failed` (provider to count; also backends that failed while others answered). A page that came with
        its search hit is no read.
    """
    reads = [e for e in events if e["type"] == "read" and e.get("source", "reader") == "reader"]
    read = [e for e in reads if not e.get("reason")]
    failed = Counter(str(e.get("provider") or e.get("backend") or UNKNOWN) for e in events if _is_failed_search(e))
    if error_kind == "search" and not any(e["type"] == "search" and e.get("error") for e in events):
        failed[error_provider or UNKNOWN] += 1
    return {
        "reads": len(read),
        "reads_cached": sum(bool(e.get("cached")) for e in read),
        "reads_failed": dict(Counter(str(e["reason"]) for e in reads if e.get("reason"))),
        "searches_failed": dict(failed),
    }


def total(records: Iterable[Mapping[str, Any]], field: str) -> dict[str, int]:
    """Add up a field of counts over records, the most frequent first.

    Args:
        records: Records; one from a journal of an earlier version lacks the field.
        field: `reads_failed` or `searches_failed`.

    Returns:
        Name to count.
    """
    counts: Counter[str] = Counter()
    for record in records:
        counts.update(record.get(field) or {})
    return dict(counts.most_common())


def _is_failed_search(event: Mapping[str, Any]) -> bool:
    return event["type"] == "backend_failed" or (event["type"] == "search" and bool(event.get("error")))
