from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.contamination import (
    GRAM,
    THRESHOLD,
    VERBATIM_WORDS,
    QuestionFingerprint,
    benchmark_mirror,
)
from metrics.folded_words import folded_words, prose

ARTICLE = (
    """The Compact Disc was developed by Philips and Sony. Citibank was founded in 1812 as the City Bank of New
York. James Madison was the president of the United States then. Its first president was the retired Colonel Samuel
Osgood, and in the year that followed it was moved to another building in the city. """
    * 8
)
QUESTION = "Who was president of the United States in the year that Citibank was founded?"
MATHS = (
    "Every morning Aya goes for a $9$-kilometer-long walk and stops at a coffee shop afterwards. When she walks at a "
    "constant speed of $s$ kilometers per hour, the walk takes her 4 hours, including $t$ minutes spent in the coffee "
    "shop. When she walks $s+2$ kilometers per hour, the walk takes her 2 hours and 24 minutes. Suppose Aya walks at "
    r"$s+\frac{1}{2}$ kilometers per hour. Find the number of minutes the walk takes her."
)
CODE = (
    "You are given an integer array nums, an integer k, and an integer multiplier.\nYou need to perform k operations "
    "on nums. In each operation:\n\nFind the minimum value x in nums. If there are multiple occurrences of the minimum "
    "value, select the one that appears first.\nReplace the selected minimum value x with x * multiplier.\n\nReturn an "
    "integer array denoting the final state of nums after performing all k operations.\n\nExample 1:\n\nInput: nums = "
    "[2,1,3,5,6], k = 5, multiplier = 2\nOutput: [8,4,6,5,6]\n" + "After operation 3\n[4, 4, 3, 5, 6]\n" * 12
)
CHINESE = "哪位科学家在一九〇一年获得了首届诺贝尔物理学奖并且发现了伦琴射线？"
CHOICES = f"{QUESTION}\n\nChoices:\n(A) James Monroe\n(B) James Madison\n(C) John Adams\n(D) Thomas Jefferson\n"


def kinds(question: str, answers: tuple[str, ...], page: str, title: str = "") -> list[str]:
    return [flag.kind for flag in QuestionFingerprint(question, answers).check("https://a.org/b", title, page)]


def amid(text: str) -> str:
    return f"{ARTICLE}\n\n{text}\n\n{ARTICLE}"


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        (QUESTION, QUESTION),
        (QUESTION, QUESTION.upper().replace("?", " ???")),
        (QUESTION, QUESTION.replace(" ", "\n")),
        (QUESTION, "<h1>Who was <b>president</b> of&nbsp;the United&#32;States in the year that Citibank was founded"),
        (QUESTION, QUESTION.replace("founded", "foun-\nded")),
        (QUESTION, "who was président of the “United States” in the\u00a0year that Citi\u00adbank was founded"),
        ("What’s the ﬁrst film Brontë's sister saw, «Sunrise»?", "Whats the first film Bronte's sister saw, Sunrise?"),
        (MATHS, MATHS),
        (MATHS, MATHS.replace("$", "").replace(r"\frac{1}{2}", "½")),
        (MATHS, MATHS.replace("$", "\\(").replace(r"\frac", r"\dfrac")),
        (MATHS, "".join(MATHS.split("$")[::2])),
        (MATHS, MATHS[:250]),
        (CODE, CODE),
        (CODE, json.dumps({"question_content": CODE, "difficulty": "easy"})),
        (CODE, CODE[:300]),
        (CHINESE, CHINESE),
        (CHINESE, "问：" + CHINESE.replace("？", "?").replace("获得了", "获得 了")),
        (CHOICES, QUESTION),
        (CHOICES, QUESTION + " A. John Adams B. James Madison"),
    ],
)  # fmt: skip
def test_a_question_is_found_however_a_page_shows_it(question: str, shown: str) -> None:
    assert kinds(question, (), amid(shown)) == ["question"]


@pytest.mark.parametrize("question", [QUESTION, MATHS, CODE, CHINESE, CHOICES])
def test_a_page_about_the_matter_is_no_copy_even_with_the_answer(question: str) -> None:
    page = amid("James Madison was president in 1812. The walk takes 204 minutes. 伦琴获得了首届诺贝尔物理学奖。")
    assert kinds(question, ("James Madison", "204", "伦琴"), page) == []


def test_the_phrase_a_question_shares_with_the_page_that_answers_it_is_too_little() -> None:
    question = "Where was the person who shared the Nobel Prize in Physics in 1954 with Max Born born?"
    page = "Walther Bothe was a physicist who shared the Nobel Prize in Physics in 1954 with Max Born."
    assert 0.3 < QuestionFingerprint(question).overlap(page) < THRESHOLD
    assert kinds(question, ("Oranienburg",), page) == []


