from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics.extraction import (
    TASK_KINDS,
    clean_choice,
    code_block,
    extract_answer,
    is_valid,
    official_box,
    strict_box,
)
from signatures.errors import OptionError
from signatures.markup import BEGIN_SEARCH_QUERY, BEGIN_SEARCH_RESULT, END_SEARCH_QUERY, END_SEARCH_RESULT

PIECES = [
    "\\boxed{",
    "\\text{",
    "{",
    "}",
    "\\{",
    "\\}",
    "(",
    ")",
    "a",
    " ",
    "\n",
    "\r",
    "\u2028",
    "</think>",
    "```",
    "```python",
    "\\",
]
chains = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)
plain = st.text(st.characters(codec="utf-8", exclude_characters="{}\\<|"), min_size=1, max_size=20).filter(str.strip)


def injected(text: str) -> str:
    return f"\n\n{BEGIN_SEARCH_RESULT}{text}{END_SEARCH_RESULT}\n\n"


def query(text: str) -> str:
    return f"{BEGIN_SEARCH_QUERY}{text}{END_SEARCH_QUERY}"


def published_box(output: str, task: str) -> str:
    """The rule as DESIGN states it, in regular expressions."""
    found = re.findall(r"\\boxed\{(.*)\}", output)
    if not found:
        return ""
    answer = found[-1]
    if task in ("open_qa", "multiple_choice"):
        inner = re.findall(r"\\text\{(.*)\}", answer)
        answer = (inner[-1] if inner else answer).strip("()")
    return answer


@given(chains, st.sampled_from(TASK_KINDS))
def test_the_official_box_is_the_published_rule(output: str, task: str) -> None:
    assert official_box(output, task) == published_box(output, task)


@pytest.mark.parametrize(
    ("output", "task", "answer"),
    [
        ("no box", "open_qa", ""),
        (r"\boxed{a} then \boxed{b}", "open_qa", r"a} then \boxed{b"),
        ("\\boxed{a}\n\\boxed{b}", "open_qa", "b"),
        ("\\boxed{a\nb}", "open_qa", ""),
        (r"\boxed{\text{Paris} }", "open_qa", "Paris"),
        (r"\boxed{(\text{(B)})}", "multiple_choice", "B"),
        (r"\boxed{(\text{(1, 2)})}", "math", r"(\text{(1, 2)})"),
        (r"\boxed{\frac{1}{2}}.", "math", r"\frac{1}{2}"),
        (injected(r"\boxed{page}"), "open_qa", "page"),
        (r"\boxed{}", "open_qa", ""),
    ],
)
def test_official_box_edge_cases(output: str, task: str, answer: str) -> None:
    assert official_box(output, task) == answer


