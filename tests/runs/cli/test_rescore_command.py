"""`search-o1 rescore` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runs.cli.rescore import command as rescore_command
from signatures.errors import DataError
from tests.runs.world import command, write_lines


def predictions(path: Path, **more: object) -> Path:
    rows = [
        {"id": "a", "output": "so \\boxed{B}", "Correct Choice": "B", "High-level domain": "Physics"},
        {"id": "b", "output": "no idea", "Correct Choice": "A", "High-level domain": "Biology"},
    ]
    return write_lines(path, [{**row, **more} for row in rows])


def test_scores_are_printed_in_both_families_by_group_and_with_the_fallback(tmp_path: Path) -> None:
    file = predictions(tmp_path / "p.jsonl")
    direct = predictions(tmp_path / "d.jsonl", output="\\boxed{A}")
    done = command(str(file), "--backoff", str(direct), verb=rescore_command)
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.replace("│", " ").split()) for line in done.output.splitlines()]
    assert lines[0].startswith("p.jsonl: predictions with id and output, multiple choice (its fields say so")
    assert "2 questions, scores in percent with 95 % intervals, * the headline" in lines
    assert any(line.startswith("em (official) * 100.0 [34.2, 100.0] 50.0 [9.5, 90.5]") for line in lines)
    assert any(line.startswith("em (strict) * 100.0 [34.2, 100.0] 50.0 [9.5, 90.5]") for line in lines)
    assert "valid (official) 2 of 2 1 of 2" in lines
    assert "direct answer stood in 1 (official), 1 (strict) -" in lines
    assert lines.index("domain") < next(i for i, line in enumerate(lines) if line.startswith("Physics 1 100.0"))


def test_group_names_are_anybodys_text_and_no_markup(tmp_path: Path) -> None:
    file = predictions(tmp_path / "p.jsonl", **{"High-level domain": "[/x]"})
    done = command(str(file), verb=rescore_command)
    assert done.exit_code == 0, done.output
    assert "[/x]" in done.output


def test_agreement_with_the_file_is_told(tmp_path: Path) -> None:
    item = {
        "id": 0,
        "Question": "q",
        "answer": ["x"],
        "Output": "\\boxed{x}",
        "Metrics": {"em": 1, "acc": 1, "f1": 1.0},
    }
    file = tmp_path / "x.json"
    file.write_text(json.dumps([item]), encoding="utf-8")
    done = command(str(file), verb=rescore_command)
    assert "The scores in the file are those of this scorer, output by output." in done.output
    file.write_text(json.dumps([{**item, "Metrics": {"em": 0}}]), encoding="utf-8")
    assert "Note: The file's em differs from our official em for 1 of 1 outputs" in command(
        str(file), verb=rescore_command
    ).output.replace("\n", " ")


def test_all_scores_go_to_a_file(tmp_path: Path) -> None:
    file, out = predictions(tmp_path / "p.jsonl"), tmp_path / "scores.json"
    done = command(str(file), "--kind", "choice", "--output", str(out), verb=rescore_command)
    assert done.output.endswith(f"Written: {out}\n")
    assert [item["official"]["em"] for item in json.loads(out.read_text())["items"]] == [1.0, 0.0]


def test_data_are_joined_by_id(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "p.jsonl", [{"id": "a", "output": "\\boxed{x}"}])
    rows = [{"id": i, "question": "?", "answers": ["x"]} for i in ("a", "b")]
    done = command(str(file), "--data", str(write_lines(tmp_path / "q.jsonl", rows)), verb=rescore_command)
    assert "Note: 1 of 2 questions have no prediction; they count as wrong." in done.output


def test_options_are_explained_and_mistakes_told(tmp_path: Path) -> None:
    done = command("--help", verb=rescore_command)
    for word in (
        "--backoff",
        "--kind",
        "--data",
        "--output",
        "--unsafe-code",
        "search-o1 rescore diamond.json --backoff",
    ):
        assert word in done.output
    assert max(map(len, done.output.splitlines())) <= 110
    assert command(verb=rescore_command).exit_code == 2
    with pytest.raises(DataError, match="There is no file"):
        command(str(tmp_path / "none.json"), verb=rescore_command)
