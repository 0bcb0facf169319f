"""Documents as prompts show them, byte by byte, and what Standard RAG and Reason-in-Documents are asked."""

from __future__ import annotations

import json

import pytest

from programs import StandardRAG
from programs.documents import render_documents, render_pages, render_records
from retrieval.base import Hit
from tests.programs.world import (
    ANSWER,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    ask_async,
    events,
    query,
    refine_calls,
    say,
    search_o1,
)

HITS = [
    Hit("Été <b>1</b>", "https://a.example/1", 'Arrival <b>is</b> a "film"', "2024-01-01", "A"),
    Hit("Two", "https://a.example/2", "Villeneuve directs"),
]
PAGES = {
    "https://a.example/1": 'Before. Arrival is a "film" by [Denis](https://x.example). After.',
}
RECORD_1 = """{
  "id": 1,
  "title": "Été <b>1</b>",
  "url": "https://a.example/1",
  "site_name": "A",
  "date": "2024-01-01",
  "snippet": "Arrival is a \\"film\\"",
  "context": "Before. Arrival is a \\"film\\" by [Denis]. After."
}"""
RECORD_2 = """{
  "id": 2,
  "title": "Two",
  "url": "https://a.example/2",
  "site_name": "",
  "date": "",
  "snippet": "Villeneuve directs",
  "context": ""
}"""
DOCUMENTS = (
    '**Document 1:**\n**Title:** Été <b>1</b>\n**URL:** https://a.example/1\n**Snippet:** Arrival is a "film"\n'
    '**Content:** Before. Arrival is a "film" by [Denis]. After.\n\n'
    "**Document 2:**\n**Title:** Two\n**URL:** https://a.example/2\n**Snippet:** Villeneuve directs\n**Content:** \n\n"
)


def world() -> tuple[MemorySearch, MemoryReader]:
    return MemorySearch(HITS), MemoryReader(PAGES)


def test_reason_in_documents_sees_web_pages_as_indented_json(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    search, reader = world()
    ask(server, search_o1(search=search, reader=reader))
    (call,) = refine_calls(server)
    assert (
        f"- **Searched Web Pages:**\n**Web Page 1:**\n{RECORD_1}\n**Web Page 2:**\n{RECORD_2}\n\n\nNow you should"
    ) in call.prompt
    assert f"- **Previous Reasoning Steps:**\nStep 1: {query('a')}\n\n- **Current Search Query:**\na\n" in call.prompt
    assert call.prompt.rstrip().endswith("<|im_start|>assistant")


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_standard_rag_sees_documents_with_their_contents(serve, asker) -> None:
    server = serve(say(ANSWER))
    prediction = asker(server, StandardRAG(*world()))
    (call,) = server.calls
    assert f"Question: {QUESTION}\n\nDocuments:\n{DOCUMENTS}\n\nGuidelines:" in call.prompt
    assert call.prompt.count(QUESTION) == 2
    assert call.body.get("stop") is None
    assert prediction.reasoning == ANSWER
    (record,) = prediction.searches
    assert (record["query"], record["outcome"]) == (QUESTION, "found")
    assert [event["type"] for event in events(prediction, "search") + events(prediction, "generate")] == [
        "search",
        "generate",
    ]


def test_standard_rag_asks_once_for_ten_pages(serve) -> None:
    hits = [Hit(f"T{i}", f"https://a.example/{i}") for i in range(20)]
    search = MemorySearch(hits)
    server = serve(say(ANSWER))
    ask(server, StandardRAG(search, MemoryReader({})))
    assert search.queries == [QUESTION]
    assert "**Document 10:**" in server.calls[0].prompt
    assert "**Document 11:**" not in server.calls[0].prompt


def test_standard_rag_searches_a_code_task_with_its_first_500_characters(serve) -> None:
    search = MemorySearch([])
    ask(serve(say("```python\nprint(1)\n```")), StandardRAG(search, MemoryReader(), task="code"), question="x" * 900)
    assert search.queries == ["x" * 500]


@pytest.mark.parametrize("task", ["open_qa", "math", "multiple_choice"])
def test_standard_rag_searches_every_other_task_with_the_whole_question(serve, task) -> None:
    search = MemorySearch([])
    ask(serve(say(ANSWER)), StandardRAG(search, MemoryReader(), task=task), question="x" * 900)
    assert search.queries == ["x" * 900]


def test_standard_rag_without_a_hit_reasons_without_documents(serve) -> None:
    server = serve(say(ANSWER))
    prediction = ask(server, StandardRAG(MemorySearch([]), MemoryReader()))
    assert "Documents:\n\n\nGuidelines:" in server.calls[0].prompt
    assert prediction.searches[0]["outcome"] == "no_hits"


def test_renderings_of_records() -> None:
    records = [json.loads(RECORD_1), json.loads(RECORD_2)]
    assert render_pages(records) == f"**Web Page 1:**\n{RECORD_1}\n**Web Page 2:**\n{RECORD_2}\n"
    assert render_documents(records) == DOCUMENTS
    assert render_records(records) == json.dumps(records, ensure_ascii=False, indent=2)
    assert (render_pages([]), render_documents([]), render_records([])) == ("", "", "[]")
