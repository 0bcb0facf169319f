"""The strict family on a table of answers whose scores were decided by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from metrics import strict

ROWS = [
    json.loads(line) for line in Path(__file__).with_name("strict_rows.jsonl").read_text(encoding="utf-8").splitlines()
]
"""Each with `kind`, `output`, `labels` and those scores that the row is about."""


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['kind']}-{row['output'][:40]}" for row in ROWS])
def test_strict_gives_the_right_result(row: dict[str, Any]) -> None:
    scores = strict.score(row["kind"], row["output"], row["labels"]).to_dict()
    for name in row.keys() - {"kind", "output", "labels"}:
        expected = pytest.approx(row[name], abs=1e-5) if isinstance(row[name], float) else row[name]
        assert scores[name] == expected, f"{name} of {scores['prediction']!r}"


def test_the_table_holds_both_outcomes_of_every_kind_in_number() -> None:
    assert len(ROWS) >= 200
    for kind, headline in (("qa", "em"), ("choice", "em"), ("math", "math_equal")):
        outcomes = [row.get(headline) for row in ROWS if row["kind"] == kind]
        assert min(outcomes.count(0), outcomes.count(1)) >= 20
