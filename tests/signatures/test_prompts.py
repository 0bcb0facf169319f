"""Every prompt of method x task x language, against golden text and against the templates themselves.

`python -m tests.signatures.test_prompts` writes the golden file anew; read the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from signatures.adapter import ChainAdapter
from signatures.examples import EXAMPLE_KINDS, example_slots
from signatures.layout import Layout
from signatures.profiles import profile_for
from signatures.reasoning import reasoning_signature, refine_signature
from signatures.templates import (
    LANGUAGES,
    METHODS,
    TASKS,
    instructions_for,
    method_template,
    split_refine,
    task_template,
)

GOLDEN = Path(__file__).parent / "golden"
PROMPTS = GOLDEN / "prompts.json"
THINK = "You should think step by step to solve it. "
MODELS = {
    "reasoning": "QwQ-32B",
    "instruct": "Qwen2.5-7B-Instruct",
    "completion": "Qwen2.5-1.5B-Instruct",
    "compact": "SmolLM2-135M-Instruct",
}
TEMPLATE_HASHES = {
    "en/rag_agent.txt": "8be13a3a42d2b1d5452841c95cf8f71d737aa1cfd173085429d10f732aa2f1d7",
    "en/refine_docs.txt": "70e368722faf6a8a3e21759402510bbf7e66883e702aef4784ad514ece443c5d",
    "en/search_o1.txt": "c3aa3914fd255e59080d524a95e8c8f579a7aa52afd00368668f14e384ac1cad",
    "en/standard_rag.txt": "d2f2977a108b5c3b39a57e24fbeb43255b5195d7ba8b00bd18fb0c1c59f90586",
    "en/tasks.txt": "7cd029f0b41c71c4cbdcb8896b3a117d7b2ad48704372088797455a76ced8846",
    "zh/rag_agent.txt": "36f8bcf78394ced30c8c5e6a7dcd84061f17b248217be8a1c0ddfbbe1aa30bdc",
    "zh/refine_docs.txt": "7b2a30cd3cec7ca2bc41ebf470f5b334d634fe6221f43c559137341a433aa5c5",
    "zh/search_o1.txt": "8c8608a45bf0ebaab0aa9239968ea06fde259e08eaf79197dc347719212bbd75",
    "zh/standard_rag.txt": "563fa870618968e416f38f02b58378c2106b84bcba87f866cd4fc7dca3b08877",
    "zh/tasks.txt": "d96eab77e101d82bd64df49d52b5a0d6385a91a824e605299d2df870c9f29747",
}
INPUTS = {
    "question": "QUESTION {documents} \\boxed{x}?",
    "question_title": "TITLE",
    "starter_code": "def start(): ...",
    "documents": "**Document 1:**\nDOCUMENTS {question}\n\n",
}
REFINE_INPUTS = {
    "prev_reasoning": "Step 1: PREVIOUS {document}",
    "search_query": "QUERY",
    "document": '**Web Page 1:**\n{\n  "id": 1\n}\n',
}
DEMOS = [
    {
        "question": "DEMO QUESTION",
        "question_title": "DEMO TITLE",
        "documents": "DEMO DOCUMENTS",
        "reasoning": "DEMO CHAIN",
    },
    {"question": "INCOMPLETE", "answer": "no chain"},
]
REFINE_DEMOS = [
    {
        "prev_reasoning": "DEMO STEPS",
        "search_query": "DEMO QUERY",
        "document": "DEMO PAGES",
        "final_information": "DEMO FACT",
    },
    {"search_query": "INCOMPLETE", "final_information": "no pages"},
]


def messages(
    method: str, task: str, language: str, model: str, demos: bool = False, **changes: Any
) -> list[dict[str, str]]:
    adapter = ChainAdapter(Layout(method, task, language, **changes), profile_for(MODELS[model]))  # type: ignore[arg-type]
    if method == "refine_docs":
        return adapter.format(refine_signature(language), REFINE_DEMOS if demos else [], REFINE_INPUTS)  # type: ignore[arg-type]
    signature = reasoning_signature(method, task, language)  # type: ignore[arg-type]
    return adapter.format(signature, DEMOS if demos else [], INPUTS)


def cases() -> list[tuple[str, str, str]]:
    reasoning = list(itertools.product(METHODS, TASKS, LANGUAGES))
    return [*reasoning, *(("refine_docs", "open_qa", language) for language in LANGUAGES)]


def rendered() -> dict[str, list[dict[str, str]]]:
    with_demos = ("completion", "compact")
    return {
        f"{method}/{task}/{language}/{model}": messages(method, task, language, model, demos=model in with_demos)
        for (method, task, language), model in itertools.product(cases(), MODELS)
    }


def template_copy(language: str, name: str) -> str:
    return (GOLDEN / "templates" / language / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def task_copy(language: str, task: str) -> str:
    after = template_copy(language, "tasks").split(f"[{task}]\n", 1)[1]
    return re.split(r"\n\n\[\w+\]\n", after)[0]


def filled(template: str, language: str, kind: str, think: str) -> str:
    """Put plain values into the slots, one after another: none of them holds a brace."""
    values = {
        "think": think,
        "max_search_limit": "7",
        "max_url_fetch": "3",
        "question": "plain question",
        "question_title": "plain title",
        "documents": "plain documents",
        "prev_reasoning": "plain steps",
        "search_query": "plain query",
        "document": "plain pages",
        **example_slots("open_qa", language, kind),  # type: ignore[arg-type]
    }
    for name, value in values.items():
        assert "{" not in value
        template = template.replace("{" + name + "}", value)
    return template


def test_every_prompt_is_what_it_was() -> None:
    golden = json.loads(PROMPTS.read_text(encoding="utf-8"))
    now = rendered()
    assert sorted(now) == sorted(golden)
    assert [name for name in golden if now[name] != golden[name]] == []


@pytest.mark.parametrize("name", TEMPLATE_HASHES)
def test_the_templates_are_the_papers_byte_for_byte(name) -> None:
    for root in (Path(__file__).parents[2] / "signatures" / "templates", GOLDEN / "templates"):
        assert hashlib.sha256((root / name).read_bytes()).hexdigest() == TEMPLATE_HASHES[name]


@pytest.mark.parametrize("model", ["reasoning", "instruct"])
@pytest.mark.parametrize(("method", "task", "language"), cases())
def test_nothing_but_slots_differs_from_the_templates(method, task, language, model) -> None:
    inputs = {
        "question": "plain question",
        "question_title": "plain title",
        "documents": "plain documents",
        "prev_reasoning": "plain steps",
        "search_query": "plain query",
        "document": "plain pages",
    }
    layout = Layout(method, task, language, max_search_limit=7, max_url_fetch=3)
    profile = profile_for(MODELS[model])
    parts = [] if method == "direct" else [template_copy(language, method)]
    if method == "refine_docs":
        signature = refine_signature(language)
    else:
        signature = reasoning_signature(method, task, language)
        parts.append(task_copy(language, task))
    kind = "multi_hop" if task == "open_qa" else task
    expected = filled("\n\n".join(parts), language, kind, "" if model == "reasoning" else THINK)
    (message,) = ChainAdapter(layout, profile).format(signature, [], inputs)
    assert message == {"role": "user", "content": expected}
    assert not re.search(r"\{[a-z_]+\}", expected)


@pytest.mark.parametrize(("method", "task", "language"), cases())
def test_the_think_sentence_is_for_models_that_do_not_reason_by_themselves(method, task, language) -> None:
    expected = {"reasoning": 0, "instruct": 1, "completion": 1}
    for model, count in expected.items():
        text = "".join(m["content"] for m in messages(method, task, language, model))
        assert text.count(THINK) == (0 if method == "refine_docs" else count)


def test_there_is_never_a_system_message() -> None:
    assert {m["role"] for prompt in rendered().values() for m in prompt} == {"user"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("method", ["search_o1", "rag_agent"])
@pytest.mark.parametrize("kind", [None, *EXAMPLE_KINDS])
def test_the_example_slots_are_filled_by_our_example_of_the_task_or_by_the_one_chosen(method, language, kind) -> None:
    for task in TASKS:
        (message,) = messages(method, task, language, "reasoning", example=kind)
        shown = example_slots(task, language, kind)
        wanted = [value for name, value in shown.items() if name != "example_url" or method == "rag_agent"]
        assert all(value in message["content"] for value in wanted)


@pytest.mark.parametrize("language", LANGUAGES)
def test_examples_differ_by_kind_and_language(language) -> None:
    questions = [example_slots("open_qa", language, kind)["example_question"] for kind in EXAMPLE_KINDS]
    assert len(set(questions)) == len(EXAMPLE_KINDS)
    chinese = [bool(re.search("[\u4e00-\u9fff]", question)) for question in questions]
    assert chinese == [language == "zh"] * len(EXAMPLE_KINDS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_instructions_and_input_block_together_are_the_refine_template(language) -> None:
    assert "\n\n".join(split_refine(language)) == method_template("refine_docs", language)
    assert "{" not in instructions_for("refine_docs", language)


@pytest.mark.parametrize("method", [m for m in METHODS if m != "direct"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_signatures_instructions_are_the_method_template(method, language) -> None:
    assert reasoning_signature(method, "open_qa", language).instructions == template_copy(language, method)


def test_task_templates_have_no_line_break_at_their_ends() -> None:
    for task, language in itertools.product(TASKS, LANGUAGES):
        assert task_template(task, language) == task_copy(language, task).strip("\n")


if __name__ == "__main__":
    PROMPTS.write_text(json.dumps(rendered(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
