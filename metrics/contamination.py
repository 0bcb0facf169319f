r"""Search-time contamination: telling whether a page that search brought holds the benchmark's own question.

Three signs: the question's words stand on the page (`question`), an accepted answer stands beside them too
(`question_and_answer`), or the page lies where copies of benchmarks are known to lie (`mirror`). A page that holds only
the answer is what search is for.

Text is compared in 8-grams of folded words (GPT-3's decontamination, Brown et al. 2020, appendix C, takes 8 to 13). The
thresholds were measured: tests/metrics/measure_contamination.py prints the tables.

This module is a leaf: with `benchmark_hosts` and `folded_words` it imports the standard library only.
Source: Han et al. 2025, arXiv 2508.13180 (search-time contamination).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from metrics.benchmark_hosts import MIRROR_RULES, benchmark_mirror
from metrics.folded_words import folded_words, is_cjk, prose

__all__ = ["MIRROR_RULES", "Flag", "QuestionFingerprint", "benchmark_mirror"]

GRAM = 8
"""Words (of Chinese and Japanese: characters) in a gram."""
THRESHOLD = 0.6
"""From this share of the question's grams on, a page holds the question.

Of 2.15 million pairs of a benchmark's question and a page of 40 Wikipedia paragraphs, the gold ones among them, none
reached it: the most was 0.5, where a question repeats the sentence that answers it.
"""
VERBATIM_WORDS = 40
"""So many words of the question in a row are the question, however long the rest of it is (a snippet, a cut page).

Of 6,216 pairs of programming problems one shares more than 38 words in a row, all of it boilerplate.
"""
LEAST_WORDS = 4
"""A shorter question (for Chinese and Japanese: twice as many characters) is not looked for: any page may hold it."""
PROSE_WORDS = 16
"""From so many words on, a question is also looked for without its formulas, which pages show in many ways."""
CHECKED_CHARS = 200_000
"""A page is looked at up to here."""
BEFORE_CHARS, AFTER_CHARS = 300, 2_000
"""How far from the question an answer counts as standing beside it."""

Kind = Literal["question", "question_and_answer", "mirror"]

_CHOICE = re.compile(r"^[ \t]*\(?([A-J])[).:][ \t]+(.+)$", re.MULTILINE)
_CHOICES_HEADING = re.compile(r"\s*(?:answer\s+)?(?:choices|options)\s*:?\s*$", re.IGNORECASE)
_CUES = frozenset({"answer", "answers", "ans", "boxed", "correct", "label", "solution", "答", "案"})
_CUE_WORDS = 8
_WEAK_CHARS = 4
_WEAK_WORDS = frozenset({"true", "false", "none", "zero", "both", "neither"})


@dataclass(frozen=True)
class Flag:
    """One sign that a page holds the benchmark.

    Attributes:
        url: The page.
        kind: `question`, `question_and_answer` or `mirror`.
        overlap: Share of the question's grams that stand on the page, 0 to 1.
        mirror: What kind of place it is, for `mirror`; else empty.
    """

    url: str
    kind: Kind
    overlap: float = 0.0
    mirror: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the flag as a plain dict with the same keys."""
        return asdict(self)


class QuestionFingerprint:
    """What a benchmark's question looks like on a page.

    Args:
        question: The question as the benchmark gives it; the options of a choice question may follow it.
        answers: Accepted answers; a letter stands for the option it names.
    """

    def __init__(self, question: str, answers: Sequence[str] = ()) -> None:
        stem, options = _split_choices(question)
        self._sides = [_Side(words) for words in _sides(folded_words(stem))]
        self._answers = [a for a in {" ".join(folded_words(a)) for a in (*answers, *_chosen(options, answers))} if a]

    @property
    def checkable(self) -> bool:
        """Whether the question is long enough to be told apart from ordinary text."""
        return bool(self._sides)

    def overlap(self, text: str) -> float:
        """Return the share of the question's grams that stand in a text, 0 to 1.

        Args:
            text: Text of a page.

        Returns:
            The share; for a question shorter than a gram 1 if all of it stands there in a row, else 0.
        """
        return max((side.find(page).share for side, page in self._paired(text)), default=0.0)

    def check(self, url: str, title: str, text: str) -> list[Flag]:
        """Check a page or a search hit.

        Args:
            url: Its address.
            title: Its title.
            text: Its text, or a snippet.

        Returns:
            No flag, or one for the place (`mirror`) or one for the text, or both.
        """
        flags = []
        if mirror := benchmark_mirror(url):
            flags.append(Flag(url, "mirror", 0.0, mirror))
        for side, page in self._paired(f"{title}\n{text}"):
            match = side.find(page)
            if match.holds:
                answered = any(_stands_beside(answer, side, match, page) for answer in self._answers)
                kind: Kind = "question_and_answer" if answered else "question"
                flags.append(Flag(url, kind, round(match.share, 4)))
                break
        return flags

    def _paired(self, text: str) -> Iterable[tuple[_Side, _Page]]:
        """Yield each reading of the question with the same reading of a text."""
        if not self._sides:
            return
        words = folded_words(text[:CHECKED_CHARS])
        yield self._sides[0], _Page(words)
        for side in self._sides[1:]:
            yield side, _Page(prose(words))


