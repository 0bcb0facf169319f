r"""Math answers as text: one plain LaTeX line out of many dresses, and the exact value of those that are just a number.

Most answers are numbers, and those need no computer algebra: `value` reads them exactly, without floating point.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

_SYMBOLS = {
    "−": "-", "–": "-", "×": "\\times ", "·": "\\cdot ", "⋅": "\\cdot ", "÷": "/", "⁄": "/", "∕": "/",
    "π": "\\pi ", "θ": "\\theta ", "∞": "\\infty ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ", "±": "\\pm ",
    "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "∅": "\\emptyset ", "ℝ": "\\mathbb{R}", "°": "^\\circ",
    "²": "^{2}", "³": "^{3}", "√": "\\sqrt ",
}  # fmt: skip
_NO_SPACE = re.compile(r"(?<=,)\\!\s*|(?<!\\)\\!")
_VULGAR_FRACTION = re.compile(r"(?<=[0-9])\s*(?=[¼-¾⅐-⅞])")
# Not after a backslash: "\\" ends a row of a matrix, whatever follows it.
_DELIMITERS = re.compile(r"(?<!\\)(?:\$|\\[()\[\]]|\\displaystyle(?![a-zA-Z])|\\boxed(?=\s*\{))")
_THIN_SPACES = re.compile(r"(?<!\\)\\(?:[,;:> ]|q?quad(?![a-zA-Z]))|~")
_BIG = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])\s*(?!\.)")
_FRACTIONS = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_THOUSANDS = re.compile(r"(?<![0-9.,])([1-9][0-9]{0,2}(?:,[0-9]{3})+)(?!,?[0-9])")
_BRACKET = re.compile(r"[(\[]|\\\{")
_SPACED_THOUSANDS = re.compile(r"(?<![0-9.,])([1-9][0-9]{0,2}(?: [0-9]{3})+)(?![0-9])")
_SHORT_TOP = re.compile(r"\\frac\s*([0-9a-zA-Z])")
_SHORT_BOTTOM = re.compile(r"(\\frac\{[^{}]*\})\s*([0-9a-zA-Z])")
_SHORT_ROOT = re.compile(r"\\sqrt\s*([0-9a-zA-Z])(?![a-zA-Z])")
_SPACE = re.compile(r"\s*([-+*/=<>;:^_(){}\[\]|])\s*|\s+(?=\\)")
_WORDS = r"[a-zA-Z][a-zA-Z.°²³ /^{}0-9\-]*"
_UNIT = re.compile(rf"\\(?:text\w*|mathrm|mbox|operatorname)\{{\s*(?:{_WORDS})\}}(?:\^\{{?[0-9]\}}?)?$")
_DRESS = re.compile(r"^\\\$|\\?\$$|(?:\^\{?\\circ\}?|\\degree)$")
_PERCENT = re.compile(r"\\?%$|\\text\{\s*percent\}$")
_NAMED = re.compile(r"(?:[a-zA-Z]|\\[a-zA-Z]+)(?:_\{?\w+\}?)?=(?=[^=]*$)")

_INTEGER = r"[0-9]{1,1000}"
_NUMBER = re.compile(rf"(?P<whole>{_INTEGER})?(?:\.(?P<decimals>{_INTEGER})|\.)?")
_FRACTION = re.compile(
    rf"(?P<mixed>{_INTEGER}(?=\\| ))? ?(?P<minus>-)?"
    rf"(?:\\frac\{{(?P<top>-?{_INTEGER})\}}\{{(?P<bottom>-?{_INTEGER})\}}|(?P<a>{_INTEGER})/(?P<b>{_INTEGER}))"
)
_BASED = re.compile(r"(?P<digits>[0-9A-Fa-f]+)_(?:\{(?P<braced>[0-9]+)\}|(?P<base>[0-9]))")


@dataclass(frozen=True)
class Value:
    """The exact value of an answer that is just a number.

    Attributes:
        number: The value; of a percentage the number before the sign.
        digits: Significant digits it was written with, if it has a decimal point and may stand for a rounded number,
            else 0.
        percent: Whether a percent sign stood behind it.
        name: What stood before an equals sign (`x` of `x = 5`), or empty.
    """

    number: Fraction
    digits: int
    percent: bool
    name: str = ""


_MOST_PASSES = 8


def tidy(answer: str) -> str:
    r"""Write a math answer as one plain LaTeX line.

    Dollar signs, math delimiters, spacing commands, `\left` and `\right`, thousands separators, a final full stop and
    spaces that mean nothing go; `\dfrac` and `\tfrac` become `\frac`; Unicode signs (½, π, ≤, °) become LaTeX.

    Args:
        answer: Content of a box, or a label.

    Returns:
        The line; the same for answers that only differ in dress. Doing it again changes nothing more.
    """
    for _ in range(_MOST_PASSES):
        before, answer = answer, _tidied_once(answer)
        # Braces put around the parts of a short fraction can make a space before or after it mean nothing.
        if answer == before:
            break
    return answer


def _tidied_once(answer: str) -> str:
    text = _VULGAR_FRACTION.sub(" ", _NO_SPACE.sub("", answer).replace("\\%", "%"))
    text = "".join(_SYMBOLS.get(character, character) for character in text)
    text = unicodedata.normalize("NFKC", text).replace("⁄", "/").replace("−", "-")
    text = _DELIMITERS.sub(" ", _BIG.sub("", text))
    text = _FRACTIONS.sub(r"\\frac", _THIN_SPACES.sub(" ", text))
    text = _without_thousands(" ".join(text.split()))
    text = re.sub(r"\s*,\s*", ", ", _SPACE.sub(lambda match: match.group(1) or "", text)).strip()
    text = re.sub(r"(?<=[0-9a-zA-Z)}\]%])\.$", "", text)
    text = _SHORT_BOTTOM.sub(r"\1{\2}", _SHORT_TOP.sub(r"\\frac{\1}", text))
    return _SHORT_ROOT.sub(r"\\sqrt{\1}", text)


def value(line: str) -> Value | None:
    r"""Read an answer that is just a number, exactly.

    Read are whole numbers (leading zeros allowed), decimals, `a/b` and `\frac{a}{b}`, mixed numbers
    (`1\frac{4}{5}`, `1 4/5`), each with a sign, and behind or before it a dollar or percent sign, a degree sign, or a
    unit in `\text{}`; also what is named (`x = 5`).

    Args:
        line: An answer that `tidy` has written.

    Returns:
        The value, or None where it is not just a number.
    """
    named = _NAMED.match(line)
    text = undressed(line[named.end() :] if named else line)
    percent = bool(_PERCENT.search(text))
    text = undressed(_PERCENT.sub("", text))
    sign = -1 if text.startswith("-") else 1
    number = _plain_number(_DRESS.sub("", text[1:] if text[:1] in ("-", "+") else text))
    if number is None:
        return None
    return Value(sign * number[0], number[1], percent, named.group()[:-1] if named else "")


def based_number(line: str) -> tuple[str, int] | None:
    """Read a number written in a base, as `52_8`.

    Args:
        line: An answer that `tidy` has written.

    Returns:
        Its digits without leading zeros, lower case, and its base; None for anything else.
    """
    found = _BASED.fullmatch(undressed(line))
    if found is None:
        return None
    return found["digits"].lower().lstrip("0") or "0", int(found["braced"] or found["base"])


def undressed(line: str) -> str:
    r"""Take off what a number may be dressed in: a unit in `\text{}`, a degree sign, a dollar sign."""
    before = ""
    while line != before:
        before, line = line, _DRESS.sub("", _UNIT.sub("", line).strip()).strip()
    return line


def _without_thousands(text: str) -> str:
    """Take thousands separators out: `1,234` is one number, but `(1,234)`, `1, 234` and `[5,100]` are lists."""
    text = text.replace("{,}", "") if re.search(r"[0-9]\{,\}[0-9]{3}(?![0-9])", text) else text
    if _BRACKET.search(text):
        return text
    text = _THOUSANDS.sub(lambda match: match.group(1).replace(",", ""), text)
    return _SPACED_THOUSANDS.sub(lambda match: match.group(1).replace(" ", ""), text)


def _plain_number(text: str) -> tuple[Fraction, int] | None:
    """Return the exact value of an unsigned number and, of a decimal, its significant digits; or None."""
    plain = _NUMBER.fullmatch(text)
    if plain is not None and (plain["whole"] or plain["decimals"]):
        decimals = plain["decimals"] or ""
        written = (plain["whole"] or "") + decimals
        return Fraction(int(written), 10 ** len(decimals)), len(written.lstrip("0")) if decimals else 0
    fraction = _FRACTION.fullmatch(text)
    if fraction is None or (fraction["mixed"] and (fraction["minus"] or (fraction["top"] or "").startswith("-"))):
        return None
    top, bottom = (int(fraction["top"] or fraction["a"]), int(fraction["bottom"] or fraction["b"]))
    if bottom == 0:
        return None
    exact = Fraction(top, bottom) * (-1 if fraction["minus"] else 1)
    return exact + int(fraction["mixed"] or 0), 0
