"""Demos made from the labels of training questions: no model is asked (`optimize --start worked`).

A question that names its gold documents can be worked out by search alone: the question finds the first document, the
next one's title the next, and a sentence of the last one holds the answer. For a model too small to write one right
chain of its own this is the only source of demos.
"""

from __future__ import annotations

from collections.abc import Sequence

from programs.base import Program
from programs.documents import Record, add_contexts, make_records
from programs.operations import PageReply
from programs.options import ChainOptions
from retrieval.base import Reader, Search
from retrieval.sentences import sentence_spans
from retrieval.sync import read_sync, search_sync
from runs.benchmarks.question import Question
from runs.optimizing.worked import WorkedQuestion, WorkedStep, reasoning_demo, refine_demos
from signatures.errors import DataError
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_URL, END_SEARCH_QUERY, END_URL
from signatures.profiles import ModelProfile

COMPACT_INSTRUCTIONS = {
    "search_o1": f"Search with {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}, at most {{max_search_limit}} times.",
    "rag_agent": f"Search with {BEGIN_SEARCH_QUERY} and {END_SEARCH_QUERY}, at most {{max_search_limit}} times. "
    f"Read a page with {BEGIN_URL} and {END_URL}, at most {{max_url_fetch}} pages.",
    "standard_rag": "Answer the question with the help of the documents.",
}
"""Instructions short enough for a compact profile, which learns from its demos alone."""
COMPACT_REFINE_INSTRUCTIONS = "Copy the helpful information from the web pages."
_WITHOUT_SEARCH = ("comparison", "yes_no")


def worked_program(
    program: Program, questions: Sequence[Question], profile: ModelProfile
) -> tuple[Program, list[Question]]:
    """Return a copy of a program with demos made from labels.

    Args:
        program: One of the four methods; one that searches has its search backend and reader.
        questions: Training questions with `gold_titles`.
        profile: How the model wants to be asked; a compact one also gets short instructions.

    Returns:
        (the copy, the questions that became demos). A question is left out when a query does not find its gold document
        first.

    Raises:
        DataError: No question could be worked out: none names its gold documents, or searches find others.
        SearchError: A search failed.
    """
    twin: Program = program.deepcopy()
    library = Library(twin.search, twin.reader, twin.options) if twin.search is not None else None
    work = retrieve_once if twin.method == "standard_rag" else work_out
    found = [(q, worked) for q in questions if q.answers and (worked := work(q, library)) is not None]
    if not found:
        raise DataError(
            f"None of the {len(questions)} training questions could be worked out from its labels: each needs "
            "gold_titles, and the search must find those documents first. Use --start zero-shot."
        )
    compact = profile.compact
    twin.reason.demos = [reasoning_demo(twin.method, worked, compact=compact) for _, worked in found]
    refine = getattr(twin, "refine", None)
    if refine is not None:
        by_query = {demo["search_query"]: demo for _, worked in found for demo in refine_demos(worked, compact=compact)}
        refine.demos = list(by_query.values())
    if compact:
        if twin.method in COMPACT_INSTRUCTIONS:
            twin.reason.signature = twin.reason.signature.with_instructions(COMPACT_INSTRUCTIONS[twin.method])
        if refine is not None:
            refine.signature = refine.signature.with_instructions(COMPACT_REFINE_INSTRUCTIONS)
    return twin, [q for q, _ in found]


def work_out(question: Question, library: Library | None) -> WorkedQuestion | None:
    """Work a question out from its labels.

    The first query is the question as asked, each further one the title of the next gold document; before the answer
    comes the sentence that holds it. Comparisons and yes/no questions are worked without a search: two
    passages are more than a small model can hold against each other, and on the quickstart's validation split it did
    better without them.

    Args:
        question: A training question.
        library: What its documents are found in, or None for a method that does not search.

    Returns:
        The worked question; None when it names no gold documents, or a query does not find its document first.
    """
    if question.groups.get("type") in _WITHOUT_SEARCH or library is None:
        return WorkedQuestion(question.question, question.answers[0], ())
    if not question.gold_titles:
        return None
    titles = [title.split(" (")[0] for title in question.gold_titles[1:]]
    queries = [question.question.rstrip("?"), *titles]
    steps, thought = [], ""
    for number, (query, title) in enumerate(zip(queries, question.gold_titles, strict=True)):
        records = library.records(query)
        if not records or records[0]["title"] != title:
            return None
        passage = records[0]["context"]
        steps.append(WorkedStep(thought, query, records, passage))
        # A model this small goes on better from a short remark than from a sentence it has to copy first.
        thought = f"The next question is about {titles[number]}." if number < len(titles) else ""
    conclusion = sentence_with(steps[-1].records[0]["context"], question.answers[0])
    return WorkedQuestion(question.question, question.answers[0], steps, conclusion)


def retrieve_once(question: Question, library: Library | None) -> WorkedQuestion | None:
    """Work a question out as standard RAG does: what the question itself finds, and the sentence with the answer.

    Args:
        question: A training question.
        library: What its documents are found in.

    Returns:
        The worked question; None when nothing is found.
    """
    records = library.records(question.question) if library is not None else []
    if not records:
        return None
    passages = " ".join(record["context"] for record in records)
    conclusion = "" if question.groups.get("type") in _WITHOUT_SEARCH else sentence_with(passages, question.answers[0])
    step = WorkedStep("", question.question, records, passages)
    return WorkedQuestion(question.question, question.answers[0], (step,), conclusion)


def sentence_with(passage: str, needle: str) -> str:
    """Return the first sentence of a passage that holds a text, letter case aside; empty when none does."""
    folded = needle.casefold()
    sentences = (passage[start:end].strip() for start, end in sentence_spans(passage))
    return next((sentence for sentence in sentences if folded in sentence.casefold()), "")


class Library:
    """What a chain would see for a query, with a program's own search, reader and options."""

    def __init__(self, search: Search, reader: Reader | None, options: ChainOptions) -> None:
        self.search, self.reader, self.options = search, reader, options

    def records(self, query: str) -> list[Record]:
        """Return the records of a query, with their windows."""
        hits = search_sync(self.search, query, self.options.top_k)
        pages = [PageReply(hit.url, read_sync(self.reader, hit.url) if self.reader else None) for hit in hits]
        return add_contexts(
            make_records(hits),
            hits,
            pages,
            page_chars=self.options.page_chars,
            context_chars=self.options.context_chars,
        )
