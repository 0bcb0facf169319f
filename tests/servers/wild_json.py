"""Any JSON that a server may answer, near to what a parser looks for: for fuzzing with hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


def replies(*names: str) -> st.SearchStrategy[Any]:
    """Return a strategy for JSON values.

    Args:
        *names: Field names that the parser knows; objects are made of these and of others.
    """
    addresses = st.sampled_from(["https://example.org/a", "HTTP://b", "https://[", "corpus://x", "//c", "\ud800"])
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | addresses
    keys = st.sampled_from(names) | st.text(max_size=3)
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5), max_leaves=25
    )
