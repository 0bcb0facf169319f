"""What the chains of a run look like: searches, failures by shape, tokens, cost, latency, words of doubt.

Source of the words of doubt: Search-o1 (arXiv 2501.05366), Figure 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from signatures.markup import model_text

UNCERTAINTY_WORDS = ("perhaps", "alternatively", "wait", "likely")
"""The words that Figure 1 of the paper counts."""

TRUNCATED = frozenset({"length", "context"})
"""Finish reasons of a chain that ran out of room."""


def uncertainty_words(chain: str) -> dict[str, int]:
    """Count the words of doubt that the model itself wrote.

    Args:
        chain: The whole chain, injected blocks with their markers.

    Returns:
        How often each of `UNCERTAINTY_WORDS` occurs as a whole word outside the injected blocks, case ignored.
    """
    words = re.findall(r"\w+", model_text(chain).lower())
    return {word: words.count(word) for word in UNCERTAINTY_WORDS}


def chain_metrics(records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Summarise the chains of a run.

    Args:
        records: One a question and sample, with `finish` (reason), `searches`, `malformed`, `refinements` and
            `refined_to_nothing` (counts), `searches_failed` and `reads_failed` (name to count), `reads` and
            `reads_cached` (pages), `valid` (bool), `prompt_tokens`, `completion_tokens` and `cached_tokens`,
            `cost` (US dollars, None where the price is unknown), `seconds` and `chain` (text). A missing count is 0: a
            question that failed early has few of them.

    Returns:
        Always the same keys, in this order: `questions` (records); a record: `searches`, `searched_share` (at least one
        search), `malformed_queries`, `searches_failed`, `pages_read`; `pages_failed_share` (of the pages that a reader
        was asked for), `pages_cached_share` (of those read); `refined_to_nothing_rate` (of all refinements),
        `valid_share`, `truncated_share`; a record: `prompt_tokens`, `completion_tokens`, `tokens`; `cached_share` (of
        all prompt tokens); `cost` (a record whose cost is known) and `total_cost`; `seconds_p50` and `seconds_p95`; a
        chain: `uncertainty_words` and each word as `uncertainty_WORD`. What cannot be said, such as any mean over no
        records, is NaN.
    """
    count = len(records)

    def total(key: str) -> float:
        return math.fsum(record.get(key) or 0 for record in records)

    def total_counts(key: str) -> int:
        return sum(sum((record.get(key) or {}).values()) for record in records)

    doubts = [uncertainty_words(record.get("chain") or "") for record in records]
    costs = [record["cost"] for record in records if record.get("cost") is not None]
    failed_reads = total_counts("reads_failed")
    seconds = [float(record["seconds"]) for record in records if record.get("seconds") is not None]
    by_word = {word: _ratio(sum(doubt[word] for doubt in doubts), count) for word in UNCERTAINTY_WORDS}
    return {
        "questions": float(count),
        "searches": _ratio(total("searches"), count),
        "searched_share": _ratio(sum(bool(record.get("searches")) for record in records), count),
        "malformed_queries": _ratio(total("malformed"), count),
        "searches_failed": _ratio(total_counts("searches_failed"), count),
        "pages_read": _ratio(total("reads"), count),
        "pages_failed_share": _ratio(failed_reads, total("reads") + failed_reads),
        "pages_cached_share": _ratio(total("reads_cached"), total("reads")),
        "refined_to_nothing_rate": _ratio(total("refined_to_nothing"), total("refinements")),
        "valid_share": _ratio(sum(bool(record.get("valid")) for record in records), count),
        "truncated_share": _ratio(sum(record.get("finish") in TRUNCATED for record in records), count),
        "prompt_tokens": _ratio(total("prompt_tokens"), count),
        "completion_tokens": _ratio(total("completion_tokens"), count),
        "tokens": _ratio(total("prompt_tokens") + total("completion_tokens"), count),
        "cached_share": _ratio(total("cached_tokens"), total("prompt_tokens")),
        "cost": _ratio(math.fsum(costs), len(costs)),
        "total_cost": math.fsum(costs) if costs else math.nan,
        "seconds_p50": quantile(seconds, 0.5),
        "seconds_p95": quantile(seconds, 0.95),
        "uncertainty_words": math.fsum(by_word.values()),
        **{f"uncertainty_{word}": rate for word, rate in by_word.items()},
    }


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values lies, interpolated between neighbours.

    Args:
        values: Any numbers, in any order.
        share: 0 (the smallest) to 1 (the largest).

    Returns:
        The quantile in the unit of the values; NaN for no values.
    """
    if not values:
        return math.nan
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
