from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.lm_models import searching_model

END = "<|end_search_query|>"
FACTS = {"Arrival": "Denis Villeneuve", "Dune": "Frank Herbert"}


def test_the_searching_model_searches_once_and_boxes_what_the_result_says() -> None:
    say = searching_model(FACTS)
    task = 'Use <|begin_search_query|>.\n\nExample:\nQuestion: "Who made Dune?"\n\nQuestion:\nWho made Arrival?'
    prompt = f"<|im_start|>user\n{task}<|im_end|>\n<|im_start|>assistant\n"
    first = str(say(prompt, {}))
    query = first[: first.index(END) + len(END)]
    assert query.endswith(f"<|begin_search_query|>Arrival{END}")
    result = "\n\n<|begin_search_result|>{}<|end_search_result|>\n\n"
    assert say(prompt + query + result.format("By Denis Villeneuve."), {}) == (
        "The result answers it.\n\n\\boxed{Denis Villeneuve}"
    )
    assert "\\boxed{unknown}" in str(say(prompt + query + result.format("Frank Herbert"), {}))
    raw = f"Use <|begin_search_query|>.\n\nQuestion: Who made Dune?\nThought: {query}" + result.format("Frank Herbert")
    assert "\\boxed{Frank Herbert}" in str(say(raw, {}))


def test_the_searching_model_without_a_search_answers_from_documents_or_guesses() -> None:
    say = searching_model(FACTS)
    assert say("Question: Who made Dune?\n\nDocuments: none", {}) == "\\boxed{a guess}"
    documents = "<|im_start|>user\nDocuments: Frank Herbert.\n\nQuestion:\nDune?<|im_end|>\n<|im_start|>assistant\n"
    assert say(documents, {}) == "\\boxed{Frank Herbert}"


def test_the_searching_model_fetches_a_page_when_the_result_gives_only_an_address() -> None:
    say = searching_model(FACTS)
    head = (
        "<|im_start|>user\n<|begin_search_query|> <|begin_url|>\n\nQuestion:\nDune?<|im_end|>\n<|im_start|>assistant\n"
    )
    chain = head + '<|begin_search_result|>\n[{"url": "https://a.example/1"}]\n<|end_search_result|>\n'
    assert "<|begin_url|>https://a.example/1<|end_url|>" in str(say(chain, {}))
    page = chain + '\n<|begin_full_page|>\n{"https://a.example/1": "Frank Herbert"}\n<|end_full_page|>\n'
    assert "\\boxed{Frank Herbert}" in str(say(page, {}))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_searching_model_refines_with_the_project_template(language: str) -> None:
    template = Path(__file__).parents[2] / "signatures" / "templates" / language / "refine_docs.txt"
    say = searching_model(FACTS)
    text = template.read_text(encoding="utf-8").replace("{search_query}", "Who made Dune")
    good = text.replace("{document}", "Dune is by Frank Herbert.")
    assert str(say(good, {})).endswith("**Final Information**\n\nAbout Dune: Frank Herbert.")
    assert "No helpful information found." in str(say(text.replace("{document}", "Sand."), {}))
