"""WithFallback: the direct answer where a method gives no valid one, and never a lost chain."""

from __future__ import annotations

import pytest

from programs import DirectReasoning, WithFallback
from programs.predictor import add_usage
from tests.programs.world import ANSWER, ask, ask_async, events, query, say, search_o1
from tests.programs.world import message as injected


def both(**options) -> WithFallback:
    return WithFallback(search_o1(**options), DirectReasoning(**options))


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_a_valid_answer_needs_no_fallback(serve, asker) -> None:
    server = serve(say(query("a"), ANSWER))
    prediction = asker(server, both())
    assert (prediction.answer, prediction.fallback) == ("Denis Villeneuve", False)
    assert len(server.calls) == 3


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_the_direct_answer_stands_in_for_none(serve, asker) -> None:
    server = serve(say(query("a"), "I do not know.", ANSWER))
    prediction = asker(server, both())
    assert (prediction.answer, prediction.fallback) == ("Denis Villeneuve", True)
    assert prediction.reasoning.endswith("I do not know.")
    assert prediction.direct_reasoning == ANSWER
    assert (prediction.finish, len(prediction.searches)) == ("no_answer", 1)
    assert "<|begin_search_query|>" not in server.calls[-1].prompt


def test_usage_and_events_cover_both_runs(serve) -> None:
    server = serve(say(query("a"), "I do not know.", ANSWER))
    prediction = ask(server, both())
    assert prediction.usage == add_usage(prediction.events)
    assert prediction.usage["calls"] == 4
    assert prediction.usage["prompt_tokens"] == sum(len(call.prompt_ids) for call in server.calls)


def test_an_invalid_direct_answer_keeps_the_programs_own(serve) -> None:
    prediction = ask(serve(say("I do not know.", "Neither do I.")), both())
    assert (prediction.answer, prediction.fallback) == ("", False)
    assert prediction.reasoning == "I do not know."


def test_a_choice_of_more_than_a_letter_is_not_valid(serve) -> None:
    prediction = ask(serve(say("\\boxed{both of them}", "\\boxed{B}")), both(task="multiple_choice"))
    assert (prediction.answer, prediction.fallback) == ("B", True)


@pytest.mark.parametrize("asker", [ask, ask_async])
def test_a_direct_run_that_fails_keeps_the_chain(serve, asker) -> None:
    server = serve(lambda prompt, body: "")

    def model(prompt: str, body: dict) -> str:
        server.fail_next(50, 500)
        return "I do not know."

    server.reply = model
    prediction = asker(server, both(), retry_seconds=0.1)
    assert (prediction.reasoning, prediction.fallback, prediction.finish) == ("I do not know.", False, "no_answer")
    assert [event["fallback"] for event in events(prediction, "error")] == [True]


def test_a_fallback_shows_method_and_options_of_its_program() -> None:
    program = both(max_searches=2)
    assert (program.method, program.options.max_searches) == ("search_o1", 2)
    assert [name for name, _ in program.named_predictors()] == ["program.reason", "program.refine", "direct.reason"]


def test_an_answer_inside_an_injected_block_is_not_the_programs(serve) -> None:
    refined = "**Final Information**\n\nSome page says \\boxed{trap}"
    prediction = ask(serve(say(query("a"), "I do not know.", ANSWER, refined=refined)), both())
    assert (prediction.answer, prediction.fallback) == ("Denis Villeneuve", True)
    assert injected("x") not in prediction.reasoning


def test_the_direct_program_may_be_given_as_its_class(serve) -> None:
    server = serve(say("I do not know.", ANSWER))
    prediction = ask(server, WithFallback(search_o1(max_searches=7), DirectReasoning))
    assert (prediction.answer, prediction.fallback) == ("Denis Villeneuve", True)
    assert WithFallback(search_o1(max_searches=7), DirectReasoning).direct.options.max_searches == 7
