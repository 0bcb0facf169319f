"""What arrives in MLflow: a real SQLite store, one run an evaluation, one trace a question."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import mlflow
import pytest
from rich.console import Console

from runs import evaluate
from runs.traces import write_trace
from runs.tracking import read_note, write_note
from tests.runs.world import Films, model, read_records, write_lines
from tests.servers.lm import LMServer

QUESTIONS = 60


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """One store for all tests of this file: a fresh one costs seconds."""
    with LMServer(model(QUESTIONS)) as server:
        yield Films(tmp_path_factory.mktemp("tracked"), server, QUESTIONS)


@pytest.fixture(scope="module")
def tracked(world):
    world.server.fail_next(1, status=400, body={"error": {"message": "Injected refusal"}})
    return world.run_one(track=True, concurrency=16)


@pytest.fixture(scope="module")
def client(world, tracked):
    mlflow.set_tracking_uri(world.home.tracking_uri)
    return mlflow.MlflowClient(world.home.tracking_uri)


def traces_of(client: mlflow.MlflowClient, run_id: str, *, spans: bool = True) -> list[Any]:
    experiment = client.get_run(run_id).info.experiment_id
    found: list[Any] = []
    token = None
    while True:
        page = client.search_traces(locations=[experiment], run_id=run_id, page_token=token, include_spans=spans)
        found += page
        token = page.token
        if not token:
            return found


def table(client: mlflow.MlflowClient, run_id: str, folder: Path) -> list[dict[str, Any]]:
    content = json.loads(Path(client.download_artifacts(run_id, "questions.json", str(folder))).read_text())
    return [dict(zip(content["columns"], row, strict=True)) for row in content["data"]]


def test_a_run_has_its_parameters_tags_and_metrics(client, tracked) -> None:
    run = client.get_run(tracked.mlflow_run)
    assert (run.info.status, run.data.tags["mlflow.runName"]) == ("FINISHED", "search_o1 qwq-32b")
    assert client.get_experiment(run.info.experiment_id).name == "films"
    assert run.data.params["method"] == "search_o1"
    assert run.data.params["model"] == "vllm:QwQ:models/QwQ"
    assert run.data.params["options.max_searches"] == "10"
    assert run.data.params["samples"] == "1"
    assert (run.data.tags["backend"], run.data.tags["run_folder"]) == ("local", tracked.id)
    assert len(run.data.tags["corpus_hash"]) == 64
    assert run.data.metrics == pytest.approx(tracked.summary.metrics())
    assert run.data.metrics["strict.em"] == pytest.approx(59 / 60)
    assert run.data.metrics["failure.model"] == 1


def test_the_questions_are_a_table_and_the_summary_a_file(client, tracked, tmp_path) -> None:
    rows = table(client, tracked.mlflow_run, tmp_path)
    assert [row["id"] for row in rows] == [f"q{i}" for i in range(QUESTIONS)]
    assert sum(row["correct"] for row in rows) == 59
    assert {row["finish"] for row in rows} == {"answered", "error"}
    assert {row["strict_em"] for row in rows} == {0.0, 1.0}
    assert "summary.json" in {file.path for file in client.list_artifacts(tracked.mlflow_run)}


def test_every_question_has_its_trace_with_children_and_feedback(client, tracked) -> None:
    traces = traces_of(client, tracked.mlflow_run)
    assert sorted(t.info.tags["question_id"] for t in traces) == sorted(f"q{i}" for i in range(QUESTIONS))
    by_question = {t.info.tags["question_id"]: t for t in traces}
    record = next(r for r in tracked.records if r["finish"] == "answered")
    trace = by_question[record["id"]]
    (root,) = [s for s in trace.data.spans if s.parent_id is None]
    children = [s for s in trace.data.spans if s.parent_id == root.span_id]
    assert sorted(s.name for s in children) == [
        "generate 1",
        "generate 2",
        *["read"] * len(record["search_log"][0]["hits"]),
        "refine",
        "search",
    ]
    assert root.inputs == {"question": record["question"]}
    assert root.outputs["answer"] == record["answers"][0]
    assert root.outputs["chain"] == record["chain"]
    assert root.start_time_ns <= min(s.start_time_ns for s in children)
    assert root.end_time_ns >= max(s.end_time_ns for s in children)
    (refine,) = [s for s in children if s.name == "refine"]
    assert record["answers"][0] in refine.outputs["information"]
    assert trace.info.token_usage["total_tokens"] == record["prompt_tokens"] + record["completion_tokens"]
    (feedback,) = trace.info.assessments
    assert (feedback.name, feedback.value, feedback.rationale) == ("correct", True, "answered")


def test_a_failed_question_has_an_error_trace_and_one_trace_only_after_its_next_try(
    client, world, tracked, tmp_path
) -> None:
    (failed,) = [r for r in tracked.records if r["finish"] == "error"]
    status = {t.info.tags["question_id"]: t.info.state for t in traces_of(client, tracked.mlflow_run)}
    assert [q for q, s in status.items() if s == "ERROR"] == [failed["id"]]
    again = world.run_one(track=True)
    assert (again.answered, again.mlflow_run) == (1, tracked.mlflow_run)
    traces = traces_of(client, tracked.mlflow_run)
    assert sorted(t.info.tags["question_id"] for t in traces) == sorted(f"q{i}" for i in range(QUESTIONS))
    assert {t.info.state for t in traces} == {"OK"}
    run = client.get_run(tracked.mlflow_run)
    assert (run.info.status, run.data.metrics["strict.em"], run.data.metrics["failures"]) == ("FINISHED", 1.0, 0.0)
    assert len(table(client, tracked.mlflow_run, tmp_path)) == QUESTIONS


def test_a_finished_run_is_left_alone_and_a_fresh_one_is_another_run(client, world, tracked) -> None:
    before = client.get_run(tracked.mlflow_run).data.metrics
    same = world.run_one(track=True)
    assert (same.answered, same.mlflow_run) == (0, tracked.mlflow_run)
    assert client.get_run(tracked.mlflow_run).data.metrics == before
    fresh = world.run_one(track=True, fresh=True, limit=2)
    assert fresh.mlflow_run not in ("", tracked.mlflow_run)
    assert len(traces_of(client, fresh.mlflow_run, spans=False)) == 2


def test_a_run_killed_before_it_was_closed_is_closed_by_the_next_start_with_the_traces_it_lacks(
    client, world, tracked
) -> None:
    # As a kill leaves it: everything in the journal, the MLflow run open, some traces lost on the way.
    done = world.run_one(track=True, limit=4, experiment="killed", options={"max_searches": 3})
    client.set_terminated(done.mlflow_run, "RUNNING")
    write_note(done.folder, done.mlflow_run, complete=False)
    lost = traces_of(client, done.mlflow_run, spans=False)[:2]
    client.delete_traces(lost[0].info.experiment_id, trace_ids=[t.info.trace_id for t in lost])
    world.server.calls.clear()
    again = world.run_one(track=True, limit=4, experiment="killed", options={"max_searches": 3})
    assert (again.answered, again.mlflow_run, world.server.calls) == (0, done.mlflow_run, [])
    assert client.get_run(done.mlflow_run).info.status == "FINISHED"
    assert sorted(t.info.tags["question_id"] for t in traces_of(client, done.mlflow_run, spans=False)) == [
        "q0",
        "q1",
        "q2",
        "q3",
    ]
    assert read_note(done.folder) == (done.mlflow_run, True)


def test_samples_are_traced_apart(client, world, tracked) -> None:
    done = world.run_one(track=True, limit=2, samples=2, experiment="samples", options={"max_searches": 4})
    keys = [
        (t.info.tags["question_id"], t.info.tags["sample"]) for t in traces_of(client, done.mlflow_run, spans=False)
    ]
    assert sorted(keys) == [("q0", "0"), ("q0", "1"), ("q1", "0"), ("q1", "1")]


def test_contaminated_questions_are_told_in_table_traces_and_tags(client, world, tracked, tmp_path) -> None:
    rows = read_records(world.corpus)
    rows.append({"id": "quiz", "title": "Sunrise over Bergen 01", "text": "Who directed Sunrise over Bergen 01?"})
    corpus = write_lines(tmp_path / "quiz.jsonl", rows)
    done = world.run_one(track=True, limit=3, corpus=corpus, experiment="contaminated")
    run = client.get_run(done.mlflow_run)
    assert run.data.tags["contamination_share"] == "0.3333"
    assert (run.data.metrics["contaminated_questions"], run.data.metrics["contamination.question"]) == (1, 1)
    assert run.data.metrics["clean.strict.em"] == 1.0
    assert client.get_run(tracked.mlflow_run).data.tags["contamination_share"] == "0.0000"
    shown = {
        row["id"]: (row["contaminated"], row["contamination_kinds"]) for row in table(client, done.mlflow_run, tmp_path)
    }
    assert shown == {"q0": (False, ""), "q1": (True, "question"), "q2": (False, "")}
    traces = {t.info.tags["question_id"]: t for t in traces_of(client, done.mlflow_run)}
    assert {q: t.info.tags.get("contaminated") for q, t in traces.items()} == {"q0": None, "q1": "question", "q2": None}
    feedback = {a.name: a.value for a in traces["q1"].info.assessments}
    assert feedback == {"correct": True, "contaminated": True}
    assert [a.name for a in traces["q0"].info.assessments] == ["correct"]
    spans = [s for s in traces["q1"].data.spans if "contamination" in s.attributes]
    assert {s.name for s in spans} == {"question", "search", "read"}
    (read,) = [s for s in spans if s.name == "read"]
    assert read.attributes["contamination"][0]["kind"] == "question"


def test_failed_pages_and_backends_are_errors_in_the_trace_with_their_reason(client, world, tracked) -> None:
    record = {
        **tracked.records[0], "id": "failing", "search_log": [], "reads_failed": {"bot_wall": 1},
        "events": [
            {"type": "backend_failed", "start": 1.0, "end": 2.0, "query": "a", "provider": "serper", "error": "429"},
            {"type": "search", "start": 1.0, "end": 2.0, "query": "a", "backend": "serper+local", "hits": 1},
            {"type": "search", "start": 2.0, "end": 3.0, "query": "b", "error": "bing: gone"},
            {"type": "read", "start": 3.0, "end": 4.0, "url": "https://a.org/", "reason": "bot_wall", "status": 403},
            {"type": "read", "start": 3.0, "end": 4.0, "url": "https://b.org/", "reason": "", "status": 200},
        ],
    }  # fmt: skip
    found = mlflow.get_trace(write_trace(record, client.get_run(tracked.mlflow_run).info.experiment_id))
    spans = sorted((s for s in found.data.spans if s.parent_id), key=lambda s: (s.start_time_ns, str(s.inputs)))
    assert [(s.status.status_code.value, s.status.description) for s in spans] == [
        ("OK", ""), ("ERROR", "bing: gone"), ("ERROR", "bot_wall"), ("OK", "")
    ]  # fmt: skip
    assert spans[0].attributes["backend_failed.serper"] == "429"
    assert "backend_failed.serper" not in spans[1].attributes
    assert spans[2].attributes["reason"] == "bot_wall"
    (root,) = [s for s in found.data.spans if s.parent_id is None]
    assert root.attributes["reads_failed"] == {"bot_wall": 1}


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("broken", ["unwritable", "down"])
def test_a_broken_store_is_said_once_and_costs_the_run_nothing(films, broken) -> None:
    import io

    world = films(3)
    (world.folder / "file").write_text("not a folder")
    uri = {
        "unwritable": f"sqlite:///{world.folder / 'file' / 'mlflow.db'}",
        "down": f"http://127.0.0.1:{closed_port()}",
    }[broken]
    screen = io.StringIO()
    began = time.monotonic()
    (done,) = evaluate(
        "films",
        home=world.home,
        console=Console(file=screen, width=200),
        **world.settings(track=True, tracking_uri=uri),
    )
    assert time.monotonic() - began < 60
    assert done.summary.scores["strict"]["em"].mean == 1.0
    assert done.tracking_error
    assert done.mlflow_run == ""
    text = screen.getvalue()
    assert text.count("Tracking stopped (") == text.lower().count("tracking stopped") == 1
    assert "search-o1 ui" not in text


def test_a_run_with_a_store_of_its_own_leaves_the_environment_alone(world, tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    world.run_one(track=True, seed=7, limit=2, tracking_uri=f"sqlite:///{tmp_path}/other.db")
    assert "MLFLOW_TRACKING_URI" not in os.environ
    assert (tmp_path / "other.db").is_file()
