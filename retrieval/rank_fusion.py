"""Reciprocal rank fusion: joining rankings by the ranks alone.

Source: Cormack, Clarke and Büttcher, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)

RANK_CONSTANT = 60
"""The paper's; the larger, the less the first ranks stand out."""


def reciprocal_ranks(rankings: Sequence[Sequence[Key]], rank_constant: int = RANK_CONSTANT) -> dict[Key, float]:
    """Score what is ranked by the sum of 1 / (rank_constant + rank) over its rankings.

    Args:
        rankings: Keys from the best, ranks from 1; of a key that a ranking repeats the first place counts.
        rank_constant: How little the first ranks stand out.

    Returns:
        Score by key, in the order of first occurrence; sums that are equal but for rounding are equal.
    """
    shares: dict[Key, list[float]] = {}
    for ranking in rankings:
        seen: set[Key] = set()
        for rank, key in enumerate(ranking, start=1):
            if key not in seen:
                seen.add(key)
                shares.setdefault(key, []).append(1 / (rank_constant + rank))
    # Twelve digits tell all ranks apart, and make 1/2 and 1/3 + 1/6 one number.
    return {key: round(math.fsum(parts), 12) for key, parts in shares.items()}
