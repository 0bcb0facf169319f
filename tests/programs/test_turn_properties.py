"""Whatever a model writes, every kind of server leaves the same chain, and prefixes stay exact."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import dspy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from programs.operations import Generation
from programs.turn import read_turn, stop_strings
from signatures.markup import BEGIN_FULL_PAGE, BEGIN_SEARCH_RESULT, segments
from tests.programs.world import BP, BQ, BR, BU, EQ, ER, EU, QUESTION, model_of, reasoning_calls, search_o1
from tests.servers.engine import generate
from tests.servers.lm import LMServer
from tests.servers.tokenizer import Tokenizer

WORDS = st.sampled_from(
    [BQ, EQ, BR, ER, BU, EU, BP, "Arrival", " film", "\n", "\n\n", " ", "映画", "é!", "<|", "|>", "\\boxed{a}"]
)
TEXT = st.lists(WORDS, max_size=14).map("".join)
TOKENIZER = Tokenizer()


def turn_of(text: str, fetches: bool, *, ignores: bool = False, includes: bool = True, tells: bool = True):
    stop = () if ignores else stop_strings(fetches=fetches)
    output = generate(TOKENIZER, text, 10_000, stop, include_stop=includes)
    generation = Generation(output.text, output.finish_reason, output.stop_reason if tells else None, stop_known=tells)
    return read_turn(generation, fetches=fetches)


@given(TEXT, st.booleans())
def test_every_kind_of_server_gives_the_same_turn(text, fetches) -> None:
    turn = turn_of(text, fetches)
    assert turn_of(text, fetches, ignores=True) == turn
    assert turn_of(text, fetches, includes=False) == turn


@given(TEXT, st.booleans())
def test_nothing_is_kept_after_an_answer_box_where_it_ends_the_chain(text, fetches) -> None:
    kept = read_turn(Generation(text, "stop", None, stop_known=True), fetches=fetches, ends_at_box=True).kept
    assert kept.count("\\boxed{a}") <= 1
    assert "\\boxed{a}" not in kept or kept.endswith(("\\boxed{a}", EQ, EU))


@given(TEXT, st.booleans())
def test_a_server_that_does_not_tell_its_stop_string_gives_the_same_query(text, fetches) -> None:
    turn = turn_of(text, fetches)
    silent = turn_of(text, fetches, includes=False, tells=False)
    if turn.action in ("query", "urls") and not turn.kept.count(BU):
        assert (silent.action, silent.content) == (turn.action, turn.content)


@given(TEXT, st.booleans())
def test_a_kept_turn_opens_no_result_of_its_own_and_is_a_prefix_of_what_was_written(text, fetches) -> None:
    turn = turn_of(text, fetches)
    assert BEGIN_SEARCH_RESULT not in turn.kept
    assert BEGIN_FULL_PAGE not in turn.kept
    assert [segment.kind for segment in segments(turn.kept)] == (["model"] if turn.kept else [])
    assert text.startswith(turn.kept.removesuffix(EQ).removesuffix(EU))
    assert turn.content == " ".join(turn.content.split())
    assert bool(turn.content) == (turn.action in ("query", "urls"))


@pytest.fixture(scope="module", params=[{}, {"ignore_stop": True}, {"stop_without_marker": True, "bos": True}])
def server(request) -> Iterator[LMServer]:
    with LMServer(lambda prompt, body: "", **request.param) as running:
        yield running


@settings(max_examples=15)
@given(st.lists(TEXT, min_size=2, max_size=5))
def test_each_prompt_begins_with_the_ids_before_it_and_the_kept_ids(server, texts) -> None:
    left = [*texts, "the end"]
    server.calls.clear()
    server.reply = lambda prompt, body: "**Final Information**\n\nX" if "Searched Web Pages" in prompt else left.pop(0)
    with dspy.context(lm=model_of(server).lm):
        prediction = search_o1()(question=QUESTION)
    assert prediction.usage["retokenised"] == 0
    for call, following in itertools.pairwise(reasoning_calls(server)):
        ids = call.prompt_ids
        assert following.prompt_ids[: len(ids)] == ids
        added = server.tokenizer.decode(following.prompt_ids[len(ids) :])
        kept = call.output.token_ids
        while kept and not added.startswith(server.tokenizer.decode(kept)):
            kept = kept[:-1]
        assert following.prompt_ids[: len(ids) + len(kept)] == [*ids, *kept]
