"""Reading outputs and labels as data files hold them: a string where a list is meant, a number, NaN, nothing at all.

Files differ: the published ones hold a list of labels for some sets and a bare string for others, and a table with a
gap turns whole numbers into floats and the gap into NaN. The published scorer would read a bare string letter by
letter; here it is one label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from signatures.errors import DataError


def as_labels(value: Any) -> list[str]:
    """Return the labels that a data file's answer field holds.

    Args:
        value: A string or number (one label), a list, tuple, set or array of them (each of which is right), or None or
            NaN (no label).

    Returns:
        The labels as text, in order; blank ones, None and NaN are left out, since nothing could match them honestly. A
        whole number reads the same whether it came as 73 or 73.0. With no label left, no answer can be right.

    Raises:
        DataError: The value is neither text, number nor a flat list of them.
    """
    if isinstance(value, str | Real) or value is None:
        values: list[Any] = [value]
    elif isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        values = list(value)
    else:
        values = [value]
    return [text for item in values if (text := _as_text(item, "a label")).strip()]


def as_output(value: Any) -> str:
    """Return what a model wrote as text.

    Args:
        value: The output; None or NaN where a data file has a gap.

    Returns:
        The text; empty for a gap, which is an answer that is not there.

    Raises:
        DataError: The value is neither text nor a gap.
    """
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, str):
        return value
    raise DataError(f"an output must be text, not {type(value).__name__} ({value!r:.60}); give the model's whole text")


def _as_text(value: Any, what: str) -> str:
    if value is None or (isinstance(value, Real) and value != value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    raise DataError(
        f"{what} must be text or a number, not {type(value).__name__} ({value!r:.60}); give one string or a flat list"
    )