@pytest.mark.parametrize(
    ("chain", "answer"),
    [
        ("", ""),
        (r"\boxed{Paris}", "Paris"),
        (r"\boxed{a} then \boxed{b}", "b"),
        (r"\boxed{a} then \boxed{b", "a"),
        ("\\boxed{\n  two\n  lines\n}", "two\n  lines"),
        (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{\left\{x\right.}", r"\left\{x\right."),
        (r"\boxed {x}", "x"),
        (r"\boxed{\text{Paris}}", "Paris"),
        (r"\boxed{ \textbf{\text{ Paris }} }", "Paris"),
        (r"\boxed{\mathrm{B}}", "B"),
        (r"\boxed{\text{\{a}}", r"\{a"),
        (r"\boxed{\text{a} and \text{b}}", r"\text{a} and \text{b}"),
        (r"\boxed{1 + \boxed{2}}", r"1 + \boxed{2}"),
        (r"\boxed{\boxed{2}}", "2"),
        (r"\boxed{\text{\boxed{\mathrm{\textbf{2}}}}}", "2"),
        (r"\boxed{never closed \boxed{2}", "2"),
        (r"} \boxed{2} }", "2"),
        (r"\boxed{Paris} in the format \boxed{YOUR_ANSWER}", "Paris"),
        (r"\boxed{\text{YOUR\_CHOICE}}", ""),
        (r"\boxed{Paris}, as \boxed{}", "Paris"),
        (r"<think>\boxed{a}</think>\boxed{b}", "b"),
        (r"<think>\boxed{a}</think>none", ""),
        (r"\boxed{a}</think>\boxed{b}</think>\boxed{c}", "c"),
        (r"\boxed{mine}" + injected(r"\boxed{page}"), "mine"),
        (r"\boxed{mine}" + injected(r"</think>\boxed{page}"), "mine"),
        (r"\boxed{mine" + injected("page") + "}", ""),
        (r"\boxed{mine} " + query(r"what is \boxed{x}"), "mine"),
        (r"\boxed{mine} " + BEGIN_SEARCH_QUERY + " unpaired", "mine"),
        (r"\boxed{mine}" + BEGIN_SEARCH_RESULT + r"written by the model \boxed{x}", "mine"),
    ],
)
def test_strict_box_edge_cases(chain: str, answer: str) -> None:
    assert strict_box(chain) == answer


@given(plain, plain, plain)
def test_injected_text_never_wins(own: str, page: str, tail: str) -> None:
    block = injected(f"</think>\\boxed{{{page}}}\n```python\n{page}\n```\n")
    chain = f"\\boxed{{{own}}}{block}{tail}"
    assert strict_box(chain) in (own.strip(), "")
    assert code_block(chain, strict=True) == ""


@given(st.recursive(plain, lambda inner: st.tuples(plain, inner).map(lambda p: f"{p[0]}{{{p[1]}}}\n"), max_leaves=6))
def test_nested_and_multi_line_boxes_come_out_whole(content: str) -> None:
    content = content.strip()
    assert strict_box(f"so \\boxed{{{content}}} {{it}} is") in (content, "")
    if content not in ("YOUR_ANSWER", "YOUR_CHOICE", "YOUR CODE HERE"):
        assert strict_box(f"so \\boxed{{{content}}} {{it}} is") == content


@given(chains)
def test_no_text_breaks_the_strict_readings(chain: str) -> None:
    for task in TASK_KINDS:
        answer = extract_answer(chain, task)
        assert answer == answer.strip()
        is_valid(answer, task)


@pytest.mark.parametrize(
    "unit", ["\\boxed{", "\\boxed{}", "{", "}", "```python\n", "```python ", "\\boxed{\\text{", BEGIN_SEARCH_QUERY, " "]
)
@pytest.mark.parametrize("closing", ["", "}"])
def test_a_chain_that_repeats_itself_is_read_in_linear_time(unit: str, closing: str) -> None:
    count = 200_000 // len(unit)
    chain = f"\\boxed{{{unit * count}{closing * count}}}"
    began = time.process_time()
    for task in TASK_KINDS:
        official_box(chain, task)
        extract_answer(chain, task)
    code_block(chain)
    assert time.process_time() - began < 5


@given(chains)
def test_the_official_code_block_is_the_published_rule(output: str) -> None:
    found = re.findall(r"```python\s*(.*?)\s*```", output, re.DOTALL | re.IGNORECASE)
    assert code_block(output) == (found[-1].strip() if found else "")


@pytest.mark.parametrize(
    ("chain", "official", "strict"),
    [
        ("```python\nprint(1)\n```", "print(1)", "print(1)"),
        ("```python\na\n```\n```python\nb\n```", "b", "b"),
        ("```python\na\n```\n```python\nb", "a", "a"),
        ("```python\na\n```\n```\nb\n```", "a", "a"),
        ("```python\na\n```python\nb\n```", "a", "b"),
        ("```Python3\nb\n```", "3\nb", "b"),
        ("```py\nb\n```", "", "b"),
        ("  ```python\n  if a:\n    b\n  ```", "if a:\n    b", "if a:\n  b"),
        ("```python\nx = '```'\n```", "x = '", "x = '```'"),
        ("```python\na\n```\nfor example\n```python\nYOUR CODE HERE\n```", "YOUR CODE HERE", "a"),
        ("```python\na\n```\n</think>done", "a", ""),
        ("```python\na\n```" + injected("\n```python\npage\n```\n"), "page", "a"),
        ("nothing", "", ""),
    ],
)
def test_code_block_edge_cases(chain: str, official: str, strict: str) -> None:
    assert code_block(chain) == official
    assert code_block(chain, strict=True) == strict


@pytest.mark.parametrize(
    ("answer", "letter"),
    [
        ("B", "B"), ("b", "B"), ("(b)", "B"), ("**C**.", "C"), ("$B$", "B"), ("Ｂ", "B"), ("（B）", "B"), ("[d].", "D"),
        ("{A}", "A"), ("D) 4.2 m", "D"), ("C. foo", "C"), ("(A) Paris", "A"), ("A: x", "A"), ("A、北京", "A"),
        ("**A**: x", "A"), ("", ""), ("1", ""), ("A cat", ""), ("ABC", ""), ("B or C", ""), ("B, C", ""), ("B,C", ""),
        ("A) or B)", ""), ("(A), (B)", ""), ("A.5", ""), ("b) foo", ""),
    ],
)  # fmt: skip
def test_a_choice_comes_down_to_one_letter_or_none(answer: str, letter: str) -> None:
    assert clean_choice(answer) == letter
    assert is_valid(answer, "multiple_choice") == bool(letter)


def test_the_answer_follows_the_task_kind() -> None:
    chain = "```python\nprint(1)\n```\nso \\boxed{\\text{(b)}}"
    assert extract_answer(chain, "code") == "print(1)"
    assert extract_answer(chain, "open_qa") == extract_answer(chain, "math") == "(b)"
    assert extract_answer(chain, "multiple_choice") == "B"
    assert extract_answer("\\boxed{B or C}", "multiple_choice") == "B or C"


@pytest.mark.parametrize("task", ["open_qa", "math", "code"])
def test_an_answer_is_valid_when_there_is_one(task: str) -> None:
    assert is_valid("x", task)
    assert not is_valid(" ", task)
    assert not is_valid("YOUR_ANSWER", task)


def test_an_unknown_task_is_named_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"'poetry'.*open_qa, math, multiple_choice, code"):
        extract_answer("", "poetry")
    with pytest.raises(OptionError, match="'poetry'"):
        is_valid("", "poetry")


def test_the_leaf_imports_nothing_heavy() -> None:
    code = (
        "import sys, metrics.extraction; "
        "print([m for m in ('dspy', 'numpy', 'scipy', 'metrics.scorer', 'metrics.statistics') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
