"""One MLflow trace a question, written after the fact from the events of its record."""

from __future__ import annotations

from typing import Any

from runs.contamination import contamination_kinds
from runs.journal import Record

_NANO = 1_000_000_000
_SPAN_TYPES = {"generate": "LLM", "search": "RETRIEVER", "read": "TOOL", "refine": "LLM"}


QUESTION_TAG, SAMPLE_TAG, CONTAMINATED_TAG = "question_id", "sample", "contaminated"


def known_traces(experiment_id: str, run_id: str) -> dict[tuple[str, int], str]:
    """Return the ids of a run's traces by (question id, sample), the newest where there are several.

    Args:
        experiment_id: MLflow experiment.
        run_id: MLflow run.
    """
    import mlflow

    client, token = mlflow.MlflowClient(), None
    found: dict[tuple[str, int], str] = {}
    while True:
        page = client.search_traces(
            locations=[experiment_id], run_id=run_id, include_spans=False, max_results=500,
            order_by=["timestamp_ms ASC"], page_token=token,
        )  # fmt: skip
        for trace in page:
            tags = trace.info.tags
            if QUESTION_TAG in tags:
                found[tags[QUESTION_TAG], int(tags[SAMPLE_TAG])] = trace.info.trace_id
        token = page.token
        if not token:
            return found


def write_trace(record: Record, experiment_id: str) -> str:
    """Write the trace of a question: a root span with its chain, and a child a generation, search, page and refinement.

    Failed searches and pages have status ERROR with their reason; a backend that failed beside others that answered is
    named on the search's span. Where the benchmark's question was found, the trace is tagged and the span says so.

    Args:
        record: The question's record.
        experiment_id: MLflow experiment it belongs to.

    Returns:
        The trace id.
    """
    import mlflow

    attributes: dict[str, Any] = {
        name: record[name]
        for name in (
            "id",
            "sample",
            "finish",
            "error",
            "searches",
            "turns",
            "malformed",
            "prompt_tokens",
            "completion_tokens",
            "cached_tokens",
        )
    }
    kinds = contamination_kinds(record)
    for name in ("reads", "reads_failed", "searches_failed", "hits_blocked"):
        if record.get(name):
            attributes[name] = record[name]
    if kinds:
        attributes["contamination"] = record["contamination"]
    root = mlflow.start_span_no_context(
        name="question",
        span_type="CHAIN",
        inputs={"question": record["question"]},
        attributes={
            **attributes,
            "mlflow.chat.tokenUsage": {
                "input_tokens": record["prompt_tokens"],
                "output_tokens": record["completion_tokens"],
                "total_tokens": record["prompt_tokens"] + record["completion_tokens"],
            },
        },
        tags={
            QUESTION_TAG: record["id"],
            SAMPLE_TAG: str(record["sample"]),
            **({CONTAMINATED_TAG: ", ".join(kinds)} if kinds else {}),
        },
        experiment_id=experiment_id,
        start_time_ns=int(record["started"] * _NANO),
    )
    information = {s["query"]: s.get("information", "") for s in record["search_log"]}
    lost: dict[str, str] = {}
    for event in record["events"]:
        if event["type"] == "backend_failed":
            lost[f"backend_failed.{event['provider']}"] = event["error"]
        elif event["type"] in _SPAN_TYPES:
            about = _flags_of(event, record)
            # Failures of single backends are told just before the search they belong to.
            if event["type"] == "search":
                about |= lost
                lost = {}
            _write_child(root, {**event, **about}, information, record["started"])
    root.set_outputs({"answer": record["prediction"], "gold": record["answers"], "chain": record["chain"]})
    root.set_status("ERROR" if record["finish"] == "error" else "OK")
    root.end(end_time_ns=int(record["ended"] * _NANO))
    return str(root.trace_id)


def _flags_of(event: dict[str, Any], record: Record) -> dict[str, Any]:
    """Return what a page's or a search's span says of the benchmark's question in it."""
    flags = record.get("contamination") or []
    if event["type"] == "read":
        flags = [flag for flag in flags if flag["url"] == event["url"]]
    elif event["type"] == "search":
        flags = [flag for flag in flags if flag.get("query") == event["query"]]
    else:
        flags = []
    return {"contamination": flags} if flags else {}


def _write_child(root: Any, event: dict[str, Any], information: dict[str, str], earliest: float) -> None:
    import mlflow
    from mlflow.entities import SpanStatus, SpanStatusCode

    kind = event["type"]
    facts = {name: value for name, value in event.items() if name not in ("type", "start", "end") and value is not None}
    child = mlflow.start_span_no_context(
        name=f"{kind} {event['turn']}" if kind == "generate" else kind,
        span_type=_SPAN_TYPES[kind],
        parent_span=root,
        inputs={name: event[name] for name in ("query", "url", "turn") if name in event},
        attributes=facts,
        start_time_ns=int(max(event["start"], earliest) * _NANO),
    )
    if kind == "refine":
        child.set_outputs({"information": information.get(event["query"], "")})
    why = str(event.get("error") or event.get("reason") or "")
    child.set_status(SpanStatus(SpanStatusCode.ERROR, why) if why else "OK")
    child.end(end_time_ns=int(max(event["end"], event["start"], earliest) * _NANO))
