"""Choosing, among many demos, the few that are most like the question at hand.

A model of a hundred million parameters imitates what stands right before its own text, so two fitting demos serve it
better than eight others (measured on the quickstart's validation split). Words, word pairs and how a question begins
are compared, rare ones weighing more.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

_WORD = re.compile(r"\w+")


def nearest_demos(demos: Sequence[Mapping[str, Any]], text: str, key: str, count: int) -> list[Mapping[str, Any]]:
    """Return the demos whose `key` field is most like a text.

    A demo with the very same text is left out: it would tell the answer.

    Args:
        demos: The pool.
        text: The question or query at hand.
        key: Field of a demo to compare (`question`, `search_query`).
        count: How many to return.

    Returns:
        At most `count` demos, the most similar last; ties keep the pool's order.
    """
    texts = [str(demo.get(key) or "") for demo in demos]
    frequency: Counter[str] = Counter()
    for features in map(_features, texts):
        frequency.update(features)
    weights = {f: math.log((len(demos) + 1) / (n + 0.5)) for f, n in frequency.items() if n > 1}
    wanted = _features(text)
    own = _total(wanted, weights)

    def similarity(index: int) -> float:
        features = _features(texts[index])
        shared = sum(weights.get(f, 0.0) for f in wanted & features)
        return shared / (math.sqrt(own * _total(features, weights)) or 1.0)

    others = [i for i in range(len(demos)) if texts[i] != text]
    chosen = sorted(others, key=lambda i: (-similarity(i), i))[:count]
    return [demos[i] for i in reversed(chosen)]


def _total(features: frozenset[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(f, 0.0) for f in features)


@lru_cache(maxsize=4_096)
def _features(text: str) -> frozenset[str]:
    words = _WORD.findall(text.lower())
    pairs = {f"{a} {b}" for a, b in pairwise(words)}
    return frozenset({*words, *pairs, "^" + " ".join(words[:2]), "^" + " ".join(words[:3])})
