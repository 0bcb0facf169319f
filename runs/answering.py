"""Runs questions through a program: bounded, journaled, every failure kept, nothing repeated that is done."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import dspy

from metrics.sandbox.options import SandboxOptions
from metrics.scorer import score
from metrics.scores import Score
from retrieval.caching.replay import asking_for
from runs.benchmarks.question import Question
from runs.contamination import Watch, contamination_kinds, watching
from runs.journal import Journal, Record
from runs.models.factory import Model
from runs.retrieval_counts import retrieval_counts
from runs.scoring import score_of_nothing, score_question, verdict_of
from signatures.errors import SearchO1Error

Done = Callable[[Record], None]

_TABLE_FIELDS = (
    "id", "sample", "question", "prediction", "answers", "finish", "searches", "prompt_tokens", "completion_tokens",
    "cost", "seconds", "error_kind", "fallback",
)  # fmt: skip


def pending(
    questions: Sequence[Question], samples: int, done: dict[tuple[str, int], Record]
) -> list[tuple[Question, int]]:
    """Return what is still to be answered: (question, sample) pairs that are not finished, or that failed.

    A failed question is tried again: what its chain had already been told is in the cache.

    Args:
        questions: The questions of the run.
        samples: Samples a question.
        done: Records read from the journal.

    Returns:
        The pairs, sample by sample, in question order.
    """
    return [
        (question, sample)
        for sample in range(samples)
        for question in questions
        if (found := done.get((question.id, sample))) is None or (found["finish"] == "error" and not found["fallback"])
    ]


async def answer_all(
    program: Any,
    model: Model,
    work: Sequence[tuple[Question, int]],
    journal: Journal,
    *,
    concurrency: int,
    seed: int,
    on_done: Done,
    sandbox: SandboxOptions | None = None,
) -> None:
    """Answer questions, at most `concurrency` at once; each finished one is in the journal before it is reported.

    Args:
        program: The program.
        model: The language model.
        work: (question, sample) pairs.
        journal: Where records go.
        concurrency: Chains in flight.
        seed: Run seed, part of each rollout id.
        on_done: Called with each record.
        sandbox: How programs that answer code questions are run.

    Raises:
        DataError: The journal cannot be written.
    """
    queue = iter(work)

    async def worker() -> None:
        for question, sample in queue:
            record = await answer_one(program, model, question, sample, seed, sandbox)
            await asyncio.to_thread(journal.append, record)
            on_done(record)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(concurrency, len(work))):
                group.create_task(worker())
    except* SearchO1Error as errors:
        # A full disk stops every worker with the same complaint; one is enough.
        raise errors.exceptions[0] from None


async def answer_one(
    program: Any, model: Model, question: Question, sample: int, seed: int, sandbox: SandboxOptions | None = None
) -> Record:
    """Answer and score one question; a failure of either becomes a record too.

    Args:
        program: The program.
        model: The language model.
        question: The question.
        sample: Number of the sample, from 0.
        seed: Run seed.
        sandbox: How a program that answers a code question is run.

    Returns:
        The record: everything the journal, the scores and the traces are made from.
    """
    started = time.time()
    rollout = f"{seed}/{question.id}/{sample}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lm = model.lm.copy(rollout_id=rollout)
    with watching(question) as watch, asking_for(f"{getattr(program, 'method', '')}/{rollout}"):
        try:
            with dspy.context(lm=lm, trace=None, disable_history=True):
                prediction = await program.acall(**question.to_inputs())
            found = prediction.toDict()
        except Exception as error:
            found = _failure(error)
    ended = time.time()
    task = program.options.task
    try:
        result = await score_question(question, scored_chain(found), task, sandbox)
    except Exception as error:
        # The chain is paid for and stays. The question counts as failed, so the next start tries it again, for which
        # no stand-in may be in its place.
        found = {**found, **_failure(error), "fallback": False}
        result = score_of_nothing(task)
    return make_record(question, sample, found, task, started, ended, watch, result)


def _failure(error: Exception) -> dict[str, Any]:
    """Return the fields of a question that failed.

    One that trips over a bug must not take the others with it either; it is counted under a kind of its own.
    """
    if not isinstance(error, SearchO1Error):
        return {"finish": "error", "error": f"{type(error).__name__}: {error}", "error_kind": "unexpected"}
    provider = getattr(error, "provider", "")
    return {"finish": "error", "error": str(error), "error_kind": error.kind, "error_provider": provider}


def scored_chain(found: dict[str, Any]) -> str:
    """Return the chain that a question is judged by.

    Args:
        found: The prediction's fields, or `finish` of a failure.

    Returns:
        The direct chain where it stood in. A chain that broke off is wrong, whatever its partial text holds: empty.
    """
    broken = found.get("finish", "error") == "error"
    return found.get("direct_reasoning") or ("" if broken else found.get("reasoning") or "")


def make_record(
    question: Question,
    sample: int,
    found: dict[str, Any],
    task: str,
    started: float,
    ended: float,
    watch: Watch | None = None,
    result: Score | None = None,
) -> Record:
    """Put together the record of a question.

    Args:
        question: The question.
        sample: Number of the sample.
        found: The prediction's fields, or `finish`, `error` and `error_kind` of a failure.
        task: Task kind.
        started: Time it began (seconds since the epoch).
        ended: Time it ended.
        watch: What was seen of the benchmark in searches and pages, or None if nobody looked.
        result: Its score; None scores it here, which code cannot be.

    Returns:
        A plain dict that JSON can hold.
    """
    chain = found.get("reasoning") or ""
    searches = found.get("searches") or []
    usage = found.get("usage") or {}
    events = found.get("events") or []
    flags = watch.flags() if watch is not None else []
    finish = found.get("finish", "error")
    result = result or score(scored_chain(found), list(question.answers), task, question.choices)
    refined = [s for s in searches if s.get("outcome") in ("found", "said_none", "no_heading")]
    return {
        "id": question.id,
        "sample": sample,
        "question": question.question,
        "answers": list(question.answers),
        "groups": dict(question.groups),
        "gold_titles": list(question.gold_titles),
        "prediction": result.strict_answer,
        "official_prediction": result.official_answer,
        "official": result.official,
        "strict": result.strict,
        "headline": result.headline,
        "valid": bool(result.strict.get("valid", result.strict_answer != "")),
        **verdict_of(result),
        **({"choices": list(question.choices)} if question.choices else {}),
        **({"choice_order": list(question.choice_order)} if question.choice_order else {}),
        "finish": finish,
        "error": found.get("error", ""),
        "error_kind": found.get("error_kind", ""),
        "turns": found.get("turns", 0),
        "malformed": found.get("malformed", 0),
        "searches": len(searches),
        **retrieval_counts(
            events, error_kind=found.get("error_kind", ""), error_provider=found.get("error_provider", "")
        ),
        "hits_blocked": watch.hits_blocked if watch is not None else 0,
        "contaminated": bool(flags),
        "contamination": flags,
        "refinements": len(refined),
        "refined_to_nothing": sum(s["outcome"] != "found" for s in refined),
        "prompt_tokens": usage.get("prompt_tokens", 0),
        "completion_tokens": usage.get("completion_tokens", 0),
        "cached_tokens": usage.get("cached_tokens", 0),
        "calls": usage.get("calls", 0),
        "calls_from_cache": usage.get("from_cache", 0),
        "retokenised": usage.get("retokenised", 0),
        "cost": usage.get("cost"),
        "fallback": bool(found.get("fallback", False)),
        "started": started,
        "ended": ended,
        "seconds": ended - started,
        "chain": chain,
        "direct_chain": found.get("direct_reasoning", ""),
        "search_log": searches,
        "events": events,
        "model": found.get("model", ""),
    }


def table_row(record: Record) -> dict[str, Any]:
    """Return what the per-question table shows of a record."""
    scores = {f"{family}_{name}": value for family in ("official", "strict") for name, value in record[family].items()}
    row = {name: record[name] for name in _TABLE_FIELDS}
    # A journal of an earlier version has none of these.
    row |= {
        "contaminated": bool(record.get("contaminated")),
        "contamination_kinds": ", ".join(contamination_kinds(record)),
        "pages_read": record.get("reads", 0),
        "pages_failed": sum((record.get("reads_failed") or {}).values()),
        "searches_failed": sum((record.get("searches_failed") or {}).values()),
    }
    return {**row, "answers": " | ".join(record["answers"]), "correct": is_right(record), **scores}


def is_right(record: Record) -> bool:
    """Say whether a record's strict headline metric is full; a journal of an earlier version has exact match."""
    return bool(record["strict"][record.get("headline", "em")] == 1.0)
