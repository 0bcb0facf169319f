"""`search-o1 benchmarks`: the list, examples, and what is said where a set cannot be had."""

from __future__ import annotations

import json

from runs.benchmarks.registry import BENCHMARKS
from runs.listing import list_benchmarks, show_benchmark
from tests.runs.benchmarks.hub_world import code_row, gpqa_rows
from tests.runs.world import command


def test_the_list_tells_rows_metric_licence_and_login() -> None:
    done = command("benchmarks", COLUMNS="200")
    assert done.exit_code == 0
    (gpqa,) = [line for line in done.output.splitlines() if "gpqa" in line]
    for part in ("diamond 198, main 448, extended 546", " em ", "domain", "CC-BY-4.0", "needed"):
        assert part in gpqa
    (code,) = [line for line in done.output.splitlines() if "livecodebench" in line]
    assert "test 112" in code
    assert "pass@1" in code
    assert "needed" not in code


def test_the_list_as_json_is_that_of_the_function() -> None:
    done = command("benchmarks", "--json")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [entry["name"] for entry in told] == list(BENCHMARKS)
    assert told == [json.loads(json.dumps(entry.to_dict())) for entry in list_benchmarks()]
    assert (told[1]["login"], told[1]["searches"], told[1]["turns"]) == (True, 5, 10)


def test_questions_of_the_hub_are_shown_with_their_revision(hub) -> None:
    shown = command("benchmarks", "show", "nq", "--limit", "2")
    assert shown.output.count("answers: Author") == 2
    assert f"nq test, revision {hub.repos['RUC-NLPIR/FlashRAG_datasets'].commit}" in shown.output
    short = command("benchmarks", "show", "math500")
    assert (short.exit_code, "found 3 questions at revision" in short.stderr) == (2, True)


def test_choices_are_shown_with_the_letter_and_their_order(tmp_path) -> None:
    path = tmp_path / "gpqa.json"
    path.write_text(json.dumps(gpqa_rows(2)))
    done = command("benchmarks", "show", "gpqa", "--data", str(path), "--limit", "1", "--json")
    told = json.loads(done.stdout)
    assert told["choices"]["ABCD".index(told["answers"][0])] == "right 0"
    assert sorted(told["choice_order"]) == [0, 1, 2, 3]
    assert "  (D) " in command("benchmarks", "show", "gpqa", "--data", str(path)).output


def test_a_code_problem_tells_its_tests(tmp_path) -> None:
    path = tmp_path / "code.jsonl"
    path.write_text(json.dumps(code_row(1, "2024-09-01T00:00:00")))
    done = command("benchmarks", "show", "livecodebench", "--data", str(path))
    assert "tests: 1 public, 3 private, as a program" in done.output
    (question,) = show_benchmark("livecodebench", data=path).questions
    assert question.details["contest_id"] == "abc1"
    as_json = json.loads(command("benchmarks", "show", "--data", str(path), "--json").stdout)
    assert as_json["tests"] == {"public": 1, "private": 3, "function": ""}


def test_a_set_that_cannot_be_had_says_what_to_do(hub, monkeypatch) -> None:
    gated = command("benchmarks", "show", "gpqa")
    assert (gated.exit_code, "accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa" in gated.stderr) == (
        2,
        True,
    )
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    offline = command("benchmarks", "show", "aime24")
    assert (offline.exit_code, "give it with --data FILE" in offline.stderr) == (2, True)
    assert "Traceback" not in gated.output + offline.output
    nameless = command("benchmarks", "show")
    assert (nameless.exit_code, "Name a benchmark" in nameless.stderr) == (2, True)
