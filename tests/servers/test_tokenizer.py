from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.servers.tokenizer import SPECIALS, TextStream, Tokenizer

END = "<|end_search_query|>"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_the_tokenizer(text: str) -> None:
    assert Tokenizer().decode(Tokenizer().encode(text)) == text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_streamed_text_equals_the_decoded_text(text: str) -> None:
    tokenizer = Tokenizer()
    ids = [i for i in tokenizer.encode(text) if i >= len(SPECIALS)]
    stream = TextStream(tokenizer)
    assert "".join(map(stream.step, ids)) == tokenizer.decode(ids)


def test_a_trailing_blank_line_tokenizes_differently_once_text_follows() -> None:
    encode = Tokenizer().encode
    assert len(encode("\n\n")) == 1
    assert encode("a\n\n") != encode("a\n\nThe")[: len(encode("a\n\n"))]
    assert encode("a.")[:1] == encode("a. The")[:1]


def test_a_marker_is_ordinary_text_whose_last_token_may_run_past_it() -> None:
    encode = Tokenizer().encode
    assert min(encode(END)) >= len(SPECIALS)
    assert encode(END + ".")[: len(encode(END))] != encode(END)
