"""Words of a page or a question in one spelling, whatever way they are shown: HTML, LaTeX, JSON, PDF.

This module is a leaf: it imports the standard library only.
"""

from __future__ import annotations

import codecs
import html
import re
import unicodedata

_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_ONE_CJK = re.compile(f"[{_CJK}]")
# Every pattern here is linear in a page that was written to make it slow.
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_JSON_ESCAPE = re.compile(r"(?<!\\)\\{1,4}(?:u([0-9a-fA-F]{4})|(?:r\\{1,4})?n(?=[^a-z]|$))")
_COMMAND = re.compile(r"\\+(?:(?:begin|end)\s*\{[^{}]{0,30}\}|([a-zA-Z]+)|.)", re.DOTALL)
_BROKEN_WORD = re.compile(r"(?<=[a-z])[-\u00ad]\r?\n[ \t]*(?=[a-z])")
# Runs of foreign letters are taken together with the spaces between them: one call a sentence, not one a word.
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+(?: +[^\x00-\x7f]+)*")
_DROPPED = re.compile("[\u0300-\u036f'’‘ʼ\u00ad\u200b-\u200d\u2060\ufeff]+")
_NO_WORD = re.compile(r"\W+")
_ASCII_WORDS = bytes(ord(chr(i).lower()) if chr(i).isalnum() else 32 for i in range(128)) + bytes(range(128, 256))
_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ", "lambda": "λ", "mu": "μ",
    "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "omega": "ω",
}  # fmt: skip
_SPOKEN = frozenset(
    {"sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "log", "ln", "lim", "max", "min", "gcd"}
    | {"boxed"}
)
"""LaTeX commands that a rendered page shows as a word, and the one that says where the answer is."""


def folded_words(text: str) -> list[str]:
    """Fold a text so that the same question reads the same: markup, LaTeX, accents, case and punctuation go.

    Args:
        text: Text of a page or a question; tags, entities, LaTeX and raw JSON are read through.

    Returns:
        Its words and numbers in lower case; each Chinese or Japanese character is one.
    """
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAG.sub(" ", text)
    if "[asy]" in text:
        text = _without_figures(text)
    if "\\" in text:
        text = _COMMAND.sub(_say, _JSON_ESCAPE.sub(_unescape, text))
    if "-\n" in text or "-\r" in text or "\u00ad" in text:
        text = _BROKEN_WORD.sub("", text)
    return text.encode("ascii", _FOLDING).translate(_ASCII_WORDS, b"'").decode("utf-8").split()


def prose(words: list[str]) -> list[str]:
    """Return the words of the prose: without numbers, single letters and what mixes both.

    Args:
        words: Words of `folded_words`.

    Returns:
        What is left when a page's formulas and figures are lost, as they are where they are pictures.
    """
    return [word for word in words if word.isalpha() and (len(word) > 1 or is_cjk(word))]


def is_cjk(word: str) -> bool:
    """Tell whether a word of `folded_words` is one Chinese or Japanese character."""
    return len(word) == 1 and _ONE_CJK.match(word) is not None


def _without_figures(text: str) -> str:
    """Drop Asymptote drawings, which pages show as pictures."""
    start, *rest = text.split("[asy]")
    return start + " ".join(part.partition("[/asy]")[2] if "[/asy]" in part else part for part in rest)


def _fold(error: UnicodeError) -> tuple[bytes, int]:
    """Fold a run of other than ASCII characters, as UTF-8; the encoder goes on where it ends.

    The encoder finds the runs faster than a pattern does: a whole page is folded in half the time.
    """
    assert isinstance(error, UnicodeEncodeError)
    run = _NOT_ASCII.match(error.object, error.start)
    assert run is not None
    text = unicodedata.normalize("NFKD", run.group().casefold())
    # Kana and Hangul are spelt with combining signs of their own, which stay.
    text = _NO_WORD.sub(" ", unicodedata.normalize("NFC", _DROPPED.sub("", text)))
    return _ONE_CJK.sub(r" \g<0> ", text).encode("utf-8", "replace"), run.end()


_FOLDING = "search_o1_fold"
codecs.register_error(_FOLDING, _fold)


def _unescape(escape: re.Match[str]) -> str:
    """Read what JSON writes of a character or a line end: pages of raw data show that."""
    return chr(int(escape.group(1), 16)) if escape.group(1) else "\n"


def _say(command: re.Match[str]) -> str:
    name = command.group(1) or ""
    return f" {_GREEK.get(name) or (name if name in _SPOKEN else '')} "
