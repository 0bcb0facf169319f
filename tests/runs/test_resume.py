"""Killed, interrupted and damaged runs: the same command goes on and repeats nothing that was paid for."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from runs.journal import Journal
from signatures.errors import DataError
from tests.runs.world import interrupt, read_records, wait_until


def lines(path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def test_a_run_killed_in_the_middle_goes_on_and_repeats_no_model_call(films) -> None:
    world = films(12, latency=0.12)
    process = world.start("--no-track", "--concurrency", "2")
    wait_until(lambda: any(lines(p) >= 3 for p in world.home.runs.glob("*/journal.jsonl")))
    process.kill()
    process.communicate()
    before = {r["id"] for r in read_records(world.journal())}
    assert 3 <= len(before) < 12
    answered = Counter(call.prompt for call in world.server.calls)
    done = world.run_one(concurrency=2)
    assert done.answered == 12 - len(before)
    assert (len(done.records), done.summary.scores["strict"]["em"].mean) == (12, 1.0)
    total = Counter(call.prompt for call in world.server.calls)
    # Two turns and one refinement a question; only a call that was in flight at the kill is asked again.
    assert len(total) == 36
    again = sum(total.values()) - 36
    assert again <= 2
    assert all(total[prompt] == 1 for prompt in answered if any(f"directed {i}?" in prompt for i in before))
    assert sum(r["calls_from_cache"] for r in done.records) == sum(answered.values()) - 3 * len(before) - again


def test_ctrl_c_stops_soon_with_130_and_leaves_the_run_resumable(films) -> None:
    world = films(12, latency=0.3)
    process = world.start("--no-track", "--concurrency", "2")
    wait_until(lambda: any(lines(p) >= 2 for p in world.home.runs.glob("*/journal.jsonl")))
    assert interrupt(process) < 60  # a loaded machine is slow; the stop itself takes a second
    out, err = process.communicate()
    assert process.returncode == 130
    assert "The same command goes on from here" in err
    assert "Traceback" not in out + err
    world.server.latency = 0.0
    done = world.run_one()
    assert 0 < done.answered < 12
    assert done.summary.scores["strict"]["em"].mean == 1.0


def test_ctrl_c_while_tracking_stops_too_and_the_next_start_goes_on_in_the_same_mlflow_run(films) -> None:
    import mlflow

    world = films(6, latency=0.3)
    process = world.start("--concurrency", "1")
    wait_until(lambda: any(lines(p) >= 2 for p in world.home.runs.glob("*/journal.jsonl")))
    assert interrupt(process) < 90
    out, err = process.communicate()
    assert (process.returncode, "Traceback" in out + err) == (130, False)
    world.server.latency = 0.0
    done = world.run_one(track=True)
    client = mlflow.MlflowClient(world.home.tracking_uri)
    experiment = client.get_experiment_by_name("films")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_id, run.info.status) == (done.mlflow_run, "FINISHED")
    traces = client.search_traces(locations=[experiment.experiment_id], run_id=done.mlflow_run, include_spans=False)
    assert sorted(t.info.tags["question_id"] for t in traces) == [f"q{i}" for i in range(6)]


@pytest.fixture
def journal(tmp_path):
    found = Journal(tmp_path / "run" / "journal.jsonl")
    for i in range(3):
        found.append({"id": f"q{i}", "sample": 0, "text": "é\u2028" * i})
    return found


def test_a_journal_gives_back_what_was_written_and_the_last_record_of_a_question(journal) -> None:
    journal.append({"id": "q1", "sample": 0, "text": "again"})
    journal.append({"id": "q1", "sample": 1, "text": "other sample"})
    found = journal.read()
    assert list(found) == [("q0", 0), ("q1", 0), ("q2", 0), ("q1", 1)]
    assert found["q1", 0]["text"] == "again"
    assert found["q2", 0]["text"] == "é\u2028é\u2028"


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_last_line_that_was_cut_is_dropped_and_written_over(journal, cut) -> None:
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-cut])
    # Even one that lacks nothing but its line end: what is read must be what stays.
    assert list(journal.read()) == [("q0", 0), ("q1", 0)]
    journal.append({"id": "q2", "sample": 0, "text": "anew"})
    assert [r["text"] for r in journal.read().values()] == ["", "é\u2028", "anew"]


@pytest.mark.parametrize("damage", [b"{broken", b"[1, 2]", b'{"id": "q1"}', b'{"id": [], "sample": 0}', b"3"])
def test_a_damaged_line_is_named_with_the_way_out(journal, damage) -> None:
    rows = journal.path.read_bytes().split(b"\n")
    journal.path.write_bytes(b"\n".join([rows[0], damage, *rows[1:]]))
    with pytest.raises(
        DataError, match=r"journal\.jsonl, line 2: damaged; remove that line, or start anew with --fresh"
    ):
        journal.read()


def test_a_journal_that_does_not_exist_is_empty_and_can_be_cleared(tmp_path) -> None:
    journal = Journal(tmp_path / "none.jsonl")
    journal.clear()
    assert journal.read() == {}


def test_a_journal_that_cannot_be_written_is_named_once(films) -> None:
    world = films(4)
    done = world.run_one(limit=1)
    journal = done.folder / "journal.jsonl"
    journal.unlink()
    journal.mkdir()
    with pytest.raises(DataError, match=r"The journal .*journal\.jsonl cannot be written"):
        world.run()


def test_records_of_lone_surrogates_are_kept(tmp_path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.append({"id": "q", "sample": 0, "text": "\ud800 and on"})
    assert journal.read()["q", 0]["text"].endswith("and on")
    json.dumps(journal.read()["q", 0])


def test_a_start_with_a_smaller_limit_leaves_the_scores_of_all_that_was_answered(films) -> None:
    world = films(4)
    whole = world.run_one()
    small = world.run_one(limit=1)
    assert small.folder == whole.folder
    assert small.summary.questions == 1
    assert json.loads((whole.folder / "summary.json").read_text())["questions"] == 4
