from __future__ import annotations

import string
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.cjk import cjk_bigrams, cjk_words, is_cjk_text, without_cjk
from retrieval.passages import best_window, strip_markdown_links, strip_tags
from retrieval.sentences import cjk_sentence_spans, sentence_spans

PAGE = "Cats sleep all day. The Eiffel Tower was built by Gustave Eiffel in 1889. Dogs bark at night. It rains."


def rule(page: str, snippet: str, context: int) -> tuple[bool, str]:
    """The rule of DESIGN section 3, written down plainly."""
    cjk = is_cjk_text(page)

    def words(text: str) -> set[str]:
        plain = "".join(c for c in text.lower() if c not in string.punctuation)
        return cjk_words(plain) if cjk else set(plain.split())

    def f1(left: set[str], right: set[str]) -> Fraction:
        shared = len(left & right)
        if shared == 0:
            return Fraction(0)
        precision, recall = Fraction(shared, len(right)), Fraction(shared, len(left))
        return 2 * precision * recall / (precision + recall)

    spans = cjk_sentence_spans(page) if cjk else sentence_spans(page)
    scored = [(f1(words(snippet), words(page[a:b])), page[a:b]) for a, b in spans]
    best = max((score for score, _ in scored), default=Fraction(0))
    if best <= Fraction(1, 5):
        return False, page[: 2 * context]
    sentence = next(sentence for score, sentence in scored if score == best)
    at = page.index(sentence)
    return True, page[max(at - context, 0) : at + len(sentence) + context]


def test_the_sentence_that_matches_is_found_with_context_on_both_sides() -> None:
    assert best_window(PAGE, "Gustave Eiffel built the Eiffel Tower", 5) == (
        True,
        "day. The Eiffel Tower was built by Gustave Eiffel in 1889. Dogs",
    )


def test_without_a_match_the_start_of_the_page_is_given() -> None:
    assert best_window(PAGE, "quantum chromodynamics", 10) == (False, PAGE[:20])
    assert best_window("x" * 9000, "nothing") == (False, "x" * 6000)


@pytest.mark.parametrize("snippet", ["", "   ", "!?.,", "<>"])
def test_a_snippet_without_words_matches_nothing(snippet: str) -> None:
    assert best_window(PAGE, snippet, 4) == (False, PAGE[:8])


def test_an_f1_of_exactly_a_fifth_does_not_count() -> None:
    # One word shared, one in the snippet, nine in the sentence: F1 = 2 / (1 + 9).
    assert best_window("a b c d e f g h i", "a", 100)[0] is False
    assert best_window("a b c d e f g h", "a", 100)[0] is True
    # Precision and recall are a fifth each, which as floating-point numbers make a little more than a fifth.
    assert best_window("a b c d e", "a v w x y", 100)[0] is False
    assert best_window("天地" * 20 + "。地a大b天", "aa人a人人地", 0) == (False, "")


def test_the_first_of_equally_good_sentences_wins() -> None:
    page = "Zero nothing here. Alpha beta gamma. And then some other words follow. Gamma beta alpha."
    assert best_window(page, "alpha beta gamma", 0) == (True, "Alpha beta gamma.")


def test_case_and_ascii_punctuation_do_not_matter() -> None:
    assert best_window("Nothing. U.S.A. IS (BIG)!", "usa is big", 0)[0] is True


def test_an_empty_page_gives_an_empty_window() -> None:
    assert best_window("", "anything") == (False, "")


_words = st.lists(
    st.sampled_from(["cat", "Dog", "the", "U.S.", "Dr.", "runs", "fast.", "Why?", "No!", "\n", "a,b", "İ", "ß", "1.5"]),
    max_size=40,
).map(" ".join)


@given(page=_words, snippet=_words, context=st.integers(0, 50))
def test_same_result_as_the_rule_on_english_like_text(page: str, snippet: str, context: int) -> None:
    assert best_window(page, snippet, context) == rule(page, snippet, context)


@given(page=st.text(max_size=300), snippet=st.text(max_size=60), context=st.integers(0, 50))
def test_same_result_as_the_rule_on_any_text(page: str, snippet: str, context: int) -> None:
    assert best_window(page, snippet, context) == rule(page, snippet, context)


