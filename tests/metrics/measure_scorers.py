"""Measures the scorers: gold answers scored as outputs, printed solutions, answers of other questions, and throughput.

    python tests/metrics/measure_scorers.py DATA_FOLDER

DATA_FOLDER holds question files: `QA_Datasets/*.json`, `*/test.json` and `pairs/*/questions.jsonl`. Not a test: it is
run by hand when a scorer changes.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from metrics import official, strict
from metrics.kinds import HEADLINE
from metrics.labels import as_labels
from metrics.math_judge import default_judge
from metrics.scores import Scores
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_SEARCH_RESULT, END_SEARCH_QUERY, END_SEARCH_RESULT

FAMILIES: dict[str, Callable[..., Scores]] = {"official": official.score, "strict": strict.score}
MATH_SETS = ("MATH500", "AIME", "AMC")
CHAIN_CHARACTERS = 50_000


def load(folder: Path) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Return the rows of each set with its kind; code sets are left out, their answers are run."""
    sets: dict[str, tuple[str, list[dict[str, Any]]]] = {}
    for name in MATH_SETS:
        sets[name] = ("math", json.loads((folder / name / "test.json").read_text(encoding="utf-8")))
    for file in sorted(folder.glob("QA_Datasets/*.json")):
        sets[file.stem] = ("qa", json.loads(file.read_text(encoding="utf-8")))
    for pair in sorted(folder.glob("pairs/*/questions.jsonl")):
        rows = [json.loads(line) for line in pair.open(encoding="utf-8")]
        sets[f"pairs/{pair.parent.name}"] = ("qa", [{"answer": row["answers"]} for row in rows])
    return sets


def headline(kind: str, family: str, output: str, labels: Any) -> float:
    """Return the headline score."""
    task = {"qa": "open_qa", "choice": "multiple_choice", "math": "math"}[kind]
    return float(getattr(FAMILIES[family](kind, output, labels), HEADLINE[task]))


def golds(sets: dict[str, tuple[str, list[dict[str, Any]]]]) -> None:
    """Score every label as an output."""
    print("\n| set | labels | official | strict |\n| --- | --- | --- | --- |")
    wrong: list[str] = []
    for name, (kind, rows) in sets.items():
        pairs = [(label, row["answer"]) for row in rows for label in as_labels(row["answer"])]
        right = dict.fromkeys(FAMILIES, 0.0)
        for family in FAMILIES:
            for label, labels in pairs:
                value = headline(kind, family, f"so \\boxed{{{label}}}", labels)
                right[family] += value
                if value != 1.0:
                    wrong.append(f"{name} {family}: {label!r} of {labels!r}"[:200])
        print(f"| {name} | {len(pairs):,} | {right['official']:.0f} | {right['strict']:.0f} |", flush=True)
    print("\n".join(["not right:", *wrong]))


def solutions(rows: list[dict[str, Any]]) -> None:
    """Score the printed solutions of MATH, which end in a box, and each label against other questions' labels."""
    for family in FAMILIES:
        right = [headline("math", family, row["solution"], row["answer"]) for row in rows]
        print(f"{family}: {sum(right):.0f} of {len(rows)} printed solutions right")
        for row, value in zip(rows, right, strict=True):
            if not value:
                print(f"  {row['unique_id']}: {FAMILIES[family]('math', row['solution'], '').prediction!r}")
    chance = random.Random(0)
    others = [(a["answer"], b["answer"]) for a in rows for b in chance.sample(rows, 4) if a is not b]
    same = {(a, b) for a, b in others if headline("math", "strict", f"\\boxed{{{a}}}", b)}
    print(f"strict: {len(others)} labels against another question's, equal though written apart:")
    print("\n".join(f"  {a!r} {b!r}" for a, b in sorted(same) if a != b))


def chain(answer: str, chance: random.Random) -> str:
    """Return a chain of 50 KB: model text with ten searches, their results, and a box at the end."""
    words = ["the", "value", "of", "x", "is", "{3}", "so", "\\frac{1}{2}", "wait,", "perhaps", "\n", "Paris", "1889."]
    text = ""
    while len(text) < CHAIN_CHARACTERS:
        own, page = (" ".join(chance.choices(words, k=count)) for count in (400, 500))
        text += f"{own}{BEGIN_SEARCH_QUERY}{own[:40]}{END_SEARCH_QUERY}"
        text += f"\n\n{BEGIN_SEARCH_RESULT}{page} \\boxed{{page}}{END_SEARCH_RESULT}\n\n"
    return f"{text[-CHAIN_CHARACTERS:]}\n</think>\nThe answer is \\boxed{{{answer}}}."


def throughput(sets: dict[str, tuple[str, list[dict[str, Any]]]]) -> None:
    """Time outputs a second on one thread."""
    chance = random.Random(0)
    numbers = [str(row["answer"]) for row in sets["AIME"][1] + sets["AMC"][1]] * 3
    expressions = [row["answer"] for row in sets["MATH500"][1]][:200]
    names = [as_labels(row["answer"]) for row in sets["hotpotqa"][1]][:200]
    work: dict[str, tuple[str, list[tuple[str, Any]]]] = {
        "qa": ("qa", [(labels[0], labels) for labels in names]),
        "choice": ("choice", [(chance.choice("ABCD"), "B") for _ in range(200)]),
        "math, same label": ("math", [(answer, answer) for answer in expressions]),
        "math, numbers": ("math", list(itertools.pairwise(numbers))),
        "math, to be computed": ("math", [(f"{answer}+x", f"x+{answer}+0") for answer in expressions]),
    }
    began = time.perf_counter()
    default_judge().compare("x+1", "1+x")
    print(f"\nthe judge's first comparison: {time.perf_counter() - began:.1f} s; load {os.getloadavg()[0]:.1f}")
    print("\n| outputs of 50 KB | n | official /s | strict /s |\n| --- | --- | --- | --- |")
    for name, (kind, pairs) in work.items():
        outputs = [(chain(answer, chance), labels) for answer, labels in pairs]
        rates = []
        for score in FAMILIES.values():
            began = time.perf_counter()
            for output, labels in outputs:
                score(kind, output, labels)
            rates.append(len(outputs) / (time.perf_counter() - began))
        print(f"| {name} | {len(outputs)} | {rates[0]:,.0f} | {rates[1]:,.0f} |", flush=True)


def main(folder: Path) -> None:
    """Print all tables."""
    sets = load(folder)
    golds(sets)
    solutions(sets["MATH500"][1])
    throughput(sets)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
