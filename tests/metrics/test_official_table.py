"""The official family against recorded results of the published scorer, row by row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metrics import official

ROWS = [
    json.loads(line)
    for line in Path(__file__).with_name("official_rows.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Each with `kind`, `output`, `labels` and what the published scorer said of them; `valid` as its summary counts it."""


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['kind']}-{row['output'][:40]}" for row in ROWS])
def test_official_gives_the_published_result(row: dict[str, Any]) -> None:
    scores = official.score(row["kind"], row["output"], row["labels"])
    assert (scores.prediction, scores.valid) == (row["prediction"], row["valid"])
    assert (scores.em, scores.acc, scores.math_equal) == (row["em"], row["acc"], row["math_equal"])
    assert scores.f1 == pytest.approx(row["f1"], abs=1e-5)


def test_the_table_holds_both_outcomes_of_every_kind_in_number() -> None:
    assert len(ROWS) >= 200
    for kind, headline in (("qa", "em"), ("choice", "em"), ("math", "math_equal")):
        outcomes = [row[headline] for row in ROWS if row["kind"] == kind]
        assert min(outcomes.count(0), outcomes.count(1)) >= 20
