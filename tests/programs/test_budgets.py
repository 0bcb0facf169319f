"""Budgets by turn, chain and context: every prompt fits before it is sent, and every cut is an event."""

from __future__ import annotations

import random

import pytest

from programs import DirectReasoning, RAGAgent, StandardRAG
from programs.documents import add_contexts, make_records, render_pages
from programs.operations import PageReply
from retrieval.base import Hit, Page
from tests.programs.world import (
    ANSWER,
    BQ,
    BU,
    EQ,
    ER,
    EU,
    QUESTION,
    MemoryReader,
    MemorySearch,
    ask,
    ask_async,
    events,
    no_refusals,
    query,
    reasoning_calls,
    refine_calls,
    say,
    search_o1,
    words,
)

URLS = [f"https://a.example/{i}" for i in range(10)]


def big_world(page_words: int = 5_000, snippet_words: int = 20) -> dict:
    hits = [Hit(f"Page {i}", url, words(snippet_words, i)) for i, url in enumerate(URLS)]
    return {
        "search": MemorySearch(hits),
        "reader": MemoryReader({url: words(page_words, i) for i, url in enumerate(URLS)}),
    }


def test_a_turn_that_fills_its_budget_ends_the_chain_with_length(serve) -> None:
    server = serve(say("word " * 500))
    prediction = ask(server, search_o1(turn_tokens=100))
    assert prediction.finish == "length"
    assert server.calls[0].body["max_tokens"] == 100
    assert prediction.reasoning == "word " * 99 + "word"


def test_a_turn_never_gets_more_than_its_budget(serve) -> None:
    server = serve(say(query("a"), ANSWER))
    ask(server, search_o1(turn_tokens=300))
    assert [call.body["max_tokens"] for call in server.calls] == [300, 300, 300]


def test_the_chain_budget_counts_generated_tokens_only(serve) -> None:
    server = serve(say(query("a"), f"{words(50)} {query('b')}", words(500)))
    prediction = ask(server, search_o1(chain_tokens=400, turn_tokens=350))
    calls = reasoning_calls(server)
    spent = 0
    for call in calls:
        assert call.body["max_tokens"] == min(350, 400 - spent)
        spent += len(call.output.token_ids)
    assert (spent, len(calls), prediction.finish) == (400, 3, "length")


def test_no_turn_is_begun_with_less_than_the_smallest_turn_left(serve) -> None:
    server = serve(say("w " * 240 + query("a"), ANSWER))
    prediction = ask(server, search_o1(chain_tokens=300, turn_tokens=300, min_turn_tokens=64))
    assert len(reasoning_calls(server)) == 1
    assert prediction.finish == "length"


def test_a_chain_budget_below_the_smallest_turn_still_gives_one_turn(serve) -> None:
    server = serve(say("w " * 100))
    prediction = ask(server, search_o1(chain_tokens=10))
    assert (len(server.calls), prediction.finish) == (1, "length")


def test_the_turn_limit_ends_the_chain(serve) -> None:
    server = serve(say(query("a"), query("b"), query("c")))
    prediction = ask(server, search_o1(max_turns=2))
    assert (prediction.finish, prediction.turns) == ("turns", 2)
    assert prediction.reasoning.endswith(ER)


@pytest.mark.parametrize(("task", "turns"), [("open_qa", 15), ("math", 10)])
def test_open_questions_have_15_turns_and_other_tasks_10(serve, task, turns) -> None:
    prediction = ask(
        serve(lambda prompt, body: f"x{EQ}y{len(prompt)}" if "x" not in prompt else query(str(len(prompt)))),
        search_o1(task=task, max_searches=1, search=MemorySearch([])),
    )
    assert (prediction.finish, prediction.turns) == ("turns", turns)


def test_a_chain_that_fills_the_context_ends_with_context(serve) -> None:
    server = serve(say(words(5_000)), max_model_len=1_000, strict_budget=True)
    prediction = ask(server, search_o1(turn_tokens=8_192))
    assert prediction.finish == "context"
    (call,) = server.calls
    assert call.body["max_tokens"] == 1_000 - len(call.prompt_ids)


def test_a_question_that_does_not_fit_ends_with_context_and_no_call(serve) -> None:
    server = serve(say(ANSWER), max_model_len=1_000, strict_budget=True)
    for program in (DirectReasoning(), search_o1(), StandardRAG(MemorySearch(), MemoryReader())):
        prediction = ask(server, program, question=words(3_000))
        assert (prediction.finish, prediction.reasoning, prediction.answer) == ("context", "", "")
    assert server.calls == []


def test_windows_are_shortened_evenly_before_a_rank_is_dropped(serve) -> None:
    server = serve(say(query("a"), ANSWER), max_model_len=8_000, strict_budget=True)
    prediction = ask(server, search_o1(**big_world(), refine_tokens=512))
    (cut,) = events(prediction, "cut")
    assert cut["what"] == "windows"
    assert cut["after"] < cut["before"]
    prompt = refine_calls(server)[0].prompt
    assert all(f"**Web Page {rank}:**" in prompt for rank in range(1, 11))
    windows = [part.split('"context": "')[1].split('"')[0] for part in prompt.split("**Web Page ")[1:]]
    assert max(map(len, windows)) - min(map(len, windows)) < 20
    assert prediction.finish == "answered"


def test_ranks_are_dropped_from_the_lowest_before_reasoning_is_shortened(serve) -> None:
    server = serve(say(f"My plan: {words(60)}. {query('a')}", ANSWER), max_model_len=2_200, strict_budget=True)
    prediction = ask(server, search_o1(**big_world(), refine_tokens=400))
    assert [cut["what"] for cut in events(prediction, "cut")][:2] == ["windows", "ranks"]
    prompt = refine_calls(server)[0].prompt
    assert "**Web Page 1:**" in prompt
    assert "**Web Page 10:**" not in prompt
    assert f"Step 1: My plan: {words(60)}" in prompt


