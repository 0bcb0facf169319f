r"""Making answers comparable: the published scorer's normalisation, and a stricter reading that folds what is the same.

Source: `official` is the SQuAD normalisation as in the published scorer (github.com/sunnynexus/Search-o1,
scripts/evaluate.py).
"""

from __future__ import annotations

import re
import string
import unicodedata

from metrics.number_words import digits_for_number_words

_OFFICIAL_PUNCTUATION = str.maketrans("", "", string.punctuation)
_OFFICIAL_ARTICLE = re.compile(r"\b(a|an|the)\b")

_LATEX_COMMAND = re.compile(r"\\(?:text\w*|math\w+|boxed)\s*(?=\{)")
_THOUSANDS = re.compile("(?<=[0-9])(?:,|\\{,\\}|\\\\,|['’\u00a0\u2009\u202f])(?=[0-9]{3}(?![0-9]))")
_SUPERSCRIPT = re.compile(r"(?<=[0-9])(?=[⁰¹²³⁴⁵⁶⁷⁸⁹])")
_VULGAR_FRACTION = re.compile(r"(?<=[0-9])(?=[¼-¾⅐-⅞])")
_INITIAL = re.compile(r"\b([^\W\d_])\.\s+(?=[^\W\d_]\.)")
_WHOLE = re.compile(r"(-?[0-9]+)\.0+")
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(f"[{_CJK}]|[^\\s{_CJK}]+")

# Letters that Unicode does not take apart, and signs that a word says as well.
_FOLDED = str.maketrans(
    {
        "ø": "o", "ł": "l", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th",
        "−": "-", "‐": "-", "‑": "-", "⁄": "/", "&": " and ", "%": " percent ",
    }
)  # fmt: skip
_BEFORE_SIGN = frozenset(string.ascii_lowercase + "+#")
_ARTICLES = frozenset({"a", "an", "the"})


def normalise_official(text: str) -> str:
    """Normalise an answer as the published scorer does.

    Args:
        text: A prediction or a label.

    Returns:
        Lower case, ASCII punctuation removed, then a/an/the removed, white space folded to single spaces.
    """
    text = text.lower().translate(_OFFICIAL_PUNCTUATION)
    return " ".join(_OFFICIAL_ARTICLE.sub(" ", text).split())


def normalise_strict(text: str) -> str:
    """Normalise an answer so that what means the same reads the same, and what does not stays apart.

    Accents, letter case and Unicode forms are folded; number words become digits and thousands separators go;
    punctuation parts words, except inside numbers ("3.14", "-5", "1/2") and abbreviations ("U.S." is "us"); articles go
    unless they end the answer ("vitamin A"). An answer of punctuation only keeps it.

    Args:
        text: A prediction or a label.

    Returns:
        Words parted by single spaces; normalising again changes nothing more.
    """
    text = _fold(text)
    words = digits_for_number_words(_part_words(text).split())
    words = [_WHOLE.sub(r"\1", word) if _WHOLE.fullmatch(word) else word for word in words]
    words = [word for index, word in enumerate(words) if word not in _ARTICLES or index == len(words) - 1]
    return " ".join(words) or " ".join(text.split())


def strict_tokens(text: str) -> list[str]:
    """Cut an answer into the units that strict F1 and containment count.

    Args:
        text: A prediction or a label, not yet normalised.

    Returns:
        Its normalised words; Chinese characters and Japanese kana are a unit each, so that spaces between them do not
        matter.
    """
    return _TOKEN.findall(normalise_strict(text))


def _fold(text: str) -> str:
    """Fold Unicode forms, accents and letter case; take off LaTeX text commands and thousands separators."""
    text = _LATEX_COMMAND.sub(" ", text)
    text = _THOUSANDS.sub("", text)
    # Compatibility folding alone would read 10² as 102 and 2½ as 21/2.
    text = _VULGAR_FRACTION.sub(" ", _SUPERSCRIPT.sub("^", text))
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    # Only the general accents go: kana, Hangul and Indic scripts spell with their combining marks.
    text = "".join(character for character in text if not "\u0300" <= character <= "\u036f")
    text = unicodedata.normalize("NFC", text).translate(_FOLDED)
    return _THOUSANDS.sub("", _INITIAL.sub(r"\1.", text))


def _part_words(text: str) -> str:
    """Replace punctuation and symbols by a space, or by nothing where they stand inside one word or number."""
    kept: list[str] = []
    for index, character in enumerate(text):
        before, after = text[index - 1 : index], text[index + 1 : index + 2]
        category = unicodedata.category(character)
        if category[0] in "LMN":
            kept.append(character)
        elif category == "Cf":
            continue
        elif character in ".'’":
            kept.append(_inside_word(character, before, after))
        elif character in "+#":
            # C++ and F#: a run of signs belongs to the letter it started from, a sign after anything else to nothing.
            kept.append(character if kept and kept[-1] in _BEFORE_SIGN else " ")
        else:
            kept.append(character if _is_part_of_number(character, before, after) else " ")
    return "".join(kept)


def _inside_word(character: str, before: str, after: str) -> str:
    """Return what becomes of a full stop or an apostrophe: kept in a number, dropped in a word, else a space."""
    if character == "." and _is_digit(before) and _is_digit(after):
        return "."
    joins = before.isalpha() and after.isalpha() if character == "." else before.isalnum() and after.isalnum()
    return "" if joins else " "


def _is_part_of_number(character: str, before: str, after: str) -> bool:
    """Tell whether a sign is part of a number: 1/2, 10^3, -5."""
    if character in "/^":
        return _is_digit(before) and _is_digit(after)
    return character == "-" and _is_digit(after) and (not before or before.isspace() or before in "([{")


def _is_digit(character: str) -> bool:
    return "0" <= character <= "9" if character else False
