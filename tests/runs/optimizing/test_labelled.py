from __future__ import annotations

from pathlib import Path

import pytest

from programs.options import make_options
from programs.registry import make_program
from retrieval.corpus.index import build_index
from retrieval.corpus.local import LocalSearch
from runs.benchmarks.question import Question
from runs.optimizing.labelled import sentence_with, worked_program
from signatures.errors import DataError
from signatures.markup import BEGIN_SEARCH_QUERY, END_SEARCH_QUERY
from signatures.profiles import profile_for
from tests.runs.world import write_lines

COMPACT, CHAT = profile_for("smollm2-135m"), profile_for("qwq-32b")
BRIDGE = Question(
    "b",
    "In which town was the inventor of the saxhorn born?",
    ("Dinant",),
    ("Saxhorn", "Adolphe Sax"),
    {"type": "bridge"},
)
COMPARISON = Question("c", "Which is older, the saxhorn or the tuba?", ("the tuba",), (), {"type": "comparison"})
UNFINDABLE = Question("u", "Who wrote Hamlet?", ("Shakespeare",), ("Hamlet",))


@pytest.fixture
def search(tmp_path: Path) -> LocalSearch:
    documents = [
        ("Saxhorn", "The saxhorn is a family of brass instruments. It was invented by Adolphe Sax."),
        ("Adolphe Sax", "Adolphe Sax was an instrument maker. He was born in Dinant in 1814."),
    ]
    rows = [{"id": title, "title": title, "text": text} for title, text in documents]
    build_index([write_lines(tmp_path / "corpus.jsonl", rows)], tmp_path / "index", "instruments")
    return LocalSearch(tmp_path / "index")


def test_a_bridge_becomes_a_chain_that_hands_on_what_leads_to_the_next_search(search: LocalSearch) -> None:
    program = make_program("search_o1", search, options=make_options(None, top_k=1))
    worked, used = worked_program(program, [BRIDGE, UNFINDABLE], CHAT)
    assert used == [BRIDGE]
    model_text = worked.reason.demos[0]["reasoning"]
    assert f"{BEGIN_SEARCH_QUERY}In which town was the inventor of the saxhorn born{END_SEARCH_QUERY}" in model_text
    assert f"The next question is about Adolphe Sax.\n\n{BEGIN_SEARCH_QUERY}Adolphe Sax{END_SEARCH_QUERY}" in model_text
    assert model_text.endswith("He was born in Dinant in 1814.\n\n\\boxed{Dinant}")
    assert [demo["search_query"] for demo in worked.refine.demos] == [BRIDGE.question.rstrip("?"), "Adolphe Sax"]
    assert program.reason.demos == []


def test_a_comparison_is_worked_without_a_search(search: LocalSearch) -> None:
    worked, _ = worked_program(make_program("search_o1", search), [COMPARISON], CHAT)
    assert worked.reason.demos[0]["reasoning"] == "\\boxed{the tuba}"


def test_standard_rag_is_shown_what_its_one_search_finds(search: LocalSearch) -> None:
    worked, _ = worked_program(
        make_program("standard_rag", search, options=make_options(None, top_k=1)), [BRIDGE], COMPACT
    )
    assert worked.reason.demos[0]["documents"].startswith("Saxhorn: The saxhorn is a family")
    assert worked.reason.demos[0]["reasoning"] == "\\boxed{Dinant}"
    assert worked.reason.signature.instructions == "Answer the question with the help of the documents."


def test_direct_needs_no_gold_documents() -> None:
    worked, used = worked_program(make_program("direct"), [UNFINDABLE], COMPACT)
    assert used == [UNFINDABLE]
    assert worked.reason.demos[0]["reasoning"] == "\\boxed{Shakespeare}"


def test_a_compact_profile_gets_short_instructions_and_others_keep_theirs(search: LocalSearch) -> None:
    program = make_program("search_o1", search)
    compact, chat = (worked_program(program, [BRIDGE], profile)[0] for profile in (COMPACT, CHAT))
    assert "{max_search_limit}" in compact.reason.signature.instructions
    assert len(compact.reason.signature.instructions) < 120
    assert chat.reason.signature.instructions == program.reason.signature.instructions


def test_questions_that_cannot_be_worked_out_are_an_error_that_says_what_they_need(search: LocalSearch) -> None:
    with pytest.raises(DataError, match=r"None of the 1 training questions .* gold_titles"):
        worked_program(make_program("search_o1", search), [UNFINDABLE], CHAT)


def test_the_sentence_that_holds_a_text_is_found_in_any_case() -> None:
    assert sentence_with("One is here. Two IS there.", "two is") == "Two IS there."
    assert sentence_with("One is here.", "three") == ""
