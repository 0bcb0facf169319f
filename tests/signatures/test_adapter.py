"""The adapter: demos, the chain as a prefix, edited instructions, and questions full of braces."""

from __future__ import annotations

import dspy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signatures.adapter import CHAIN, ChainAdapter
from signatures.layout import Layout
from signatures.profiles import profile_for
from signatures.reasoning import reasoning_signature, refine_signature
from signatures.templates import METHODS, fill

DEMO = {
    "question": "DEMO QUESTION",
    "reasoning": "DEMO CHAIN \\boxed{demo}",
    "answer": "demo",
    "documents": "DEMO DOCUMENTS",
}
REFINE_DEMO = {
    "prev_reasoning": "DEMO STEPS",
    "search_query": "DEMO QUERY",
    "document": "DEMO PAGES",
    "final_information": "DEMO FACT",
}
CHAT, RAW = profile_for("QwQ-32B"), profile_for("Qwen2.5-1.5B-Instruct")


def adapter(method: str = "search_o1", profile=CHAT, **layout) -> ChainAdapter:
    return ChainAdapter(Layout(method, **layout), profile)  # type: ignore[arg-type]


def format_question(method: str = "search_o1", profile=CHAT, demos=(), instructions: str | None = None, **inputs):
    signature = reasoning_signature(method)  # type: ignore[arg-type]
    if instructions is not None:
        signature = signature.with_instructions(instructions)
    return adapter(method, profile).format(signature, list(demos), {"question": "Who?", "documents": "DOCS", **inputs})


