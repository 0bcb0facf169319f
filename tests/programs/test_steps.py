"""Previous reasoning and final information: what passes between the chain and Reason-in-Documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from programs import final_information, previous_reasoning
from programs.steps import chain_steps, read_refinement
from signatures.errors import OptionError
from tests.programs.world import BP, BQ, BR, EP, EQ, ER, message, query

NOTHING = "No helpful information found."
NOTHING_ZH = "未找到有用信息。"


def lines(*numbers: int) -> str:
    return "\n".join(f"line {n}" for n in numbers)


def steps(*parts: int | str) -> str:
    return "\n\n".join("..." if part == "..." else f"Step {part}: line {part}" for part in parts)


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ("", ""),
        ("\n\n \n", ""),
        ("one", "Step 1: one"),
        ("  one  \n\n\n two\n", "Step 1: one\n\nStep 2: two"),
        (lines(1, 2, 3, 4), steps(1, 2, 3, 4)),
        (lines(1, 2, 3, 4, 5), steps(1, "...", 3, 4, 5)),
        (lines(*range(1, 10)), steps(1, "...", 7, 8, 9)),
    ],
)
def test_up_to_four_steps_stay_and_of_more_the_first_and_the_last_three(chain, expected) -> None:
    assert previous_reasoning(chain) == expected


def test_steps_with_a_query_or_a_result_stay_and_each_gap_becomes_one_ellipsis() -> None:
    chain = f"{lines(1, 2, 3)}\n{query('q')}\n\n{BR}found\n\nthis{ER}\n\n{lines(6, 7, 8, 9, 10)}"
    assert previous_reasoning(chain) == "\n\n".join(
        [
            "Step 1: line 1",
            "...",
            f"Step 4: {query('q')}",
            f"Step 5: {BR}found this{ER}",
            "...",
            "Step 8: line 8",
            "Step 9: line 9",
            "Step 10: line 10",
        ]
    )


def test_an_injected_block_is_one_step_with_its_line_breaks_folded() -> None:
    assert chain_steps(f"a{message('Two' + chr(10) + 'lines')}b") == ["a", f"{BR} Two lines {ER}", "b"]
    assert chain_steps(f"{BP}\n{{\n  1\n}}\n{EP}") == [f"{BP} {{ 1 }} {EP}"]


def test_a_query_over_lines_is_cut_into_steps_that_keep_its_begin_marker() -> None:
    chain = f"{lines(1, 2, 3)}\n{BQ}\nwhat{EQ}\n{lines(6, 7, 8, 9)}"
    assert f"Step 4: {BQ}" in previous_reasoning(chain)


@given(
    st.lists(st.sampled_from(["a", "b\n", "\n\n", query("q"), message("m"), " ", "\r", "\x85", "\u2028"]), max_size=30)
)
def test_previous_reasoning_never_fails_and_keeps_original_positions(parts) -> None:
    chain = "".join(parts)
    all_steps = chain_steps(chain)
    for part in previous_reasoning(chain).split("\n\n"):
        if part and part != "...":
            head, _, text = part.partition(": ")
            assert all_steps[int(head.removeprefix("Step ")) - 1] == text


FOUND = [
    ("**Final Information**\n\nIt is so.", "It is so."),
    ("Thinking.\n\n**Final Information**\n\nIt is so.\n\nReally.", "It is so.\n\nReally."),
    ("# Final Information:\nIt is so.", "It is so."),
    ("### Final Information\nIt is so.", "It is so."),
    ("Final Information\nIt is so.", "It is so."),
    ("Final Information:\n\nIt is so.", "It is so."),
    ("**Final Information:**\nIt is so.", "It is so."),
    ("**Final Information**:\nIt is so.", "It is so."),
    ("final information\nIt is so.", "It is so."),
    ("So **Final Information** It is so.", "It is so."),
    ("I will use **Final Information** as told.\n\n**Final Information**\n\nIt is so.", "It is so."),
    ("**Final Information**\nOld.\n**Final Information**\nNew.", "New."),
    ("**Final Information**\ndraft</think>\n**Final Information**\nIt is so.", "It is so."),
    ("a</think>b</think>**Final Information**\n\nIt is so.", "It is so."),
    ("**Final Information**\n\n```\nIt is so.\n```", "It is so."),
    ("```markdown\n**Final Information**\n\nIt is so.\n```", "It is so."),
    ("**Final Information**\n\nUse:\n```python\nprint(1)\n```\nDone.", "Use:\nprint(1)\nDone."),
    ("**最终信息**\n\n是这样。", "是这样。"),
    ("# 最终信息:\n是这样。", "是这样。"),
    ("最终信息：\n是这样。", "是这样。"),
    ("**Final Information**\n\n\\boxed{x} {y}", "\\boxed{x} {y}"),
]


@pytest.mark.parametrize(("reply", "expected"), FOUND)
def test_final_information_is_what_follows_the_heading(reply, expected) -> None:
    assert final_information(reply) == expected
    assert read_refinement(reply)[1] == "found"


ABSENT = [
    "",
    "It is so.",
    "The final information is that it is so.",
    "**Final Information**",
    "**Final Information**\n\n```\n```",
    "**Final Information**\nIt is so.</think>\nNothing after it.",
]


@pytest.mark.parametrize("reply", ABSENT)
def test_an_absent_heading_gives_the_sentence_that_nothing_was_found(reply) -> None:
    assert read_refinement(reply) == (NOTHING, "no_heading")
    assert final_information(reply, "zh") == NOTHING_ZH


@pytest.mark.parametrize(
    "reply",
    [
        f"**Final Information**\n\n{NOTHING}",
        f"**最终信息**\n\n{NOTHING_ZH}",
        "**Final Information**\nNo helpful information found",
    ],
)
def test_a_refinement_that_says_that_nothing_was_found_is_counted_apart_in_both_languages(reply) -> None:
    assert read_refinement(reply)[1] == read_refinement(reply, "zh")[1] == "said_none"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(OptionError, match="fr"):
        final_information("x", "fr")


@given(st.text(alphabet="*#`F\n Final Information:</think>x最终信息", max_size=60))
def test_final_information_is_never_empty(reply) -> None:
    assert final_information(reply)
