"""Builds the programs compiled for the embedded model from the quickstart's training split.

`python -m runs.benchmarks.quickstart_programs [FOLDER]` writes one JSON file a method. The demos are labelled ones:
whole worked chains that search for what the gold documents hold and end in the gold answer, so no model is asked and no
test row is read.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from programs.documents import (
    add_contexts,
    make_records,
    render_compact,
    render_full_pages,
    render_records,
)
from programs.messages import information_block, page_block
from programs.operations import PageReply
from programs.options import COMPACT_OPTIONS, make_options
from programs.registry import make_program
from programs.saving import SHIPPED, save_program
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from retrieval.sync import read_sync, search_sync
from runs.benchmarks.question import Question, dataset_hash
from runs.benchmarks.quickstart_set import QUICKSTART
from runs.optimizing.question_text import question_key
from signatures.errors import DataError
from signatures.markup import (
    BEGIN_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    BEGIN_URL,
    END_SEARCH_QUERY,
    END_SEARCH_RESULT,
    END_URL,
)

PROFILE = "smollm2-135m"
INSTRUCTIONS = {
    "search_o1": f"Search with {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}, at most {{max_search_limit}} times.",
    "rag_agent": f"Search with {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}, at most {{max_search_limit}} times. "
    f"Read a page with {BEGIN_URL} and {END_URL}, at most {{max_url_fetch}} pages.",
    "standard_rag": "Answer the question with the help of the documents.",
}
REFINE_INSTRUCTIONS = "Copy the helpful information from the web pages."

Demo = dict[str, str]


class _Library:
    """The corpus with its index, by title."""

    def __init__(self, folder: Path) -> None:
        if QUICKSTART.corpus is None:
            raise DataError("The quickstart has no corpus; install the package again.")
        build_index([QUICKSTART.corpus], folder / "index", QUICKSTART.name)
        self.search = LocalSearch(folder / "index")
        self.reader = self.search.reader()

    def records(self, query: str) -> list[dict[str, Any]]:
        """Return the records a chain would see for a query."""
        hits = search_sync(self.search, query, COMPACT_OPTIONS["top_k"])
        pages = [PageReply(h.url, read_sync(self.reader, h.url)) for h in hits]
        return add_contexts(
            make_records(hits), hits, pages, page_chars=None, context_chars=COMPACT_OPTIONS["context_chars"]
        )


def worked(question: Question, library: _Library) -> list[tuple[str, dict[str, Any]]] | None:
    """Work a question out: what to search for, and the document each query finds.

    The first query is the question as asked; a bridge goes on with the title of its second document. Comparisons and
    yes/no questions are worked without a search: two passages are more than the embedded model can hold against each
    other, and on the validation split it did better without them.

    Args:
        question: A training question with gold titles.
        library: The corpus.

    Returns:
        (query, record) a step, none for a question worked without a search; None when a query does not find its gold
        document first.
    """
    if question.groups.get("type") in ("comparison", "yes_no"):
        return []
    queries = [question.question.rstrip("?"), *(title.split(" (")[0] for title in question.gold_titles[1:])]
    steps = []
    for query, title in zip(queries, question.gold_titles, strict=True):
        records = library.records(query)
        if not records or records[0]["title"] != title:
            return None
        steps.append((query, records[0]))
    return steps


def answer(question: Question) -> str:
    """Return how a demo ends: the gold answer in its box."""
    return f"\\boxed{{{question.answers[0]}}}"


def search_o1_demo(question: Question, steps: Sequence[tuple[str, dict[str, Any]]]) -> Demo:
    """Return a worked chain of `search_o1`."""
    parts = [
        f"{BEGIN_SEARCH_QUERY}{query}{END_SEARCH_QUERY}{information_block(record['context']).text}"
        for query, record in steps
    ]
    return {"question": question.question, "reasoning": "".join(parts) + answer(question)}


def rag_agent_demo(question: Question, steps: Sequence[tuple[str, dict[str, Any]]]) -> Demo:
    """Return a worked chain of `rag_agent`: each search is followed by reading its page."""
    parts = []
    for query, record in steps:
        listed = render_records([{**record, "context": ""}])
        page = page_block(render_full_pages({record["url"]: record["context"]})).text
        parts.append(
            f"{BEGIN_SEARCH_QUERY}{query}{END_SEARCH_QUERY}\n{BEGIN_SEARCH_RESULT}\n{listed}\n{END_SEARCH_RESULT}\n"
            f"{BEGIN_URL}{record['url']}{END_URL}{page}"
        )
    return {"question": question.question, "reasoning": "".join(parts) + answer(question)}


def standard_rag_demo(question: Question, library: _Library) -> Demo:
    """Return a worked example of `standard_rag` with the documents it would retrieve."""
    documents = render_compact(library.records(question.question))
    return {"question": question.question, "documents": documents, "reasoning": answer(question)}


def refine_demo(query: str, record: dict[str, Any]) -> Demo:
    """Return a worked example of Reason-in-Documents: the passage, and the same passage as what helps."""
    return {
        "prev_reasoning": f"Step 1: {BEGIN_SEARCH_QUERY}{query}{END_SEARCH_QUERY}",
        "search_query": query,
        "document": render_compact([record]),
        "final_information": record["context"],
    }


def build_programs(folder: Path) -> list[Path]:
    """Write the four compiled programs.

    Args:
        folder: Where to write them.

    Returns:
        The files.
    """
    train = list(QUICKSTART.load_split("train").questions)
    with tempfile.TemporaryDirectory() as scratch:
        library = _Library(Path(scratch))
        chains = [(q, steps) for q in train if (steps := worked(q, library)) is not None]
        demos: dict[str, list[Demo]] = {
            "direct": [{"question": q.question, "reasoning": answer(q)} for q, _ in chains],
            "standard_rag": [standard_rag_demo(q, library) for q, _ in chains],
            "rag_agent": [rag_agent_demo(q, steps) for q, steps in chains],
            "search_o1": [search_o1_demo(q, steps) for q, steps in chains],
        }
        refinements = {query: refine_demo(query, record) for _, steps in chains for query, record in steps}
        written = []
        for method, worked_demos in demos.items():
            program = make_program(method, library.search, options=make_options(None, **COMPACT_OPTIONS))
            program.reason.demos = worked_demos
            if method in INSTRUCTIONS:
                program.reason.signature = program.reason.signature.with_instructions(INSTRUCTIONS[method])
            if method == "search_o1":
                program.refine.demos = list(refinements.values())
                program.refine.signature = program.refine.signature.with_instructions(REFINE_INSTRUCTIONS)
            path = folder / f"{method}--{PROFILE}--open_qa.json"
            save_program(
                program,
                path,
                model=PROFILE,
                metadata={
                    "made": "labelled demos on the quickstart's training split "
                    "(runs/benchmarks/quickstart_programs.py)",
                    "data": "quickstart train",
                    "data_sha256": dataset_hash(train),
                    "questions": len(worked_demos),
                    "trained_on": [question_key(q.question) for q in train],
                },
            )
            written.append(path)
    return written


if __name__ == "__main__":
    for file in build_programs(Path(sys.argv[1]) if len(sys.argv) > 1 else SHIPPED):
        print(file.name)