def test_the_title_counts_as_well() -> None:
    assert kinds(QUESTION, (), ARTICLE, title=QUESTION) == ["question"]


@pytest.mark.parametrize(
    ("question", "page", "found"),
    [
        ("who directed sunrise over arden", "So: Who directed ‘Sunrise over Arden’?", True),
        ("who directed sunrise over arden", "Nobody knows who directed the Sunrise over Arden.", False),
        ("who directed sunrise over arden", "Who redirected sunrise over ardennes", False),
        # Three words stand on any page.
        ("who sang it", "who sang it", False),
        ("谁写了这本", "谁写了这本", False),
        ("谁写了这本小说呢", "请问：谁写了这本小说呢？", True),
        ("", "anything", False),
    ],
)
def test_a_short_question_must_stand_there_whole(question: str, page: str, found: bool) -> None:
    assert kinds(question, (), page) == (["question"] if found else [])


def test_questions_too_short_to_tell_apart_say_so() -> None:
    assert not QuestionFingerprint("who sang it").checkable
    assert QuestionFingerprint("who sang it first").checkable


def test_the_rest_of_a_cut_question_may_be_missing_when_enough_words_stand_in_a_row() -> None:
    words = [f"word{i}" for i in range(400)]
    fingerprint = QuestionFingerprint(" ".join(words))
    for length, found in ((VERBATIM_WORDS - 1, []), (VERBATIM_WORDS, ["question"])):
        assert [f.kind for f in fingerprint.check("u", "", " ".join(words[100 : 100 + length]))] == found


@pytest.mark.parametrize(
    ("answers", "page", "kind"),
    [
        (("James Madison",), f"Q: {QUESTION} A: James Madison.", "question_and_answer"),
        (("nobody", "james  MADISON"), f"James Madison. {QUESTION}", "question_and_answer"),
        (("James Madison",), f"{QUESTION} {'Some other words. ' * 300} James Madison", "question"),
        (("James",), f"{QUESTION} Jameson was a writer.", "question"),
        # Its own words are not an answer beside it.
        (("Citibank",), f"{QUESTION} {QUESTION}", "question"),
        # What stands on most pages needs a word that says that it is the answer.
        (("yes",), f"{QUESTION} Well, yes and no.", "question"),
        (("yes",), f'{{"question": "{QUESTION}", "golden_answers": ["yes"]}}', "question_and_answer"),
        (("27",), f"{QUESTION} There are 27 pages.", "question"),
        (("27",), f"{QUESTION} Solution: it is $\\boxed{{27}}$.", "question_and_answer"),
        (("",), f"{QUESTION} answer", "question"),
    ],
)
def test_an_answer_beside_the_question_is_the_graver_sign(answers: tuple[str, ...], page: str, kind: str) -> None:
    assert kinds(QUESTION, answers, page) == [kind]


def test_the_letter_of_a_choice_stands_for_its_text() -> None:
    page = f"{QUESTION} It was James Madison."
    assert kinds(CHOICES, ("B",), page) == ["question_and_answer"]
    assert kinds(CHOICES, ("(A)",), page) == ["question"]


def test_flags_say_where_and_how_much() -> None:
    fingerprint = QuestionFingerprint(QUESTION, ("James Madison",))
    mirror, copy = fingerprint.check("https://huggingface.co/datasets/a/bamboogle", "", f"{QUESTION} James Madison")
    assert mirror.to_dict() == {
        "url": "https://huggingface.co/datasets/a/bamboogle", "kind": "mirror", "overlap": 0.0, "mirror": "data set hub"
    }  # fmt: skip
    assert (copy.kind, copy.overlap) == ("question_and_answer", 1.0)
    words = QUESTION.split()
    (edited,) = fingerprint.check("u", "", " ".join([*words[:-1], "established"]))
    assert edited.overlap == pytest.approx(1 - 1 / (len(words) - GRAM + 1), abs=1e-4)


