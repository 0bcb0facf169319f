"""What a replay has to say at its end: what the cache did not hold, and whether it equals its recording."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.caching.replay import take_missing
from runs.home import Home
from runs.journal import Journal, Record

REPLAY_SUFFIX = "-replay"
"""A replay's folder is its recording's with this added, so that it answers every question anew."""

_COMPARED = ("chain", "direct_chain", "prediction", "finish")


def replay_report(home: Home, done: Sequence[tuple[str, str, Sequence[Record]]]) -> list[str]:
    """Compare replays with their recordings.

    Args:
        home: Home folder.
        done: (method, id of the replay, its records) each.

    Returns:
        Lines for the user: one a method, and one on what the cache did not hold.
    """
    lines = []
    for method, name, records in done:
        journal = Journal(home.runs / name.removesuffix(REPLAY_SUFFIX) / "journal.jsonl")
        recorded = journal.read()
        shared = [(r, recorded[key]) for r in records if (key := (r["id"], r["sample"])) in recorded]
        if not shared:
            lines.append(f"{method}: the recording's journal is not in this home folder, so nothing was compared")
            continue
        same = [r for r, other in shared if all(r.get(field) == other.get(field) for field in _COMPARED)]
        line = f"{method}: {len(same)} of {len(shared)} chains equal the recording byte for byte"
        others = [r["id"] for r, _ in shared if r not in same][:5]
        lines.append(line + (f"; not: {', '.join(others)}" if others else ""))
    missing = take_missing(home.cache).report()
    return [*lines, missing] if missing else lines