@dataclass(frozen=True)
class _Match:
    """How a question was found: share of its grams, words of it in a row, and where it would begin on the page."""

    share: float
    run: int
    start: int

    @property
    def holds(self) -> bool:
        return self.share >= THRESHOLD or self.run >= VERBATIM_WORDS


class _Page:
    """One reading of a page."""

    def __init__(self, words: list[str]) -> None:
        self.text = _joined(words)
        self.words = set(words)


class _Side:
    """One reading of the question, ready to be looked for."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.text = _joined(words)
        self.size = min(GRAM, len(words))
        self.grams = [_joined(words[i : i + self.size]) for i in range(len(words) - self.size + 1)]

    def find(self, page: _Page) -> _Match:
        best = run = found = missing = 0
        start = -1
        for index, word in enumerate(self.words):
            # A gram with a word that the page lacks need not be looked for; most grams end here.
            missing = self.size if word not in page.words else missing - 1
            begin = index - self.size + 1
            if begin < 0:
                continue
            place = page.text.find(self.grams[begin]) if missing <= 0 else -1
            if place < 0:
                run = 0
                continue
            found, run = found + 1, run + 1
            if run > best:
                best, start = run, place - sum(len(w) + 1 for w in self.words[:begin])
        verbatim = best + self.size - 1 if best else 0
        return _Match(found / len(self.grams), verbatim, max(0, start))


def _sides(words: list[str]) -> list[list[str]]:
    if 2 * len(words) - sum(map(is_cjk, words)) < 2 * LEAST_WORDS:
        return []
    without_formulas = prose(words)
    return [words, without_formulas] if PROSE_WORDS <= len(without_formulas) < len(words) else [words]


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def _split_choices(question: str) -> tuple[str, dict[str, str]]:
    """Return the question without its options, and the options by letter."""
    found = list(_CHOICE.finditer(question))
    if [m.group(1) for m in found[:2]] != ["A", "B"]:
        return question, {}
    stem = _CHOICES_HEADING.sub("", question[: found[0].start()])
    options = {m.group(1): m.group(2) for m in found}
    return (stem, options) if len(folded_words(stem)) >= LEAST_WORDS else (question, options)


def _chosen(options: dict[str, str], answers: Sequence[str]) -> list[str]:
    return [options[letter] for answer in answers if (letter := answer.strip(" ().")) in options]


def _stands_beside(answer: str, side: _Side, match: _Match, page: _Page) -> bool:
    end = match.start + len(side.text)
    before, after = page.text[max(0, match.start - BEFORE_CHARS) : match.start], page.text[end : end + AFTER_CHARS]
    around = f"{before} | {after} "
    # Its own words may hold the answer ("Who is older, A or B?"), and a page may repeat it.
    around = around.replace(side.text, " ")
    if not _is_weak(answer):
        return f" {answer} " in around
    words, wanted = around.split(), answer.split()
    for index in range(len(words)):
        if words[index : index + len(wanted)] == wanted and _CUES & set(words[max(0, index - _CUE_WORDS) : index]):
            return True
    return False


def _is_weak(answer: str) -> bool:
    """Tell whether an answer is so short that it stands on most pages anyway."""
    return answer in _WEAK_WORDS or len(answer.replace(" ", "")) < _WEAK_CHARS
