"""Measures the thresholds of `metrics.contamination`: false alarms on real text, altered copies found, speed.

    python tests/metrics/measure_contamination.py DATA_FOLDER

DATA_FOLDER holds question files (`QA_Datasets/*.json`, `MATH500/test.json` ...) and `pairs/*/{questions,corpus}.jsonl`.
Not a test: it is run by hand when the rule changes.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from metrics.contamination import QuestionFingerprint, _joined, _Page
from metrics.folded_words import folded_words, prose

SHARES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
RUNS = (24, 32, 40, 48, 64)
PASSAGES_A_PAGE = 40

Page = tuple[list[str], _Page, _Page]
Measure = tuple[float, int]


def load(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the questions of each set, and pages put together from all passages."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for file in sorted([*folder.glob("QA_Datasets/*.json"), *folder.glob("*/test.json")]):
        name = file.stem if file.parent.name == "QA_Datasets" else file.parent.name
        sets[name] = json.loads(file.read_text(encoding="utf-8"))
    pages = []
    for pair in sorted(folder.glob("pairs/*")):
        rows = [json.loads(line) for line in (pair / "questions.jsonl").open(encoding="utf-8")]
        sets[f"pairs/{pair.name}"] = [{"Question": row["question"]} for row in rows]
        passages = [json.loads(line) for line in (pair / "corpus.jsonl").open(encoding="utf-8")]
        texts = [f"{p['title']}\n{p['text']}" for p in passages]
        pages += ["\n\n".join(texts[i : i + PASSAGES_A_PAGE]) for i in range(0, len(texts), PASSAGES_A_PAGE)]
    return sets, pages


def fold(text: str) -> Page:
    """Return a page's words, and both readings of it."""
    words = folded_words(text)
    return words, _Page(words), _Page(prose(words))


def measure(fingerprint: QuestionFingerprint, page: Page) -> Measure:
    """Return (highest share, longest run of words) over both readings."""
    found = [side.find(text) for side, text in zip(fingerprint._sides, page[1:], strict=False)]
    return max((m.share for m in found), default=0.0), max((m.run for m in found), default=0)


def candidates(fingerprints: list[QuestionFingerprint], pages: list[Page]) -> Iterable[tuple[int, int]]:
    """Yield (question, page) numbers that share a gram at all; every other pair measures 0."""
    owners: dict[int, dict[str, set[int]]] = {}
    for number, fingerprint in enumerate(fingerprints):
        for side in fingerprint._sides:
            for gram in side.grams:
                owners.setdefault(side.size, {}).setdefault(gram, set()).add(number)
    for place, (words, _, _) in enumerate(pages):
        found: set[int] = set()
        for reading in (words, prose(words)):
            for size, by_gram in owners.items():
                for i in range(len(reading) - size + 1):
                    found |= by_gram.get(_joined(reading[i : i + size]), set())
        for number in found:
            yield number, place


def wrapped(question: str) -> str:
    """Break lines as a PDF does."""
    words = question.split(" ")
    return "".join(word + ("\n" if i % 7 == 6 else " ") for i, word in enumerate(words))


def edited(count: int) -> Callable[[str], str]:
    """Return a function that replaces words at random places."""

    def edit(question: str) -> str:
        words = question.split(" ")
        for place in random.Random(question).sample(range(len(words)), min(count, len(words))):
            words[place] = "something"
        return " ".join(words)

    return edit


def first(percent: int) -> Callable[[str], str]:
    """Return a function that keeps the start of a question."""
    return lambda question: question[: len(question) * percent // 100]


ALTERATIONS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "as HTML": lambda q: "<p>" + re.sub(r"\b(\w+)\b", r"<b>\1</b>", q, count=3).replace(" ", "&nbsp;", 2) + "</p>",
    "lines broken": wrapped,
    "no punctuation": lambda q: re.sub(r"[?!,.;:'\"]", "", q),
    "as JSON": lambda q: json.dumps({"question": q}),
    "formulas without $": lambda q: q.replace("$", ""),
    "formulas gone": lambda q: re.sub(r"\$[^$]*\$", "", q),
    "1 word replaced": edited(1),
    "2 words replaced": edited(2),
    "3 words replaced": edited(3),
    "first 75 %": first(75),
    "first 50 %": first(50),
    "first 25 %": first(25),
    "first 300 characters": lambda q: q[:300],
}
FAMILIES = {
    "QA": ("2wiki", "bamboogle", "hotpotqa", "musique", "nq", "triviaqa"),
    "math": ("AIME", "AMC", "MATH500"),
    "code": ("LiveCodeBench",),
}


def table(title: str, rows: list[tuple[str, int, list[Measure]]], *, percent: bool) -> None:
    """Print how many are flagged under each rule; pairs that are not listed measure 0."""
    heads = [f"share {t}" for t in SHARES] + [f"0.6 or {r} words" for r in RUNS]
    print(f"\n{title}\n| | n | " + " | ".join(heads) + " |\n|" + "---|" * (2 + len(heads)))
    for name, total, found in rows:
        counts = [sum(s >= t for s, _ in found) for t in SHARES]
        counts += [sum(s >= 0.6 or w >= r for s, w in found) for r in RUNS]
        cells = [f"{100 * c / max(1, total):.1f}" if percent else str(c) for c in counts]
        print(f"| {name} | {total:,} | " + " | ".join(cells) + " |", flush=True)


def main(folder: Path) -> None:
    """Print all tables."""
    sets, pages = load(folder)
    prints = {n: [QuestionFingerprint(r["Question"]) for r in rows] for n, rows in sets.items()}
    short = {n: count for n, ps in prints.items() if (count := sum(not p.checkable for p in ps))}
    print(f"too short to be checked: {short}")
    print(f"{len(pages)} pages, {sum(map(len, pages)) // len(pages):,} characters each, from all passages")
    folded = [fold(page) for page in pages]
    rows = [
        (name, len(ps) * len(pages), [measure(ps[i], folded[j]) for i, j in candidates(ps, folded)])
        for name, ps in prints.items()
    ]
    table("Questions found on pages of Wikipedia paragraphs (false alarms)", rows, percent=False)
    rows = []
    for name, ps in prints.items():
        solutions = [r.get("solution") or r.get("Solution") or "" for r in sets[name]]
        texts = [fold(f"{r['Question']}\n{s}") for r, s in zip(sets[name], solutions, strict=True)]
        found = [measure(ps[i], texts[j]) for i, j in candidates(ps, texts) if i != j]
        rows.append((name, len(ps) * (len(ps) - 1), found))
    table("Question i found in the text of question j, with its solution, of the same set", rows, percent=False)
    chance = random.Random(0)
    for family, names in FAMILIES.items():
        rows = []
        for label, alter in ALTERATIONS.items():
            found = []
            for name in names:
                for row, fingerprint in list(zip(sets[name], prints[name], strict=True))[:150]:
                    page = chance.choice(pages)[:8_000]
                    found.append(measure(fingerprint, fold(f"{page}\n\n{alter(row['Question'])}\n\n{page}")))
            rows.append((label, len(found), found))
        table(f"Altered copies found, in percent: {family}", rows, percent=True)
    page = "\n".join(pages)[:50_000]
    for name in ("nq", "MATH500", "LiveCodeBench"):
        start = time.perf_counter()
        for fingerprint in prints[name][:100]:
            fingerprint.check("https://example.org/a", "title", page)
        print(f"{name}: {10 * (time.perf_counter() - start):.2f} ms a page of 50,000 characters")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