def test_demos_of_a_chat_model_are_earlier_turns() -> None:
    messages = format_question(demos=[DEMO])
    assert [m["role"] for m in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"] == format_question(question="DEMO QUESTION")[0]["content"]
    assert messages[1]["content"] == "DEMO CHAIN \\boxed{demo}"


def test_demos_of_a_raw_completion_stand_inline_in_the_form_of_the_question() -> None:
    (message,) = format_question(profile=RAW, demos=[DEMO])
    assert message["content"].endswith(
        "\n\nQuestion:\nDEMO QUESTION\nReasoning:\nDEMO CHAIN \\boxed{demo}\n\nQuestion:\nWho?\nReasoning:\n"
    )


@pytest.mark.parametrize("profile", [CHAT, RAW])
@pytest.mark.parametrize(
    "demo",
    [{"question": "Q"}, {"question": "Q", "answer": "a"}, {"reasoning": "r"}, {"question": "Q", "reasoning": ""}],
)
def test_incomplete_demos_are_left_out(profile, demo) -> None:
    assert format_question(profile=profile, demos=[demo]) == format_question(profile=profile)


@pytest.mark.parametrize("profile", [CHAT, RAW], ids=["chat", "raw"])
def test_a_demo_of_the_very_question_is_left_out(profile) -> None:
    alone = format_question(profile=profile, question=DEMO["question"])
    assert format_question(profile=profile, demos=[DEMO], question=DEMO["question"]) == alone


def test_demos_may_be_dspy_examples() -> None:
    assert format_question(demos=[dspy.Example(**DEMO)]) == format_question(demos=[DEMO])


@pytest.mark.parametrize("missing", REFINE_DEMO)
def test_refinement_demos_need_all_their_fields(missing) -> None:
    inputs = {"prev_reasoning": "S", "search_query": "Q", "document": "D"}
    full = adapter("refine_docs").format(refine_signature(), [REFINE_DEMO], inputs)
    assert [m["role"] for m in full] == ["user", "assistant", "user"]
    assert full[1]["content"] == "**Final Information**\n\nDEMO FACT"
    lacking = {name: value for name, value in REFINE_DEMO.items() if name != missing}
    assert len(adapter("refine_docs").format(refine_signature(), [lacking], inputs)) == 1


def test_a_refinement_demo_with_its_heading_gets_no_second_one() -> None:
    demo = {**REFINE_DEMO, "final_information": "**Final Information**\n\nFACT"}
    assert adapter("refine_docs").demo_output(demo) == "**Final Information**\n\nFACT"


def test_the_chain_is_the_assistant_message_to_continue() -> None:
    assert format_question(**{CHAIN: "I think"})[-1] == {"role": "assistant", "content": "I think"}


def test_the_chain_is_a_user_turn_where_a_provider_cannot_continue() -> None:
    messages = format_question(profile=CHAT.override(continuation="user"), **{CHAIN: "I think"})
    assert [m["role"] for m in messages] == ["user", "user"]
    assert messages[-1]["content"].endswith("\n\nI think")


def test_a_raw_completion_stops_where_another_example_would_begin() -> None:
    assert adapter("search_o1", RAW).stop() == ("\nQuestion:",)
    assert adapter("standard_rag", RAW).stop() == ("\nDocuments:",)
    assert adapter("search_o1", RAW, language="zh").stop() == ("\n问题:",)
    assert adapter("search_o1", RAW, task="code").stop() == ("\nProblem Title:",)
    headings = ("Previous Reasoning Steps", "Current Search Query", "Searched Web Pages")
    assert adapter("refine_docs", RAW).stop() == tuple(f"\n- **{heading}:**" for heading in headings)
    assert adapter("search_o1", CHAT).stop() == ()


@pytest.mark.parametrize("profile", [CHAT, RAW])
@pytest.mark.parametrize("method", METHODS)
def test_edited_instructions_stand_before_the_task_and_cannot_remove_it(method, profile) -> None:
    text = format_question(method, profile, instructions="Be brief and search well.")[-1]["content"]
    assert text.startswith("Be brief and search well.\n\n")
    assert text.count("\\boxed{YOUR_ANSWER}") == 1
    assert "Who?" in text


@pytest.mark.parametrize("profile", [CHAT, RAW])
def test_edited_instructions_keep_their_slots(profile) -> None:
    text = format_question(profile=profile, instructions="At most {max_search_limit} searches.")[-1]["content"]
    assert text.startswith("At most 5 searches.")


@pytest.mark.parametrize("profile", [CHAT, RAW])
@pytest.mark.parametrize("instructions", ["Use them.", "Use them.\n\nDocuments:\n{documents}\n\nWell."])
def test_documents_reach_the_model_once_also_when_edited_instructions_drop_them(profile, instructions) -> None:
    text = format_question("standard_rag", profile, instructions=instructions)[-1]["content"]
    assert text.count("DOCS") == 1


def test_edited_refinement_instructions_keep_the_input_block() -> None:
    inputs = {"prev_reasoning": "STEPS", "search_query": "QUERY", "document": "PAGES"}
    for profile in (CHAT, RAW):
        signature = refine_signature().with_instructions("Be brief.")
        (message,) = adapter("refine_docs", profile).format(signature, [], inputs)
        assert message["content"].startswith("Be brief.\n\n")
        assert all(value in message["content"] for value in inputs.values())


SLOTS = st.sampled_from(
    ["{question}", "{documents}", "{think}", "{", "}", "{}", "\\boxed{x}", "{max_search_limit}", "a"]
)


@given(st.lists(SLOTS, min_size=1, max_size=8).map(" ".join))
def test_braces_in_a_question_are_never_taken_for_slots(question) -> None:
    for profile in (CHAT, RAW):
        assert f"Question:\n{question}" in format_question(profile=profile, question=question)[-1]["content"]
        assert f"Question: {question}\n" in format_question("standard_rag", CHAT, question=question)[-1]["content"]


def test_a_slot_value_that_spells_a_slot_is_left_alone() -> None:
    assert fill(
        "{question} {documents} {unknown} \\boxed{YOUR_ANSWER}", {"question": "{documents}", "documents": "D"}
    ) == ("{documents} D {unknown} \\boxed{YOUR_ANSWER}")


def test_a_code_problem_has_its_title_and_shows_its_starter_code_unless_told_otherwise() -> None:
    inputs = {"question": "Sum.", "question_title": "TITLE", "starter_code": "def f(): ..."}
    signature = reasoning_signature("search_o1", "code")
    for profile in (CHAT, RAW):
        (shown,) = adapter(profile=profile, task="code").format(signature, [], inputs)
        assert (
            "Problem Title: TITLE\n\nProblem Statement:\nSum.\n\nStarter code:\n```python\ndef f(): ...\n```"
            in shown["content"]
        )
        (hidden,) = adapter(profile=profile, task="code", show_starter_code=False).format(signature, [], inputs)
        assert "def f" not in hidden["content"]


def test_a_code_demo_without_a_title_leaves_no_slot_behind() -> None:
    signature = reasoning_signature("search_o1", "code")
    messages = adapter(task="code").format(signature, [DEMO], {"question": "Sum.", "question_title": "T"})
    assert "{question_title}" not in messages[0]["content"]


def test_parse_puts_a_completion_into_the_first_output() -> None:
    assert adapter().parse(reasoning_signature("search_o1"), "text") == {"reasoning": "text", "answer": ""}
