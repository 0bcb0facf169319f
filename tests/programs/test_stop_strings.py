"""Servers differ in how they end a turn; the kept chain does not."""

from __future__ import annotations

import itertools

import pytest

from tests.programs.world import (
    ANSWER,
    BQ,
    BR,
    EQ,
    ER,
    INFORMATION,
    NO_QUERY,
    ask,
    ask_async,
    chain_of,
    events,
    message,
    query,
    reasoning_calls,
    say,
    search_o1,
)

CHAIN = f"I search.\n\n{query('Arrival director')}\n\n{BR}{INFORMATION}{ER}{ANSWER}"
RUN_ON = f"I search.\n\n{query('Arrival director')}\n\n{BR}made up{ER}\n\nSo \\boxed{{made up}}"


@pytest.mark.parametrize("asker", [ask, ask_async])
@pytest.mark.parametrize(
    "server_options",
    [{}, {"ignore_stop": True}, {"stop_without_marker": True}, {"no_token_ids": True}, {"no_cache_details": True}],
)
def test_a_chain_is_the_same_whatever_the_server_does_with_stop_strings(serve, server_options, asker) -> None:
    server = serve(say(RUN_ON, ANSWER), **server_options)
    prediction = asker(server)
    assert prediction.reasoning == CHAIN
    assert (prediction.answer, prediction.finish) == ("Denis Villeneuve", "answered")
    assert [record["query"] for record in prediction.searches] == ["Arrival director"]


@pytest.mark.parametrize("padding", ["", " ", "\n"])
def test_a_marker_that_the_server_left_out_is_completed_without_touching_what_the_model_wrote(serve, padding) -> None:
    server = serve(say(f"{BQ}{padding}Arrival{padding}{EQ}", ANSWER), stop_without_marker=True)
    prediction = ask(server)
    assert prediction.reasoning.startswith(f"{BQ}{padding}Arrival{padding}{EQ}\n\n{BR}")
    assert prediction.searches[0]["query"] == "Arrival"
    assert prediction.usage["retokenised"] == 0


def test_text_that_a_token_carries_past_the_marker_is_cut(serve) -> None:
    server = serve(say(f"{BQ}Arrival{EQ}!!! and more", ANSWER))
    prediction = ask(server)
    assert server.tokenizer.decode(server.calls[0].output.token_ids).endswith("|>!!!")
    assert prediction.reasoning.startswith(f"{BQ}Arrival{EQ}\n\n{BR}")


def test_stop_strings_and_their_inclusion_are_asked_for(serve) -> None:
    server = serve(say(ANSWER))
    ask(server)
    body = server.calls[0].body
    assert body["stop"] == [EQ, BR]
    assert body["include_stop_str_in_output"] is True


@pytest.mark.parametrize("server_options", [{}, {"ignore_stop": True}, {"stop_without_marker": True}])
def test_a_result_that_the_model_makes_up_is_cut_and_answered_with_the_correction(serve, server_options) -> None:
    server = serve(say(f"I recall.\n\n{BR}made up{ER} So \\boxed{{made up}}", ANSWER), **server_options)
    prediction = ask(server)
    assert prediction.reasoning == f"I recall.{message(NO_QUERY)}{ANSWER}"
    assert prediction.malformed == 1
    assert prediction.searches == []


@pytest.mark.parametrize("server_options", [{}, {"ignore_stop": True}, {"stop_without_marker": True}])
def test_a_made_up_result_after_an_open_query_lets_the_query_run(serve, server_options) -> None:
    server = serve(say(f"{BQ}Arrival\n{BR}made up{ER}", ANSWER), **server_options)
    prediction = ask(server)
    assert prediction.reasoning == f"{query('Arrival')}\n\n{BR}{INFORMATION}{ER}{ANSWER}"
    assert prediction.malformed == 0


def test_a_model_that_ends_its_turn_inside_a_query_is_corrected(serve) -> None:
    server = serve(say(f"{BQ}Arrival", ANSWER))
    prediction = ask(server)
    assert prediction.reasoning == f"{BQ}Arrival{message(NO_QUERY)}{ANSWER}"


def test_the_text_after_a_result_is_tokenised_as_if_the_model_had_written_it(serve) -> None:
    server = serve(say(RUN_ON, ANSWER))
    ask(server)
    sent = chain_of(reasoning_calls(server)[1].prompt)
    assert sent.endswith(ER), "a trailing blank line would be one token and two once text follows"


