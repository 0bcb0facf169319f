r"""Multiple choice: the letter in the box.

`official` compares what stands in the box with the letter, as text. What that means for the reader: `\text{B}` and
`(B)` are the letter; `B. 42 kJ` is wrong under em, right under containment, and not valid (more than one character);
containment by characters also calls `ABCD` right, whatever the label; the box is the last one anywhere in the output,
so a page's box counts; on a line with two boxes everything between the first and the last brace is the answer.

`strict` asks which letter the box names, if it names just one: `B`, `(b)`, `\text{B}`, `Option B`, `B. 42 kJ`,
`(B) 42 kJ` are B; `A or B`, `B, C`, `42 kJ` and prose are no choice. A letter is never fished out of prose.
Source: the published scorer (github.com/sunnynexus/Search-o1, scripts/evaluate.py) for `official`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metrics.extraction import LONGEST_CHOICE, clean_choice, plain_choice
from metrics.math_official import official_closed
from metrics.normalise import normalise_strict
from metrics.overlap import best_of

_METRICS = ("em", "acc", "f1", "math_equal")
_FIRST_LETTER = re.compile(r"[(\[{]*[A-Za-z][)\]}]*[.:)、\s]*")


def official_choice(answer: str, labels: Sequence[str]) -> dict[str, float]:
    """Score a choice as the published scorer does.

    Args:
        answer: The extracted answer, as `metrics.extraction.official_box` returns it.
        labels: The right letters; the paper's sets have one each.

    Returns:
        `em` (the headline), `acc` (the label is contained, by characters), `f1` (by words) and `math_equal` on
        lower-cased, space-folded text, each the maximum over the labels, and `valid` (exactly one character); all 0 to
        1.
    """
    scores = [official_closed(answer, label) for label in labels]
    return {**best_of(scores, _METRICS), "valid": float(len(answer) == 1)}


def strict_choice(answer: str, labels: Sequence[str], choices: Sequence[str] | None = None) -> dict[str, float]:
    """Score a choice strictly: it is the right letter, or it is wrong.

    Args:
        answer: The extracted answer, as `metrics.extraction.strict_box` returns it.
        labels: The right letters, of which any is right, in any dress that an answer may have.
        choices: Texts of the choices in order, where known; see `choice_letter`.

    Returns:
        `em`, `acc`, `f1` and `math_equal`, all four the same 0 or 1, and `valid` (the answer names one letter).
    """
    letter = choice_letter(answer, choices)
    right = {choice_letter(label, choices) or label.strip().upper() for label in labels}
    value = float(letter != "" and letter in right)
    return {**dict.fromkeys(_METRICS, value), "valid": float(letter != "")}


def choice_letter(answer: str, choices: Sequence[str] | None = None) -> str:
    r"""Return the letter that an answer names, where it names exactly one.

    LaTeX wrappers (`\text{B}`, `\mathrm{B}`) and an introduction (`Option B`, `The answer is: B`) are taken off. Words
    after the letter do not matter as long as a full stop, colon or bracket parts them from it and they are not a second
    letter.

    Args:
        answer: Content of a box, or a label.
        choices: Texts of the choices in order, where known. Then an answer that is exactly one choice's text names that
            choice; a letter beyond the choices, and a letter followed by another choice's text, name none.

    Returns:
        One capital letter, or empty.
    """
    letter = clean_choice(answer)
    if not choices or len(answer) > LONGEST_CHOICE:
        return letter
    plain = plain_choice(answer)
    named = _choice_of_text(plain, choices)
    if not letter:
        return named
    beside = _choice_of_text(_FIRST_LETTER.sub("", plain, count=1), choices)
    contradicted = beside not in ("", letter)
    return "" if contradicted or ord(letter) - ord("A") >= len(choices) else letter


def _choice_of_text(text: str, choices: Sequence[str]) -> str:
    """Return the letter of the one choice with this text, or empty when none or several have it."""
    wanted = normalise_strict(text)
    same = [
        index for index, choice in enumerate(choices) if wanted and normalise_strict(plain_choice(choice)) == wanted
    ]
    return chr(ord("A") + same[0]) if len(same) == 1 else ""
