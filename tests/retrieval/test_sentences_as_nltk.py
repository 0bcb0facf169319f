"""Our English sentences are those of NLTK itself; NLTK is needed for this test only."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
from punkt import load_model

from retrieval.sentences import sentence_spans

TEXTS = [
    "Dr. Smith went to Washington, D.C. on Jan. 5. He met Mr. Jones of the U.S. Senate. They talked.",
    "It cost $3.50. Then 4.2 percent more! Why? Nobody knows... Or do they?! Yes.",
    "He said: \"It is over.\" She left. 'Really?' he asked. (It was not.) [See p. 12.] The end.",
    "See e.g. the work of J. S. Bach, vol. 3, no. 4. It is fine. cf. ch. 7.\n\nA new paragraph. and goes on",
    "Visit www.example.org. Or mail a.b@example.org! version 2.0.1 is out. v. 3 follows",
    "1. First point.\n2. Second point.\n3) Third point.\n• A bullet. • Another one",
    "The U.S. The end. The U.N. said so. Prof. A. B. Cee et al. agree. I. think. So",
    "Ends with spaces.   \n\t Next one.\r\nWindows line.\u00a0Hard space. \u2028Separator. “Quoted.” ‘So.’ Fin…",
    "Er kam z.B. am 3. Mai. Das war gut. Élan vital. Été. Ça va. Ñandú. Öl. Straße.",
    "这是中文。没有空格。Mixed. 文字 here. 終わり。",
    "He ran. and ?! Smith left. No!!! ... ....  . . .",
    "",
    " \n ",
    "No end",
]

_PIECES = """
    Dr. Mr. U.S. e.g. i.e. No. p. J. Smith the The he He and And ran. left! why? end... end." (so.) "Yes." 3. 3.5 1,000.
    a.m. p.m. Jan. May. vs. Inc. Ltd. St. km. ?! !! . , ; : - -- — … .. ... [1]. 'No.' x.y. www.a.b. éa. Éa. ß. 中文。
    ). .) " ' “So.”
"""
_pieces = st.sampled_from(_PIECES.split())
# NLTK uses regular expressions of another make, which do not count these four as white space and may know more letters
# than the standard library does.
_any_text = st.text(st.characters(exclude_categories=["Cs", "Cn"], exclude_characters="\x1c\x1d\x1e\x1f"), max_size=300)
_gaps = st.sampled_from([" ", "  ", "\n", "\n\n", "\t", "\u00a0", ""])
_like_english = st.lists(st.tuples(_pieces, _gaps), max_size=60).map(lambda pairs: "".join(a + b for a, b in pairs))


@cache
def nltk_itself() -> PunktSentenceTokenizer:
    carried, parameters = load_model("english"), PunktParameters()
    parameters.abbrev_types = set(carried.abbrev_types)
    parameters.collocations = set(carried.collocations)
    parameters.sent_starters = set(carried.sent_starters)
    parameters.ortho_context.update(carried.ortho_context)
    return PunktSentenceTokenizer(parameters)


def agrees(text: str) -> None:
    assert sentence_spans(text) == list(nltk_itself().span_tokenize(text))


def test_the_parameters_are_there() -> None:
    tokenizer = nltk_itself()
    assert list(tokenizer.tokenize("Dr. Smith left. He ran.")) == ["Dr. Smith left.", "He ran."]


@pytest.mark.parametrize("text", TEXTS)
def test_sentences_of_varied_texts_are_those_of_nltk(text: str) -> None:
    agrees(text)
    agrees(text * 3)


@settings(max_examples=300)
@given(_like_english)
def test_sentences_of_english_like_texts_are_those_of_nltk(text: str) -> None:
    agrees(text)


@settings(max_examples=200)
@given(_any_text | st.text(alphabet="aA.?! \n\"')]é1,;:-", max_size=200))
def test_sentences_of_any_text_are_those_of_nltk(text: str) -> None:
    agrees(text)