def test_reasoning_is_shortened_last_and_keeps_its_end(serve) -> None:
    thoughts = f"FIRST {words(900)} {query('the last query')}"
    server = serve(say(thoughts, ANSWER), max_model_len=3_000, strict_budget=True)
    prediction = ask(server, search_o1(**big_world(), refine_tokens=1_000))
    assert "reasoning" in [cut["what"] for cut in events(prediction, "cut")]
    prompt = refine_calls(server)[0].prompt
    assert "FIRST" not in prompt
    assert query("the last query") in prompt
    assert prediction.finish in ("answered", "context")


def test_a_huge_snippet_is_cut_when_nothing_else_is_left_to_cut(serve) -> None:
    server = serve(say(query("a"), ANSWER), max_model_len=2_500, strict_budget=True)
    prediction = ask(server, search_o1(**big_world(snippet_words=5_000), refine_tokens=400))
    assert prediction.finish == "answered"
    assert len(refine_calls(server)) == 1


def test_the_refine_call_leaves_its_reserve_free(serve) -> None:
    server = serve(say(query("a"), ANSWER), max_model_len=8_000, strict_budget=True)
    ask(server, search_o1(**big_world(), refine_tokens=2_000))
    (call,) = refine_calls(server)
    assert len(call.prompt_ids) <= 6_000
    assert 2_000 <= call.body["max_tokens"] <= 8_000 - len(call.prompt_ids)


def test_an_injected_block_that_would_leave_too_little_is_shortened(serve) -> None:
    server = serve(
        say(f"{words(200)} {query('a')}", ANSWER, refined="**Final Information**\n\n" + words(1_300)),
        max_model_len=3_000,
        strict_budget=True,
    )
    prediction = ask(server, search_o1(min_turn_tokens=200, refine_tokens=1_400, turn_tokens=8_000))
    (cut,) = [event for event in events(prediction, "cut") if event["what"] == "injected"]
    assert cut["after"] < cut["before"]
    assert f" ...{ER}" in prediction.reasoning
    assert reasoning_calls(server)[1].body["max_tokens"] >= 200
    assert prediction.finish == "answered"


def test_standard_rag_documents_are_fitted(serve) -> None:
    world = big_world()
    server = serve(say(ANSWER), max_model_len=4_000, strict_budget=True)
    prediction = ask(server, StandardRAG(world["search"], world["reader"]))
    assert prediction.finish == "answered"
    assert "windows" in [cut["what"] for cut in events(prediction, "cut")]
    assert server.calls[0].body["max_tokens"] >= 1_000
    no_refusals(server)


@pytest.mark.parametrize("seed", range(24))
def test_no_prompt_is_ever_refused_for_its_length(serve, seed) -> None:
    rng = random.Random(seed)
    length = rng.choice((700, 1_000, 1_500, 2_000, 3_000, 5_000, 9_000))

    def model(prompt: str, body: dict) -> str:
        if "Searched Web Pages" in prompt:
            return "**Final Information**\n\n" + words(rng.choice((5, 300, 3_000)), rng.random())
        kind = rng.random()
        if kind < 0.1:
            return ANSWER
        if kind < 0.2:
            return words(rng.choice((10, 2_000)))
        if kind < 0.3:
            return f"{BQ}{EQ}"
        if kind < 0.5:
            return f"{BU}{rng.choice(URLS)}, {rng.choice(URLS)}{EU}"
        return f"{words(rng.choice((3, 100)))}\n{query(words(rng.choice((1, 5, 400)), rng.random()))}"

    server = serve(
        model,
        max_model_len=length,
        strict_budget=True,
        bos=rng.random() < 0.5,
        ignore_stop=rng.random() < 0.2,
        no_token_ids=rng.random() < 0.2,
    )
    world = big_world(rng.choice((10, 5_000)), rng.choice((5, 2_000)))
    kind = rng.choice(("search_o1", "search_o1", "rag_agent", "standard_rag"))
    options = {
        "refine_tokens": rng.choice((100, 1_024)),
        "turn_tokens": rng.choice((200, 8_192)),
        "min_turn_tokens": rng.choice((1, 64, 300)),
        "force_answer": rng.random() < 0.5,
    }
    classes = {"rag_agent": RAGAgent, "standard_rag": StandardRAG}
    program = (
        search_o1(**world, **options)
        if kind == "search_o1"
        else classes[kind](world["search"], world["reader"], **options)
    )
    prediction = rng.choice((ask, ask_async))(server, program, question=f"{QUESTION} {words(rng.choice((1, 50, 400)))}")
    no_refusals(server)
    assert prediction.finish in ("answered", "no_answer", "length", "context", "turns", "loop")
    for call in server.calls:
        assert len(call.prompt_ids) + call.body["max_tokens"] <= length


def test_a_context_option_overrides_the_servers(serve) -> None:
    server = serve(say(words(5_000)), max_model_len=32_768)
    prediction = ask(server, search_o1(context_length=900))
    assert prediction.finish == "context"
    assert len(server.calls[0].prompt_ids) + server.calls[0].body["max_tokens"] == 900


def test_a_page_is_cut_before_its_window_is_taken() -> None:
    hit = Hit("t", URLS[0], "needle sentence here")
    page = PageReply(URLS[0], Page(URLS[0], "filler " * 100 + "The needle sentence here."))
    (record,) = add_contexts(make_records([hit]), [hit], [page], page_chars=200, context_chars=50)
    assert "needle" not in record["context"]
    assert render_pages([record]).startswith("**Web Page 1:**\n{\n")
