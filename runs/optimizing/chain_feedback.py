"""What went wrong inside a chain, in sentences that a reflecting optimizer can act on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.normalise import normalise_official
from programs.refine import TRACED_CHARS
from signatures.markup import BEGIN_SEARCH_QUERY, END_SEARCH_QUERY

SEARCHING = ("search_o1", "rag_agent")
"""Methods whose model decides by itself when to search."""

_SHOWN = 160
_MOST = 3
_ENDINGS = {
    "length": "The chain ran out of tokens before it was done: it must reason more briefly.",
    "context": "The chain filled the model's context: it must search and reason more briefly.",
    "turns": "The chain used up its turns without an answer: it must stop searching in time.",
    "loop": "The chain repeated one passage until it was stopped.",
}
_OUTCOMES = {
    "no_hits": "found nothing; it needs other words",
    "said_none": "brought pages of which the refinement kept nothing (`No helpful information found.`)",
    "no_heading": "brought pages, but the refinement lacked the heading `**Final Information**` or had nothing under "
    "it, so nothing of it reached the chain",
}


@dataclass(frozen=True)
class Refinement:
    """One call of Reason-in-Documents as a trace holds it.

    Attributes:
        query: The search query.
        document: The pages; the trace keeps their beginning.
        information: What the chain was given of them.
    """

    query: str
    document: str
    information: str


def refinements(trace: Iterable[Any] | None) -> list[Refinement]:
    """Return the refinements in a DSPy trace.

    Args:
        trace: (predictor, inputs, outputs) triples, or None.

    Returns:
        One for each entry of Reason-in-Documents, in order.
    """
    found = []
    for _, inputs, outputs in trace or ():
        if "document" in inputs and "search_query" in inputs:
            information = str(_field(outputs, "final_information", ""))
            found.append(Refinement(str(inputs["search_query"]), str(inputs["document"]), information))
    return found


def chain_feedback(prediction: Any, method: str) -> list[str]:
    """Say what went wrong in a chain, apart from its answer.

    Args:
        prediction: A program's prediction.
        method: The method.

    Returns:
        Sentences: how it ended, whether it searched, which queries were malformed, repeated, too many, failed or
        brought nothing, and whether a page held the benchmark's own question. None for a chain without fault.
    """
    events: Sequence[Mapping[str, Any]] = _field(prediction, "events", None) or ()
    searches: Sequence[Mapping[str, Any]] = _field(prediction, "searches", None) or ()
    said = [_ENDINGS.get(str(_field(prediction, "finish", "")), "")]
    failed = [e for e in events if e["type"] == "search" and e.get("error")]
    malformed = sum(e["type"] == "malformed" for e in events)
    if method in SEARCHING and not searches and not failed:
        said.append(f"It made no search. A query is written {BEGIN_SEARCH_QUERY} query {END_SEARCH_QUERY}.")
    if malformed:
        times = "once" if malformed == 1 else f"{malformed} times"
        said.append(
            f"The search markers were misused {times}: a query must stand between {BEGIN_SEARCH_QUERY} and "
            f"{END_SEARCH_QUERY}, and the model must not write results itself."
        )
    said.append(_listed("It searched again for {}, which it had searched before.", _of(events, "repeated", "query")))
    said.append(_listed("It searched for {} after the search limit was reached.", _of(events, "limit", "query")))
    said.append(
        _listed("It asked for {} after the limit of page fetches was reached.", _of(events, "fetch_limit", "urls"))
    )
    said.append(_listed("It asked for {}, which no search had returned.", _of(events, "unknown_urls", "urls")))
    said += [f"The search for `{short(e.get('query'))}` failed: {short(e['error'])}" for e in failed[:_MOST]]
    for outcome, words in _OUTCOMES.items():
        said.append(
            _listed(f"The search for {{}} {words}.", [s["query"] for s in searches if s.get("outcome") == outcome])
        )
    said.append(_listed("No page found for {} could be read.", [s["query"] for s in searches if _unreadable(s)]))
    said.append(_contamination(_field(prediction, "contamination", None) or ()))
    return [sentence for sentence in said if sentence]


def refinement_feedback(found: Sequence[Refinement], answers: Sequence[str]) -> list[str]:
    """Say whether refinements kept the right answer that stood in their pages.

    Args:
        found: The refinements.
        answers: The right answers of an open question; empty for other kinds, whose answers stand on no page.

    Returns:
        A sentence for each refinement whose pages held the right answer, lost or kept.
    """
    said = []
    for one in found:
        in_pages = _holds(one.document, answers)
        if in_pages and not _holds(one.information, answers):
            said.append(
                f"For `{short(one.query)}` the pages held the right answer `{in_pages}`, the distilled information did "
                "not: it must keep every fact that may answer the question."
            )
        elif in_pages:
            said.append(f"For `{short(one.query)}` the distilled information kept the right answer `{in_pages}`.")
    return said


def one_refinement(found: Sequence[Refinement], answers: Sequence[str], prediction: Any) -> list[str]:
    """Say how one refinement did, for the prompt of Reason-in-Documents.

    Args:
        found: The refinement, or none.
        answers: As for `refinement_feedback`.
        prediction: The whole prediction, which knows the outcome of each query.

    Returns:
        Sentences on that refinement alone.
    """
    said = refinement_feedback(found, answers)
    outcomes = {s.get("query"): s.get("outcome") for s in _field(prediction, "searches", None) or ()}
    for one in found:
        words = _OUTCOMES.get(str(outcomes.get(one.query)))
        if words:
            said.insert(0, f"The search for `{short(one.query)}` {words}.")
        elif answers and not _holds(one.document, answers):
            where = f"the first {TRACED_CHARS:,} characters of the pages" if _is_cut(one) else "the pages"
            said.append(f"For `{short(one.query)}` the right answer does not stand in {where}.")
    return said


def short(text: Any) -> str:
    """Return a text on one line, cut to 160 characters."""
    folded = " ".join(str(text or "").split())
    return folded if len(folded) <= _SHOWN else f"{folded[:_SHOWN]}…"


def _field(record: Any, name: str, default: Any) -> Any:
    return record.get(name, default) if isinstance(record, Mapping) else getattr(record, name, default)


def _of(events: Sequence[Mapping[str, Any]], kind: str, name: str) -> list[Any]:
    values: list[Any] = []
    for event in events:
        if event["type"] == kind:
            value = event.get(name)
            values += value if isinstance(value, list) else [value]
    return values


def _listed(sentence: str, values: Sequence[Any]) -> str:
    """Put values into a sentence; empty without any."""
    unique = list(dict.fromkeys(short(value) for value in values))
    if not unique:
        return ""
    more = f" and {len(unique) - _MOST} more" if len(unique) > _MOST else ""
    return sentence.replace("{}", ", ".join(f"`{value}`" for value in unique[:_MOST]) + more)


def _unreadable(search: Mapping[str, Any]) -> bool:
    pages = search.get("pages") or ()
    return bool(pages) and all(page.get("reason") for page in pages)


def _contamination(flags: Sequence[Mapping[str, Any]]) -> str:
    pages = list(dict.fromkeys(str(flag.get("url", "")) for flag in flags))
    return _listed("{} held the benchmark's own question: an answer taken from there proves nothing.", pages)


def _holds(text: str, answers: Sequence[str]) -> str:
    """Return the first answer of more than two characters that stands in a text as whole words, or empty."""
    padded = f" {normalise_official(text)} "
    return next((a for a in answers if len(n := normalise_official(a)) > 2 and f" {n} " in padded), "")


def _is_cut(one: Refinement) -> bool:
    return len(one.document) >= TRACED_CHARS
