"""One finding of the doctor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from retrieval.caching.keys import shown
from signatures.errors import SearchO1Error

MOST_CHARS = 600

State = Literal["ok", "wrong", "off"]


@dataclass(frozen=True)
class Check:
    """One line of the report.

    Attributes:
        name: What was looked at.
        state: `ok`, `wrong`, or `off` for something that is not set up and not asked for.
        text: What was found.
        mend: The command or setting that mends it; empty when nothing is wrong.
    """

    name: str
    state: State
    text: str
    mend: str = ""


def guarded(name: str, look: Callable[[], Check], mend: str = "") -> Check:
    """Run a check; an error of ours, or any other, becomes its finding.

    Args:
        name: What is looked at.
        look: The check.
        mend: What to do if it fails; errors of ours say it themselves.

    Returns:
        The finding.
    """
    try:
        return look()
    except SearchO1Error as error:
        return Check(name, "wrong", _line(str(error)), mend)
    except Exception as error:
        return Check(name, "wrong", _line(f"{type(error).__name__}: {error}"), mend)


def _line(text: str) -> str:
    """Return a text on one line, cut to `MOST_CHARS`; passwords in addresses are blacked out."""
    return shown(" ".join(text.split()))[:MOST_CHARS]