@given(data=st.data(), context=st.integers(0, 50))
def test_same_result_as_the_rule_where_the_snippet_comes_from_the_page(data: st.DataObject, context: int) -> None:
    page = data.draw(st.text(alphabet="ab c.D!?天地人。！\n「」é", min_size=1, max_size=120))
    start = data.draw(st.integers(0, len(page)))
    snippet = page[start : start + data.draw(st.integers(0, 40))]
    assert best_window(page, snippet, context) == rule(page, snippet, context)


def test_chinese_is_split_at_its_full_stops_and_compared_by_bigrams() -> None:
    page = "今天天气很好。埃菲尔铁塔由古斯塔夫·埃菲尔于一八八九年建成！狗在晚上叫？"
    assert best_window(page, "谁建成了埃菲尔铁塔", 0) == (True, "埃菲尔铁塔由古斯塔夫·埃菲尔于一八八九年建成！")
    assert best_window(page, "量子色动力学", 3) == (False, page[:6])


@given(
    page=st.text(alphabet="天地人大小。！？ a.b", min_size=1, max_size=60).map(lambda text: "天地" * 20 + "。" + text),
    snippet=st.text(alphabet="天地人大小。 ab.", max_size=12),
    context=st.integers(0, 20),
)
def test_same_result_as_the_rule_on_chinese_like_text(page: str, snippet: str, context: int) -> None:
    assert is_cjk_text(page)
    assert best_window(page, snippet, context) == rule(page, snippet, context)


def test_a_chinese_page_with_latin_words_matches_by_them_too() -> None:
    page = "今天天气很好。我们使用 PyTorch 训练模型。明天见。"
    assert best_window(page, "PyTorch 训练", 0) == (True, "我们使用 PyTorch 训练模型。")


def test_a_chinese_name_does_not_make_an_english_page_chinese() -> None:
    assert not is_cjk_text("Tokyo (東京) is the capital of Japan.")
    assert not is_cjk_text("plain")
    assert not is_cjk_text("한국어 문장입니다.")
    assert is_cjk_text("東京は日本の首都です。")


def test_bigrams_stay_inside_their_run() -> None:
    assert list(cjk_bigrams("東京都 and 猫")) == ["東京", "京都", "猫"]
    assert without_cjk("a東京b").split() == ["a", "b"]
    assert cjk_words("東京都、猫。gpt4を") == {"東京", "京都", "猫", "gpt4", "を"}


def test_english_spans_know_abbreviations() -> None:
    text = "Dr. Smith went to Washington.  He stayed."
    assert [text[a:b] for a, b in sentence_spans(text)] == ["Dr. Smith went to Washington.", "He stayed."]


@given(st.text(max_size=200))
def test_spans_are_in_order_and_hold_everything_but_white_space(text: str) -> None:
    for spans in (sentence_spans(text), cjk_sentence_spans(text)):
        position = 0
        for start, end in spans:
            assert position <= start < end
            assert not text[position:start].strip()
            position = end
        assert not text[position:].strip()


def test_spans_are_those_of_nltk_where_the_package_alone_differs() -> None:
    text = "He ran. and ?! Smith left. No!!!"
    assert [text[a:b] for a, b in sentence_spans(text)] == ["He ran.", "and ?", "!", "Smith left.", "No!!", "!"]


def test_cjk_spans_keep_closing_quotes() -> None:
    text = "他说：「你好。」然后走了。 完"
    assert [text[a:b] for a, b in cjk_sentence_spans(text)] == ["他说：「你好。」", "然后走了。", "完"]


def test_sentences_can_be_split_by_several_threads_at_once() -> None:
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(len(sentence_spans(PAGE * 20)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1


@pytest.mark.parametrize(
    ("given_text", "plain"),
    [
        ("the <b>Eiffel</b> Tower", "the Eiffel Tower"),
        ("Tom &amp; Jerry&#39;s", "Tom & Jerry's"),
        ("\ue000bold\ue001 word", "bold word"),
        ("if a < b and c > d", "if a < b and c > d"),
        ("x&nbsp;y<br/>", "x y"),
        ("", ""),
    ],
)
def test_tags_and_highlighting_are_stripped(given_text: str, plain: str) -> None:
    assert strip_tags(given_text) == plain


def test_markdown_addresses_are_stripped_and_words_kept() -> None:
    assert strip_markdown_links("see [the tower](https://a.example/b?c) now") == "see [the tower] now"
    assert strip_markdown_links("[https://a.example] (not a link)") == " (not a link)"
