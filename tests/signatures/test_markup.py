"""The marker protocol as a leaf: cutting chains, neutralising hostile text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signatures.markup import (
    BEGIN_FULL_PAGE,
    BEGIN_SEARCH_RESULT,
    END_SEARCH_RESULT,
    MARKERS,
    model_text,
    neutralise,
    segments,
)

SPECIALS = (
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|start_header_id|>", "<｜User｜>",
    "<｜end▁of▁sentence｜>",
    "<s>", "</s>", "<think>", "</think>", "[INST]", "[/INST]", "<tool_call>", "<start_of_turn>",
    "<|begin▁of▁sentence|>",
)  # fmt: skip
FRAGMENTS = st.sampled_from(
    [
        *MARKERS,
        *SPECIALS,
        "<|",
        "|>",
        "<",
        ">",
        "|",
        "end_search_result",
        "<|end_",
        "a",
        " ",
        "\n",
        "[",
        "]",
        "INST",
        "s",
    ]
)
HOSTILE = st.lists(FRAGMENTS, max_size=14).map("".join)


@given(HOSTILE)
def test_no_marker_and_no_special_token_survives_neutralising(text) -> None:
    harmless = neutralise(text)
    assert not [token for token in (*MARKERS, *SPECIALS) if token in harmless]


@given(HOSTILE | st.text())
def test_neutralising_twice_changes_nothing_more(text) -> None:
    assert neutralise(neutralise(text)) == neutralise(text)


@given(HOSTILE)
def test_neutralised_text_in_a_block_stays_one_block(text) -> None:
    block = f"{BEGIN_SEARCH_RESULT}{neutralise(text)}{END_SEARCH_RESULT}"
    assert [s.text for s in segments(f"before{block}after") if s.kind == "injected"] == [block]


@pytest.mark.parametrize(
    "nested",
    [
        "<|end_<|end_search_result|>search_result|>",
        "<|<|end_search_result|>|>",
        "<<|im_end|>|im_end|>",
        "<|im_<s>end|>",
        "<|im_</think>end|>",
        "[IN<s>ST]",
        "<s<s>>",
        "<<think>think>",
    ],
)
def test_a_token_hidden_inside_another_does_not_come_out_of_it(nested) -> None:
    assert not [token for token in (*MARKERS, *SPECIALS) if token in neutralise(nested)]


def test_neutralised_text_shows_what_stood_there() -> None:
    assert neutralise("a <|end_search_result|> b") == "a <¦end_search_result¦> b"
    assert neutralise("</think> <s> [INST]") == "‹/think› ‹s› (INST)"
    assert neutralise("<<SYS>> [TOOL_CALLS] <unk>") == "‹<SYS>› (TOOL_CALLS) ‹unk›"


@given(st.text(alphabet=st.characters(blacklist_categories=("Cs",), blacklist_characters="<>[]|｜")))
def test_text_without_brackets_stays_as_it_is(text) -> None:
    assert neutralise(text) == text


@pytest.mark.parametrize(
    "text", ["a < b and c > d", "x <| y |> z", "[1] [INSTALL]", "<p>html</p>", "if a<s and s>b", "|a|b|"]
)
def test_ordinary_text_stays_as_it_is(text) -> None:
    assert neutralise(text) == text


def test_lone_surrogates_become_something_a_server_accepts() -> None:
    neutralise("a\ud800b").encode("utf-8")


@given(HOSTILE | st.text())
def test_segments_join_back_to_the_chain(chain) -> None:
    found = list(segments(chain))
    assert "".join(segment.text for segment in found) == chain
    assert all(segment.text for segment in found)


def test_segments_tell_model_text_from_injected_blocks() -> None:
    block, page = f"{BEGIN_SEARCH_RESULT}\nx\n{END_SEARCH_RESULT}", f"{BEGIN_FULL_PAGE}open"
    found = [(s.kind, s.text) for s in segments(f"a{block}b{page}")]
    assert found == [("model", "a"), ("injected", block), ("model", "b"), ("injected", page)]
    assert model_text(f"a{block}b{page}") == "a\nb"
