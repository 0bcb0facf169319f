"""How numbers are written in reports: percent with one decimal, intervals in square brackets."""

from __future__ import annotations

from metrics.statistics import Estimate
from runs.reports.intervals import Interval
from runs.reports.layout import MISSING


def percent(value: float | None) -> str:
    """Return a share as percent; a dash where there is none."""
    return MISSING if value is None or value != value else _number(value)


def with_interval(found: Estimate | Interval | None) -> str:
    """Return a share as percent with its 95 % interval."""
    if found is None:
        return MISSING
    value = found.mean if isinstance(found, Estimate) else found.value
    if value != value:
        return MISSING
    return f"{_number(value)}{_ends(found, '')}"


def signed(found: Interval | None) -> str:
    """Return a difference or gain in percent with its sign and interval."""
    if found is None or found.value != found.value:
        return MISSING
    return f"{_number(found.value, '+')}{_ends(found, '+')}"


def _ends(found: Estimate | Interval, sign: str) -> str:
    if found.low != found.low or found.high != found.high:
        return ""
    return f" [{_number(found.low, sign)}, {_number(found.high, sign)}]"


def _number(share: float, sign: str = "") -> str:
    # Adding 0 turns the -0.0 that rounding can leave into 0.0.
    return f"{round(100 * share, 1) + 0.0:{sign}.1f}"
