r"""Math judged by value: what means the same number, set or expression is right, however it is written.

Numbers are compared exactly and at once; everything else goes to math-verify in a child process
(`metrics.math_judge`), so this scorer starts processes where `official` computes strings. The rules:

- A number may be written as whole number (leading zeros allowed: `073` is 73), decimal, fraction or mixed number.
- Two decimals are equal when they are the same number (`1.0` is 1). A fraction or a root that no six decimals hold may
  be given as a decimal that agrees with it to six decimals and, for a fraction, has six significant digits
  (`0.333333` is 1/3, `0.33` is not, `1.0000001` is not 1).
- A percent sign may be missing or written out as a hundredth: `10\%` is 10 and is 0.1.
- Units, degrees, dollars: ignored on both sides; the question asked for them.
- A base (`52_8`) may be missing, but not wrong.
- `x = 5` is 5, but not `y = 5`.
- `1, 2` and `\{1, 2\}` are sets, in any order; `(1, 2)` is a pair or an open interval, in order; `[1, 2)` is no other
  interval; `x < 3` is the interval that it describes.
- Words (`\text{even}`) are compared as words, number words as numbers.

An answer of more than 2,000 characters is not compared; no label comes near that. Where the child gives up (time,
memory) the answer counts as wrong and `undecided` as 1, so that a run's summary says how often that happened.
Source: math-verify (github.com/huggingface/Math-Verify) for everything that is not a number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from metrics.extraction import is_valid
from metrics.math_judge import Verdict, default_judge
from metrics.math_text import Value, based_number, tidy, undressed, value
from metrics.normalise import normalise_strict
from metrics.overlap import best_of, contains, f1

_LONGEST = 2_000
_TOKEN = re.compile(r"\\[a-zA-Z]+|[0-9]+(?:\.[0-9]+)?|\S")
_TEXT = re.compile(r"\\(?:text\w*|mathrm|mbox)\{([^{}]*)\}")
_WORDS = re.compile(r"[^\W\d_]{3,}(?:[ '-][^\W\d_]+)*|[^\W\d_]+(?:[ '-][^\W\d_]+)+")
_LOOSE_NUMBERS = re.compile(r"[0-9] [0-9]")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)
_ROUNDED = 6
_SAME: Literal["equal"] = "equal"
_OTHER: Literal["different"] = "different"


def strict_math(answer: str, labels: Sequence[str]) -> dict[str, float]:
    """Score a math answer by value.

    Args:
        answer: The extracted answer, as `metrics.extraction.strict_box` returns it.
        labels: The labels, of which any is right.

    Returns:
        `em` (the same LaTeX once dress is taken off), `acc` (the label stands in the answer in one piece), `f1` (by
        LaTeX tokens), `math_equal` (the same value; the headline), each the maximum over the labels; `valid` (an
        answer at all); `undecided` (the comparison gave up, so math_equal is 0). All 0 to 1.

    Raises:
        JudgeError: math-verify cannot be started.
    """
    verdicts = [same_value(answer, label) for label in labels]
    equal = _SAME in verdicts
    return {
        **best_of([_by_tokens(answer, label) for label in labels], ("em", "acc", "f1")),
        "math_equal": float(equal),
        "valid": float(is_valid(answer, "math")),
        "undecided": float(not equal and any(verdict not in (_SAME, _OTHER) for verdict in verdicts)),
    }


def same_value(answer: str, label: str) -> Verdict:
    """Tell whether an answer has the value of a label.

    Args:
        answer: An answer.
        label: The label.

    Returns:
        `equal` or `different`, or why the comparison was given up.

    Raises:
        JudgeError: math-verify cannot be started.
    """
    if len(answer) > _LONGEST or len(label) > _LONGEST:
        return _OTHER
    given, wanted = tidy(answer), tidy(label)
    if not given or not wanted:
        return _OTHER
    if given == wanted:
        return _SAME
    decided = _by_reading(given, wanted)
    if decided is not None:
        return _SAME if decided else _OTHER
    return _by_judge(given, wanted)


def vote_key(answer: str) -> str:
    """Return what two samples must share for their answers to be one vote of a majority.

    Args:
        answer: An answer.

    Returns:
        The exact value of a number, however it is written; of anything else its plain LaTeX line. Expressions that only
        algebra shows to be equal stay apart: each pair of them would cost a comparison.
    """
    line = tidy(answer) if len(answer) <= _LONGEST else answer
    number = value(line) if len(answer) <= _LONGEST else None
    return line if number is None else f"{number.number}{'%' if number.percent else ''}"


def _by_tokens(answer: str, label: str) -> dict[str, float]:
    if len(answer) > _LONGEST or len(label) > _LONGEST:
        return {"em": 0.0, "acc": 0.0, "f1": 0.0}
    given, wanted = tidy(answer), tidy(label)
    tokens = _TOKEN.findall(given), _TOKEN.findall(wanted)
    return {"em": float(given == wanted != ""), "acc": float(contains(*tokens)), "f1": f1(*tokens)}


def _by_reading(given: str, wanted: str) -> bool | None:
    """Decide what needs no algebra: numbers, numbers in a base, words; None leaves it open."""
    bases = based_number(given), based_number(wanted)
    if bases[0] or bases[1]:
        return _same_digits(given, wanted)
    numbers = value(given), value(wanted)
    if numbers[0] and numbers[1]:
        return _same_number(numbers[0], numbers[1])
    words = _words(given), _words(wanted)
    if (words[0] or words[1]) and normalise_strict(words[0] or given) == normalise_strict(words[1] or wanted):
        return True
    if words[1] and (_TEXT.fullmatch(wanted) or " " in words[1]):
        return False
    unreadable = any(_LOOSE_NUMBERS.search(text) or not _balanced(text) for text in (given, wanted))
    return False if unreadable or " " in words[0] else None


def _same_digits(given: str, wanted: str) -> bool:
    """Compare numbers of which at least one names its base; the other may leave it out."""
    first, second = (based_number(text) or (undressed(text).lower().lstrip("0") or "0", 0) for text in (given, wanted))
    return first[0] == second[0] and (first[1] == second[1] or 0 in (first[1], second[1]))


def _same_number(given: Value, wanted: Value) -> bool:
    if given.name and wanted.name and given.name != wanted.name:
        return False
    if given.percent == wanted.percent:
        return _close(given.number, given.digits, wanted.number, wanted.digits)
    scales = (Fraction(1), Fraction(1, 100))
    return any(
        _close(
            given.number * (scale if given.percent else 1),
            given.digits,
            wanted.number * (scale if wanted.percent else 1),
            wanted.digits,
        )
        for scale in scales
    )


def _close(first: Fraction, first_digits: int, second: Fraction, second_digits: int) -> bool:
    """Compare exactly, or a decimal with a fraction that it can only round."""
    if first == second:
        return True
    if bool(first_digits) == bool(second_digits):
        return False
    exact, digits = (second, first_digits) if first_digits else (first, second_digits)
    fits = (exact * 10**_ROUNDED).denominator == 1
    return not fits and digits >= _ROUNDED and round(first, _ROUNDED) == round(second, _ROUNDED)


def _words(text: str) -> str:
    r"""Return the words of an answer that is nothing but words, or stands in `\text{}`; else empty."""
    wrapped = _TEXT.fullmatch(text)
    if wrapped:
        return wrapped.group(1).strip()
    return text if _WORDS.fullmatch(text) else ""


def _balanced(text: str) -> bool:
    depth = 0
    for token in _BRACE.findall(text):
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth < 0:
            return False
    return depth == 0


@lru_cache(maxsize=20_000)
def _by_judge(given: str, wanted: str) -> Verdict:
    return default_judge().compare(wanted, given)
