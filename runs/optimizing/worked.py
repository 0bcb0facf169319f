"""Questions worked out step by step, and how each method's demos are written from them.

A worked question does not say how a method puts it: the same steps become a chain with refined results for `search_o1`,
with records and full pages for `rag_agent`, documents before one text for `standard_rag`, and the thoughts alone for
`direct`. Every demo is a whole chain in the markers' own syntax.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from programs.documents import Record, render_documents, render_full_pages, render_pages, render_records
from programs.messages import information_block, page_block
from programs.steps import previous_reasoning
from signatures.markup import (
    BEGIN_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    BEGIN_URL,
    END_SEARCH_QUERY,
    END_SEARCH_RESULT,
    END_URL,
)
from signatures.templates import Method

Demo = dict[str, str]


@dataclass(frozen=True)
class WorkedStep:
    """One search of a worked question.

    Attributes:
        thought: What is thought before the search; may be empty.
        query: The query.
        records: The documents it found, best first.
        information: What Reason-in-Documents takes from them.
        read: Index of the document that the RAG agent reads in full.
    """

    thought: str
    query: str
    records: Sequence[Record]
    information: str
    read: int = 0


@dataclass(frozen=True)
class WorkedQuestion:
    """A question with the steps that lead to its answer.

    Attributes:
        question: The question.
        answer: What stands in the box, or the whole code block of a code problem.
        steps: Its searches; may be none.
        conclusion: What is thought after the last search; may be empty.
        inputs: Further inputs of a code problem.
    """

    question: str
    answer: str
    steps: Sequence[WorkedStep]
    conclusion: str = ""
    inputs: tuple[tuple[str, str], ...] = ()

    def ending(self) -> str:
        """Return how the chain ends: the conclusion, and the answer in its box or code block."""
        answer = self.answer if self.answer.startswith("```") else f"\\boxed{{{self.answer}}}"
        return f"{self.conclusion}\n\n{answer}" if self.conclusion else answer


def reasoning_demo(method: Method, worked: WorkedQuestion, *, compact: bool) -> Demo:
    """Write a worked question as a demo of a method's reasoning predictor.

    Args:
        method: The method.
        worked: The worked question.
        compact: Documents as short lines, as a compact profile shows them.

    Returns:
        `question`, `reasoning`, `answer`, further inputs, and `documents` for standard RAG.
    """
    demo = {"question": worked.question, **dict(worked.inputs), "answer": worked.answer}
    if method == "search_o1":
        return {**demo, "reasoning": "".join(_search_o1(step) for step in worked.steps) + worked.ending()}
    if method == "rag_agent":
        return {**demo, "reasoning": "".join(_rag_agent(step) for step in worked.steps) + worked.ending()}
    if method == "standard_rag":
        found = {record["url"]: record for step in worked.steps for record in step.records}
        records = [{**record, "id": rank} for rank, record in enumerate(found.values(), 1)]
        demo["documents"] = render_documents(records, compact=compact)
    return {**demo, "reasoning": worked.ending()}


def refine_demos(worked: WorkedQuestion, *, compact: bool) -> list[Demo]:
    """Write the searches of a worked question as demos of Reason-in-Documents.

    Args:
        worked: The worked question.
        compact: Documents as short lines, as a compact profile shows them.

    Returns:
        One demo a search: previous reasoning, query, documents, final information.
    """
    demos, chain = [], ""
    for step in worked.steps:
        demos.append(
            {
                "prev_reasoning": previous_reasoning(chain + _asking(step)),
                "search_query": step.query,
                "document": render_pages(step.records, compact=compact),
                "final_information": step.information,
            }
        )
        chain += _search_o1(step)
    return demos


def _asking(step: WorkedStep) -> str:
    thought = f"{step.thought}\n\n" if step.thought else ""
    return f"{thought}{BEGIN_SEARCH_QUERY}{step.query}{END_SEARCH_QUERY}"


def _search_o1(step: WorkedStep) -> str:
    return _asking(step) + information_block(step.information).text


def _rag_agent(step: WorkedStep) -> str:
    listed = render_records([{**record, "context": ""} for record in step.records])
    chosen = step.records[step.read]
    page = page_block(render_full_pages({chosen["url"]: chosen["context"]})).text
    return (
        f"{_asking(step)}\n{BEGIN_SEARCH_RESULT}\n{listed}\n{END_SEARCH_RESULT}\n{BEGIN_URL}{chosen['url']}{END_URL}"
        f"{page}"
    )
