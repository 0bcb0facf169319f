"""Comparing what a program printed or returned with what a test expects, in this process and not in the program's.

Source: `lcb_runner/evaluation/testing_util.py` (github.com/LiveCodeBench/LiveCodeBench): `official` gives the results
of the version that the paper's authors used (2024), `strict` those of the newest.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

_RELATIVE, _ABSOLUTE = 1e-5, 1e-8
_MAX_INT_DIGITS = 4300


def official_output_matches(printed: str, expected: str) -> bool:
    """Compare printed output as the authors' runner does.

    Right is: equal but for white space at both ends, with or without that around each line; or the lines that are not
    empty equal the expected ones that are not (of which white space is stripped); or each side has one number a line,
    not all of them plain digits, and they agree to 1e-5 of the expected value plus 1e-8.

    Args:
        printed: What the program printed.
        expected: What the test expects.

    Returns:
        Whether it is right.
    """
    lines = printed.splitlines()
    if expected.strip() in ("\n".join(lines).strip(), "\n".join(line.strip() for line in lines).strip()):
        return True
    wanted = [line.strip() for line in expected.split("\n") if line]
    filled = [line for line in lines if line]
    return lines == wanted or filled == wanted or _numbers_agree(filled, wanted)


def strict_output_matches(printed: str, expected: str) -> bool:
    """Compare printed output as the newest runner does.

    Right is: as many lines, once white space at both ends of all is gone, and each line, stripped, equal to the
    expected one or the same numbers, exactly (`1.0` is `1`; 0.1 is not 0.10000001).

    Args:
        printed: What the program printed.
        expected: What the test expects.

    Returns:
        Whether it is right.
    """
    lines, wanted = (text.strip().split("\n") for text in (printed, expected))
    return len(lines) == len(wanted) and all(
        _line_matches(line.strip(), label.strip()) for line, label in zip(lines, wanted, strict=True)
    )


def value_matches(returned: str | None, expected: str) -> bool:
    """Compare what a function returned.

    Values are compared as Python compares them (1.0 is 1, and True is 1). A tuple is a list, at any depth: the newest
    runner says so of the outermost only, older ones also of the next. Anything but plain data is wrong.

    Args:
        returned: JSON text of the returned value, as the sandbox wrote it; None when there is none.
        expected: JSON text of the expected value.

    Returns:
        Whether it is right.
    """
    if returned is None:
        return False
    try:
        return bool(_load(returned) == _load(expected))
    except (ValueError, RecursionError):
        return False


def _line_matches(line: str, label: str) -> bool:
    if line == label:
        return True
    try:
        return [Decimal(word) for word in line.split()] == [Decimal(word) for word in label.split()]
    except InvalidOperation:
        # Not numbers, or the kind of NaN that may not even be compared.
        return False


def _numbers_agree(lines: Sequence[str], wanted: Sequence[str]) -> bool:
    # Whole numbers that differ are wrong however large; the runner asks that of the pairs only.
    if all(line.isdigit() and label.isdigit() for line, label in zip(lines, wanted, strict=False)):
        return False
    try:
        numbers, labels = [float(line) for line in lines], [float(label) for label in wanted]
    except ValueError:
        return False
    return len(numbers) == len(labels) and all(map(_close, numbers, labels))


def _close(number: float, label: float) -> bool:
    if math.isinf(number) or math.isinf(label):
        return number == label
    return abs(number - label) <= _ABSOLUTE + _RELATIVE * abs(label)


def _load(text: str) -> Any:
    # Python refuses to read longer whole numbers; as texts they compare just as well.
    return json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _MAX_INT_DIGITS else digits)
