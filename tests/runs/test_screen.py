"""What a person sees: the bar, the table, the differences, the numbers that are none."""

from __future__ import annotations

import io
import math

from rich.console import Console

from metrics.statistics import mean_with_error, paired_difference
from runs.answering import make_record
from runs.benchmarks.question import Question
from runs.printing import percent, print_difference, print_scores
from runs.progress import RunProgress
from runs.summary import summarise


def record(i: int, right: bool, **found: object) -> dict[str, object]:
    given = {"reasoning": f"\\boxed{{{'yes' if right else 'no'}}}", "finish": "answered", **found}
    return make_record(
        Question(f"q{i}", "Is it?", ("yes",), groups={"type": "a" if i % 2 else "b"}), 0, given, "open_qa", 1.0, 3.5
    )


FAILED = {"finish": "error", "error": "gone", "error_kind": "model", "reasoning": ""}


def screen(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, width=150, force_terminal=terminal, color_system=None), file


def test_scores_of_several_methods_stand_side_by_side() -> None:
    console, file = screen()
    good = [record(i, True) for i in range(4)]
    bad = [record(0, False, fallback=True), *[record(i, True, **FAILED) for i in range(1, 4)]]
    print_scores(console, [("one", summarise(good)), ("two", summarise(bad))])
    text = file.getvalue()
    assert "4 questions, scores in percent with 95 % intervals" in text
    assert "em type=a (n=2)" in text
    assert "failed, by kind" in text
    assert "model 3" in text
    assert "direct answer stood in" in text
    assert "answered 1, error 3" in text
    assert "refined to nothing" in text


def test_numbers_that_cannot_be_said_are_a_dash() -> None:
    assert percent(mean_with_error([])) == "-"
    assert percent(mean_with_error([1.0, 1.0])).startswith("100.0 [")
    assert summarise([]).questions == 0
    assert all(not math.isnan(value) for value in summarise([record(0, True)]).metrics().values())


def test_a_difference_of_means_has_no_test_for_single_answers() -> None:
    console, file = screen()
    print_difference(console, "a", "b", paired_difference([1.0, 0.5], [0.0, 0.5]), "em")
    assert "a - b: em +50.0 [" in file.getvalue()
    assert "on 2 questions" in file.getvalue()


def test_a_run_without_a_terminal_prints_a_line_now_and_then() -> None:
    console, file = screen()
    with RunProgress("direct", 10, [record(99, True)], "em", console) as progress:
        for i in range(10):
            progress.add(record(i, i % 2 == 0, **(FAILED if i == 9 else {})))
    lines = file.getvalue().splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("direct: 10/10 · em 54.5 · ")
    assert "questions/min · 1 failed · 0 s left" in lines[-1]


def test_a_terminal_shows_a_bar_with_score_rate_and_time_left() -> None:
    console, file = screen(terminal=True)
    with RunProgress("direct", 2, [record(99, True)], "em", console) as progress:
        progress.add(record(0, True))
        progress.add(record(1, False))
    text = file.getvalue()
    assert "3/3" in text
    assert "em 66.7" in text


def test_nothing_is_shown_when_not_wanted() -> None:
    console, file = screen(terminal=True)
    with RunProgress("direct", 1, [], "em", console, shown=False) as progress:
        assert progress.state().startswith("em 0.0")
        progress.add(record(0, True))
    assert file.getvalue() == ""


def test_what_looks_like_markup_in_a_group_is_shown_as_it_is() -> None:
    console, file = screen()
    question = Question("q", "Is it?", ("yes",), groups={"type": "[/z] [red]"})
    found = {"reasoning": "\\boxed{yes}", "finish": "answered"}
    print_scores(console, [("one", summarise([make_record(question, 0, found, "open_qa", 1.0, 2.0)]))])
    assert "em type=[/z] [red] (n=1)" in file.getvalue()
