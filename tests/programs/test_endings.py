"""How a chain ends beside its budgets: loops, and the one short turn of a forced answer."""

from __future__ import annotations

from programs import DirectReasoning
from tests.programs.world import BR, ER, ask, events, no_refusals, query, say, search_o1, words


def test_a_looping_turn_is_named(serve) -> None:
    passage = " ".join(f"thought {i} leads nowhere" for i in range(12))
    prediction = ask(serve(say(f"{passage}\n" * 40)), search_o1(turn_tokens=600))
    assert prediction.finish == "loop"


def test_loops_are_left_alone_in_the_papers_setting(serve) -> None:
    prediction = ask(serve(say("and so on " * 400)), search_o1(turn_tokens=600, stop_loops=False))
    assert prediction.finish == "length"


def test_a_long_turn_without_a_repeated_passage_is_no_loop(serve) -> None:
    text = " ".join(f"number {i}" for i in range(2_000))
    assert ask(serve(say(text)), search_o1(turn_tokens=2_000)).finish == "length"


def test_force_answer_gives_a_chain_out_of_turns_one_short_turn_for_its_box(serve) -> None:
    server = serve(say(query("a"), f"Denis Villeneuve}}. {BR}made up{ER}"))
    prediction = ask(server, search_o1(max_turns=1, force_answer=True))
    assert prediction.reasoning.endswith(
        f"{ER}\n\nI have to answer now. The final answer is \\boxed{{Denis Villeneuve}}. "
    )
    assert (prediction.answer, prediction.finish) == ("Denis Villeneuve", "answered")
    assert server.calls[-1].body["max_tokens"] == 64
    assert [event["finish_before"] for event in events(prediction, "forced")] == ["turns"]


def test_force_answer_works_when_the_context_is_full(serve) -> None:
    server = serve(say(words(5_000), "Paris}"), max_model_len=1_000, strict_budget=True)
    prediction = ask(server, search_o1(force_answer=True))
    assert (prediction.answer, prediction.finish) == ("Paris", "answered")
    no_refusals(server)


def test_force_answer_keeps_the_finish_when_no_answer_comes(serve) -> None:
    server = serve(say("word " * 500, "I do not know"))
    prediction = ask(server, search_o1(force_answer=True, turn_tokens=100))
    assert (prediction.answer, prediction.finish) == ("", "length")


def test_force_answer_leaves_a_chain_that_ended_by_itself(serve) -> None:
    server = serve(say("I do not know."))
    prediction = ask(server, search_o1(force_answer=True))
    assert (prediction.finish, len(server.calls)) == ("no_answer", 1)


def test_force_answer_asks_for_code_in_a_code_block(serve) -> None:
    server = serve(say("word " * 500, "print(1)\n```"))
    prediction = ask(server, DirectReasoning(task="code", force_answer=True, turn_tokens=100))
    assert prediction.answer == "print(1)"
