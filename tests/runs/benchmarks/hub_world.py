"""A hub with small files in the shape of the real ones; all questions are invented."""

from __future__ import annotations

import base64
import csv
import io
import json
import pickle
import zlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.servers.hub import HubRepo

SECRET_TESTS = [{"input": "5\n", "output": "25\n", "testtype": "stdin"}] * 3


def lines(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def encoded(tests: Any) -> str:
    """Encode private tests as the hub's files do."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


def gpqa_rows(count: int) -> list[dict[str, str]]:
    """Rows with some of the real file's sixty columns."""
    return [
        {
            "Pre-Revision Question": "ignored",
            "Question": f"Which constant, of {i}?\n(mind the units)",
            "Correct Answer": f"right {i}\n",
            "Incorrect Answer 1": f"first wrong {i}",
            "Incorrect Answer 2": "None",
            "Incorrect Answer 3": f"third, wrong {i}",
            "Explanation": "ignored",
            "Subdomain": "Optics",
            "High-level domain": ("Physics", "Chemistry", "Biology")[i % 3],
            "Record ID": f"rec{i:05d}",
        }
        for i in range(count)
    ]


def gpqa_csv(rows: list[dict[str, str]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def code_row(number: int, date: str, text: str = "", **changes: Any) -> dict[str, Any]:
    return {
        "question_title": f"Problem {number}",
        "question_content": text or f'Square it, {number}. "contest_date": "2024-09-09T00:00:00" is not a date.',
        "platform": "atcoder",
        "question_id": f"abc{number}_a",
        "contest_id": f"abc{number}",
        "contest_date": date,
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "2\n", "output": "4\n", "testtype": "stdin"}]),
        "private_test_cases": encoded(SECRET_TESTS),
        "metadata": "{}",
        **changes,
    }


FUNCTIONAL = {
    "starter_code": "class Solution:\n    def square(self, x: int) -> int:\n        ",
    "public_test_cases": json.dumps([{"input": "2", "output": "4", "testtype": "functional"}]),
    "private_test_cases": encoded([{"input": "3", "output": "9", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "square"}),
    "platform": "leetcode",
    "difficulty": "hard",
}


def aimo(url: str, answer: Any, number: int) -> dict[str, Any]:
    return {"id": number, "problem": f"Count {number}.", "solution": "...", "answer": answer, "url": url}


def flashrag(number: int, split: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"{split}_{number}",
        "question": f"Who wrote book {number}?",
        "golden_answers": [f"Author {number}", f"A. {number}"],
        "metadata": metadata,
    }


HOTPOT = {
    "type": "comparison",
    "level": "hard",
    "supporting_facts": {"title": ["Book", "Author", "Book"], "sent_id": [0, 0, 1]},
    "context": {"title": ["Book"], "sentences": [["..."]]},
}
MUSIQUE = {
    "answerable": True,
    "question_decomposition": [
        {"id": i, "question": "?", "answer": "!", "support_paragraph": {"title": title, "is_supporting": True}}
        for i, title in enumerate(["Book", "Author"])
    ],
}


def repos() -> dict[str, HubRepo]:
    wiki = "https://artofproblemsolving.com/wiki/index.php/"
    math = [
        {
            "problem": f"Simplify {i}.",
            "solution": rf"It is $\boxed{{{i}}}$.",
            "answer": rf"\frac{{{i}}}{{2}}",
            "subject": "Algebra",
            "level": 1 + i % 5,
            "unique_id": f"test/algebra/{i}.json",
        }
        for i in range(3)
    ]
    aime = [
        aimo(wiki + "2023_AIME_I_Problems/Problem_1", "7", 0),
        aimo(wiki + "2024_AIME_I_Problems/Problem_2", "025", 60),
        aimo(wiki + "2024_AIME_II_Problems/Problem_3", "73", 61),
    ]
    amc = [
        aimo(wiki + "2022_AMC_12A_Problems/Problem_1", 7.0, 0),
        aimo(wiki + "2023_AMC_12A_Problems/Problem_2", 27.0, 1),
    ]
    third = [
        code_row(1, "2024-07-31T00:00:00"),
        code_row(2, "2024-08-01T00:00:00"),
        code_row(3, "2024-09-14T00:00:00", "The same text."),
    ]
    fourth = [
        code_row(4, "2024-09-15T00:00:00", "The same text."),
        code_row(5, "2024-11-30T00:00:00", **FUNCTIONAL),
        code_row(6, "2024-12-01T00:00:00"),
    ]
    empty = [flashrag(i, "test", {}) for i in range(502)]
    return {
        "Idavidrein/gpqa": HubRepo(
            {
                "gpqa_diamond.csv": gpqa_csv(gpqa_rows(6)),
                "gpqa_main.csv": gpqa_csv(gpqa_rows(9)),
                "gpqa_extended.csv": gpqa_csv(gpqa_rows(12)),
            },
            gated=True,
        ),
        "HuggingFaceH4/MATH-500": HubRepo({"README.md": b"#", "test.jsonl": lines(math)}),
        "AI-MO/aimo-validation-aime": HubRepo({"data/train-00000-of-00001.parquet": parquet(aime)}),
        "AI-MO/aimo-validation-amc": HubRepo({"data/train-00000-of-00001.parquet": parquet(amc)}),
        "livecodebench/code_generation_lite": HubRepo(
            {"code_generation_lite.py": b"raise SystemExit", "test3.jsonl": lines(third), "test4.jsonl": lines(fourth)}
        ),
        "RUC-NLPIR/FlashRAG_datasets": HubRepo(
            {
                "nq/test.jsonl": lines(empty),
                "triviaqa/test.jsonl": lines(empty),
                "bamboogle/test.jsonl": lines(empty[:4]),
                "hotpotqa/dev.jsonl": lines([flashrag(i, "dev", HOTPOT) for i in range(2)]),
                "2wikimultihopqa/dev.jsonl": lines([flashrag(i, "dev", HOTPOT) for i in range(2)]),
                "musique/dev.jsonl": lines([flashrag(i, "dev", MUSIQUE) for i in range(2)]),
            }
        ),
    }
