"""One MLflow trace a question, written after the fact from the events of its record."""

from __future__ import annotations

from typing import Any

from runs.journal import Record

_NANO = 1_000_000_000
_SPAN_TYPES = {"generate": "LLM", "search": "RETRIEVER", "read": "TOOL", "refine": "LLM"}


def write_trace(record: Record, experiment_id: str) -> str:
    """Write the trace of a question: a root span with its chain, and a child a generation, search, page and refinement.

    Args:
        record: The question's record.
        experiment_id: MLflow experiment it belongs to.

    Returns:
        The trace id.
    """
    import mlflow

    attributes: dict[str, Any] = {
        name: record[name]
        for name in ("id", "sample", "finish", "error", "searches", "turns", "malformed", "prompt_tokens", "completion_tokens", "cached_tokens")
    }
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
        experiment_id=experiment_id,
        start_time_ns=int(record["started"] * _NANO),
    )
    information = {s["query"]: s.get("information", "") for s in record["search_log"]}
    for event in record["events"]:
        if event["type"] in _SPAN_TYPES:
            _write_child(root, event, information, record["started"])
    root.set_outputs({"answer": record["prediction"], "gold": record["answers"], "chain": record["chain"]})
    root.set_status("ERROR" if record["finish"] == "error" else "OK")
    root.end(end_time_ns=int(record["ended"] * _NANO))
    return str(root.trace_id)


def _write_child(root: Any, event: dict[str, Any], information: dict[str, str], earliest: float) -> None:
    import mlflow

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
    failed = bool(event.get("error") or event.get("reason"))
    child.set_status("ERROR" if failed else "OK")
    child.end(end_time_ns=int(max(event["end"], event["start"], earliest) * _NANO))