def test_white_space_that_tokenises_alike_stays_after_a_result(serve) -> None:
    server = serve(say(f"{BQ}{EQ}", ANSWER))
    ask(server)
    assert chain_of(reasoning_calls(server)[1].prompt).endswith(f"{ER}\n")


@pytest.mark.parametrize("bos", [False, True])
@pytest.mark.parametrize("think", [False, True])
def test_a_prompt_holds_the_template_once_and_never_a_second_bos(serve, bos, think) -> None:
    server = serve(say(RUN_ON, f"{BQ}{EQ}", ANSWER), bos=bos, think=think)
    ask(server)
    for call in server.calls:
        assert call.prompt.count("<|im_start|>assistant") == 1
        assert call.prompt.count("<s>") == int(bos)
        assert call.body["add_special_tokens"] is False


@pytest.mark.parametrize(
    "first",
    [
        RUN_ON,
        f"{BQ}Arrival{EQ}!!! and more",
        f"I recall.\n\n{BR}made up{ER}",
        f"Wait 日本 {BQ}到着{EQ}",
        f"{BQ} Arrival {EQ}",
    ],
)
@pytest.mark.parametrize(
    "server_options", [{}, {"bos": True, "think": True}, {"ignore_stop": True}, {"stop_without_marker": True}]
)
def test_each_request_goes_on_from_the_ids_of_the_one_before_and_its_kept_output(serve, first, server_options) -> None:
    server = serve(say(first, f"Hm. {BQ}second{EQ}", ANSWER), **server_options)
    prediction = ask(server)
    calls = reasoning_calls(server)
    assert len(calls) == 3
    for call, following in itertools.pairwise(calls):
        written = server.tokenizer.decode(call.output.token_ids)
        added = server.tokenizer.decode(following.prompt_ids[len(call.prompt_ids) :])
        kept_text = next(i for i in range(len(written), -1, -1) if added.startswith(written[:i]))
        kept_ids = call.output.token_ids
        while len(server.tokenizer.decode(kept_ids)) > kept_text:
            kept_ids = kept_ids[:-1]
        assert following.prompt_ids[: len(call.prompt_ids) + len(kept_ids)] == call.prompt_ids + kept_ids
    assert prediction.usage["retokenised"] == 0


def test_a_server_without_token_ids_counts_its_continuations(serve) -> None:
    server = serve(say(RUN_ON, f"{BQ}second{EQ}", ANSWER), no_token_ids=True)
    prediction = ask(server)
    calls = reasoning_calls(server)
    for call, following in itertools.pairwise(calls):
        assert following.prompt_ids[: len(call.prompt_ids)] == call.prompt_ids
    assert [event["retokenised"] for event in events(prediction, "generate")] == [False, True, True]


def test_the_template_is_rendered_once_a_question(serve) -> None:
    server = serve(say(f"{BQ}one{EQ}", f"{BQ}two{EQ}", ANSWER))
    ask(server)
    rendered = [r for r in server.requests if r.path == "/tokenize" and "messages" in r.body]
    reasoning = [r for r in rendered if "Searched Web Pages" not in r.body["messages"][-1]["content"]]
    assert len(reasoning) == 1


def test_the_cached_share_of_a_prefix_is_reported(serve) -> None:
    server = serve(say(RUN_ON, ANSWER))
    prediction = ask(server)
    calls = reasoning_calls(server)
    assert calls[1].cached >= len(calls[0].prompt_ids) - 16
    assert prediction.usage["cached_tokens"] == sum(call.cached for call in server.calls)


def test_queries_inside_a_think_block_are_executed(serve) -> None:
    server = serve(say(f"Hm {BQ}Arrival{EQ}", f"Good.</think>\n\n{ANSWER}"), think=True)
    prediction = ask(server)
    assert [record["query"] for record in prediction.searches] == ["Arrival"]
    assert prediction.answer == "Denis Villeneuve"


def test_a_program_needs_no_reader_of_its_own_for_a_search_that_brings_one() -> None:
    from tests.programs.world import MemoryReader, MemorySearch

    class WithReader(MemorySearch):
        def reader(self) -> MemoryReader:
            return MemoryReader({})

    from programs import SearchO1

    assert SearchO1(WithReader()).reader.pages == {}
    assert search_o1().reader.pages
