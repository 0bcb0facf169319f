r"""Math as the paper scored it: the MATH dataset's string equivalence on lower-cased, space-folded answers.

Nothing is computed: two answers are equal when rewriting leaves the same string. What that means for the reader:
`2/4` is not `1/2`, `1.0` is not `1`, `x+1` is not `1+x`, a list in another order is wrong, a thousands comma is wrong;
percent signs, degrees, dollars and a unit in `\text{ …}` are ignored; of all decimals only `0.5` is also a fraction;
`\sqrt 3` (with a space) is not `\sqrt3`; and where the rewriting trips (a bare `\frac` or `\sqrt` at the end, two
units) the two answers must be the same to the letter. Lower-casing comes first, so `A` equals `a`.
Sources: Hendrycks et al. 2021, arXiv 2103.03874 (`is_equiv` of its evaluation code); the published scorer
(github.com/sunnynexus/Search-o1, scripts/evaluate.py), which applies it to both choices and math.
"""

from __future__ import annotations

from collections.abc import Sequence

from metrics.overlap import best_of, f1

_REWRITES = (
    ("\n", ""),
    ("\\!", ""),
    ("\\\\", "\\"),
    ("tfrac", "frac"),
    ("dfrac", "frac"),
    ("\\left", ""),
    ("\\right", ""),
    ("^{\\circ}", ""),
    ("^\\circ", ""),
    ("\\$", ""),
)
"""Applied in this order; `\\\\` before `\\left`, so a doubled backslash does not hide a command."""

_UNIT = "\\text{ "


class _Untidy(ValueError):
    """The rewriting cannot read a text; the pair is then compared as it stands."""


def official_math(answer: str, labels: Sequence[str]) -> dict[str, float]:
    """Score a math answer as the published scorer does.

    Args:
        answer: The extracted answer; empty when there is none.
        labels: The labels, of which any is right (the paper's sets have one each).

    Returns:
        `em`, `acc` (the label is contained, by characters), `f1` (by words) and `math_equal`, each the maximum over
        the labels, and `valid` (not empty); all 0 to 1.
    """
    scores = [official_closed(answer, label) for label in labels]
    return {**best_of(scores, ("em", "acc", "f1", "math_equal")), "valid": float(answer != "")}


def official_closed(answer: str, label: str) -> dict[str, float]:
    """Compare an answer to one label as the published scorer does for choices and math.

    Args:
        answer: The extracted answer.
        label: The label.

    Returns:
        `em`, `acc`, `f1` and `math_equal`, each 0 to 1.
    """
    answer, label = (" ".join(text.lower().split()) for text in (answer, label))
    return {
        "em": float(answer == label),
        "acc": float(label in answer),
        "f1": f1(answer.split(), label.split()),
        "math_equal": float(same_string(answer, label)),
    }


def same_string(first: str, second: str) -> bool:
    """Tell whether two LaTeX answers are the same string once rewritten (the MATH dataset's `is_equiv`).

    Args:
        first: An answer.
        second: Another.

    Returns:
        Whether they are; where either cannot be rewritten, whether they are identical.
    """
    try:
        return rewrite(first) == rewrite(second)
    except _Untidy:
        return first == second


def vote_key(answer: str) -> str:
    """Return what two samples must share for their answers to be one vote of a majority.

    Args:
        answer: An answer.

    Returns:
        The string that the answer is compared by.
    """
    folded = " ".join(answer.lower().split())
    try:
        return rewrite(folded)
    except _Untidy:
        return folded


def rewrite(text: str) -> str:
    """Rewrite a LaTeX answer into the form that the MATH dataset compares.

    Args:
        text: An answer.

    Returns:
        The rewritten answer.

    Raises:
        ValueError: The rewriting trips over the text (see the module's docstring).
    """
    for old, new in _REWRITES:
        text = text.replace(old, new)
    text = _without_unit(text).replace("\\%", "")
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if not text:
        return ""
    if text.startswith("."):
        text = f"0{text}"
    text = _right_of_short_name(text)
    text = _braced_roots(text).replace(" ", "")
    text = _braced_fractions(text)
    return "\\frac{1}{2}" if text == "0.5" else _slash_as_fraction(text)


def _without_unit(text: str) -> str:
    before, *after = text.split(_UNIT)
    if len(after) > 1:
        raise _Untidy("more than one unit")
    return before


def _right_of_short_name(text: str) -> str:
    """Drop the name of `x = 5`: one equals sign with at most two characters, spaces included, before it."""
    name, *values = text.split("=")
    return values[0] if len(values) == 1 and len(name) <= 2 else text


def _braced_roots(text: str) -> str:
    before, *roots = text.split("\\sqrt")
    pieces = [before]
    for root in roots:
        if not root:
            raise _Untidy("nothing under the root")
        # The first character goes under the root, even where it is a space.
        pieces.append(f"\\sqrt{root}" if root[0] == "{" else f"\\sqrt{{{root[0]}}}{root[1:]}")
    return "".join(pieces)


def _braced_fractions(text: str) -> str:
    before, *fractions = text.split("\\frac")
    pieces = [before]
    for fraction in fractions:
        if not fraction:
            raise _Untidy("nothing in the fraction")
        if fraction[0] == "{":
            pieces.append(f"\\frac{fraction}")
        elif len(fraction) == 1:
            return text
        elif fraction[1] == "{":
            pieces.append(f"\\frac{{{fraction[0]}}}{fraction[1:]}")
        else:
            pieces.append(f"\\frac{{{fraction[0]}}}{{{fraction[1]}}}{fraction[2:]}")
    return "".join(pieces)


def _slash_as_fraction(text: str) -> str:
    """Write a/b as a fraction where both are whole numbers in their plainest form, so not 01/2 or +1/2."""
    parts = text.split("/")
    if len(parts) != 2:
        return text
    try:
        plain = all(str(int(part)) == part for part in parts)
    except ValueError:
        return text
    return f"\\frac{{{parts[0]}}}{{{parts[1]}}}" if plain else text