@pytest.mark.parametrize(
    "url",
    [
        "https://huggingface.co/datasets/Idavidrein/gpqa",
        "HTTP://www.HuggingFace.co:443//datasets/x/y/viewer?row=3",
        "hf.co/datasets/x/y",
        "https://user@huggingface.co./datasets/x/y",
        "https://huggingface.co/%64atasets/x/y",
        "https://datasets-server.huggingface.co/rows?dataset=x%2Fy",
        "https://r.jina.ai/https://huggingface.co/datasets/x/y",
        "https://web.archive.org/web/2024/http://huggingface.co/datasets/x/y",
        "https://hub.example.org/datasets/hotpotqa/hotpot_qa/blob/main/README.md",
        "https://www.kaggle.com/datasets/someone/hotpotqa-dev",
        "https://paperswithcode.com/dataset/triviaqa",
        "https://github.com/hotpotqa/hotpot",
        "https://github.com/someone/LiveCodeBench/blob/main/data.json",
        "https://raw.githubusercontent.com/StonyBrookNLP/musique/main/x.json",
        "https://cdn.jsdelivr.net/gh/hendrycks/math@main/a",
        "https://hotpotqa.github.io",
        "https://artofproblemsolving.com/wiki/index.php/2024_AIME_I_Problems/Problem_1",
        "https://artofproblemsolving.com/wiki/index.php?title=2023_AMC_12A_Problems",
        "https://atcoder.jp/contests/abc366/tasks/abc366_a",
        "https://leetcode.com/contest/weekly-contest-412/problems/x",
    ],
)
def test_places_of_benchmarks_are_known(url: str) -> None:
    assert benchmark_mirror(url)
    assert [f.kind for f in QuestionFingerprint(QUESTION).check(url, "", "")] == ["mirror"]


@pytest.mark.parametrize(
    "url",
    [
        "https://en.wikipedia.org/wiki/HotpotQA",
        "https://arxiv.org/abs/2501.05366",
        "https://huggingface.co/Qwen/QwQ-32B",
        "https://huggingface.co/blog/gpqa",
        "https://nothuggingface.co/datasets",
        "https://example.org/?next=huggingface.co/datasets/x",
        "https://github.com/flaviotordini/musique",
        "https://github.com/someone/gpqa-notes",
        "https://www.kaggle.com/datasets/someone/titanic",
        "https://data.gov/datasets/rainfall-2023",
        "https://artofproblemsolving.com/wiki/index.php/2019_AIME_I_Problems",
        "https://leetcode.com/problems/two-sum",
        "https://atcoder.jp/contests/abc100/tasks/abc100_a",
        "corpus://huggingface.co/datasets",
        "http://[::1",
        "",
    ],
)
def test_other_places_are_not(url: str) -> None:
    assert benchmark_mirror(url) is None


def test_words_are_folded_alike_in_every_script() -> None:
    assert folded_words("Köln’s «naïve» ½ x² soft\u00adware ﬁn, don't") == [
        "kolns",
        "naive",
        "1",
        "2",
        "x2",
        "software",
        "fin",
        "dont",
    ]
    assert folded_words("東京はデータ") == list("東京はデータ")
    assert folded_words("Привет, мир") == ["привет", "мир"]
    assert folded_words("a\ud800b 💡 c") == ["a", "b", "c"]
    assert folded_words("한국어 말") == ["한국어", "말"]
    assert folded_words(r"$\frac{1}{2}x \le \theta$ [asy] draw(a); [/asy] end") == ["1", "2", "x", "θ", "end"]
    assert folded_words(r'{"q": "a\n\nInput é"}') == ["q", "a", "input", "e"]
    assert prose(["the", "7", "x", "2nd", "世"]) == ["the", "世"]


@given(st.text(max_size=60))
def test_any_text_folds_and_folding_again_changes_nothing(text: str) -> None:
    words = folded_words(text.replace("\\", "").replace("&", "").replace("<", ""))
    assert folded_words(" ".join(words)) == words
    QuestionFingerprint(text, (text,)).check(text, text, text)


@given(st.lists(st.sampled_from(["ab", "cd", "ef", "gh", "ij", "kl", "mn"]), min_size=8, max_size=60), st.data())
def test_a_question_is_found_between_any_other_words(words: list[str], data: st.DataObject) -> None:
    before = data.draw(st.lists(st.sampled_from(["ab", "cd", "zz"]), max_size=20))
    after = data.draw(st.lists(st.sampled_from(["gh", "mn", "zz"]), max_size=20))
    assert QuestionFingerprint(" ".join(words)).overlap(" ".join([*before, *words, *after])) == 1.0


@given(st.text(alphabet="\\<[&-\né asyun{}", max_size=300))
def test_markup_that_never_ends_hides_no_question_after_it(text: str) -> None:
    assert kinds(QUESTION, (), f"{text * 50}>\n\n{QUESTION}") == ["question"]


def test_the_leaf_imports_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import metrics.contamination; "
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}; "
        "print(sorted(new - set(sys.stdlib_module_names) - {'metrics'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
