"""English number words as digits: "twenty one" is "21", "second" is "2nd", "1.5 million" is "1500000"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

_CARDINALS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30, "fortieth": 40,
    "fiftieth": 50, "sixtieth": 60, "seventieth": 70, "eightieth": 80, "ninetieth": 90,
}  # fmt: skip
_SMALL = _CARDINALS | _ORDINALS
_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINAL_SCALES = {f"{word}th": value for word, value in _SCALES.items()}
_ALL_SCALES = _SCALES | _ORDINAL_SCALES
# A longer numeral would lose digits in the multiplication.
_NUMERAL = re.compile(r"-?[0-9]{1,12}(?:\.[0-9]{1,6})?")


def digits_for_number_words(tokens: Sequence[str]) -> list[str]:
    """Write every run of number words in digits.

    Cardinals become plain digits, ordinals digits with their ending; a numeral before a scale word is multiplied, and a
    scale word on its own counts one of it. Calling it again changes nothing more.

    Args:
        tokens: Lower-case words without punctuation, hyphens already split.

    Returns:
        The tokens with each run of number words replaced by one numeral.
    """
    result: list[str] = []
    position = 0
    while position < len(tokens):
        run = _Run()
        start = position
        while position < len(tokens) and run.take(tokens[position], tokens[position + 1 : position + 2]):
            position += 1
        if position > start:
            result.append(run.numeral())
        else:
            result.append(tokens[position])
            position += 1
    return result


class _Run:
    """One number while its words are read from left to right."""

    def __init__(self) -> None:
        self._total = Decimal(0)
        self._group: Decimal | None = None
        self._room = 100  # the next cardinal must be smaller than this to belong to the number
        self._scale = 10**15  # and the next scale word likewise
        self._begun = False
        self._ordinal = False

    def take(self, word: str, following: Sequence[str]) -> bool:
        """Add a word if the number goes on with it.

        Args:
            word: The next word.
            following: The word after it, or nothing.

        Returns:
            Whether the word was taken; if not, the number has ended before it.
        """
        if self._ordinal:
            return False
        taken = self._take_and(word, following) or self._take_numeral(word, following)
        if not taken and word in _SMALL:
            taken = self._take_small(_SMALL[word])
            self._ordinal = taken and word in _ORDINALS
        elif not taken and word in _ALL_SCALES:
            taken = self._take_scale(_ALL_SCALES[word])
            self._ordinal = taken and word in _ORDINAL_SCALES
        self._begun = self._begun or taken
        return taken

    def numeral(self) -> str:
        """Return the number in digits, with its ending if it is an ordinal."""
        value = self._total + (self._group or 0)
        if not self._ordinal or value != value.to_integral_value():
            return f"{value.normalize():f}"
        number = int(value)
        teen = number % 100 in (11, 12, 13)
        return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"

    def _take_and(self, word: str, following: Sequence[str]) -> bool:
        """Skip the "and" of "one hundred and five"."""
        after_scale = self._begun and self._room == 100
        return word == "and" and after_scale and bool(following) and following[0] in _SMALL

    def _take_numeral(self, word: str, following: Sequence[str]) -> bool:
        scaled = bool(following) and following[0] in _ALL_SCALES
        if self._begun or not scaled or not _NUMERAL.fullmatch(word):
            return False
        self._group, self._room = Decimal(word), 0
        return True

    def _take_small(self, value: int) -> bool:
        if value >= self._room or (value == 0 and self._begun):
            return False
        self._group = (self._group or Decimal(0)) + value
        self._room = 10 if value >= 20 else 0
        return True

    def _take_scale(self, value: int) -> bool:
        if self._group is None and not self._begun:
            self._group = Decimal(1)
        if self._group is None or value >= self._scale:
            return False
        if value == 100:
            if abs(self._group) >= 100:
                return False
            self._group *= 100
        else:
            self._total += self._group * value
            self._group, self._scale = None, value
        self._room = 100
        return True
