"""Text that models and web pages wrote, made safe for a terminal: it is shown, never obeyed."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (direction overrides), half characters, line and paragraph separators."""
_JOINERS = "\u200c\u200d"
"""They join letters and emoji, and command nothing."""


def visible(text: str) -> str:
    r"""Return a text with every character that a terminal would obey written as its escape.

    Args:
        text: Any text; line breaks and tabs stay.

    Returns:
        The text; an escape character stands in it as `\x1b`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(sign) for sign in text)


def _shown(sign: str) -> str:
    if sign in _KEPT or sign in _JOINERS or unicodedata.category(sign) not in _ACTIVE:
        return sign
    return sign.encode("unicode_escape").decode("ascii")
