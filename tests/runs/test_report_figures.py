"""The paper's Figures 1 and 3 from runs: the right numbers, the same bytes, in three formats."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest

from metrics.chain_statistics import UNCERTAINTY_WORDS
from runs.home import Home
from runs.reporting import report
from runs.reports.fallback import outcomes_of
from runs.reports.figures import looks_of
from runs.reports.loading import load_runs
from runs.reports.systems import System
from runs.reports.topk_figure import draw_topk
from runs.reports.uncertainty_figure import draw_uncertainty, uncertainty_rates
from signatures.errors import DataError, OptionError
from tests.runs.report_world import write_run

TOP_KS = (1, 3, 5, 10)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def sweep(home: Home, method: str = "search_o1") -> list[str]:
    return [
        write_run(
            home, "gpqa", method, [1] * (k + 5) + [0] * (15 - k), split="diamond", name=f"{method}-{k}", top_k=k
        ).name
        for k in TOP_KS
    ]


def test_the_curve_goes_through_the_scores_at_each_top_k(home: Home) -> None:
    names = [*sweep(home), write_run(home, "gpqa", "direct", [1] * 8 + [0] * 12, split="diamond", name="direct").name]
    figure = draw_topk(outcomes_of(load_runs(names, home)))
    (ax,) = figure.axes
    curve = next(line for line in ax.lines if len(line.get_xdata()) == 4 and line.get_linestyle() == "-")
    assert list(curve.get_ydata()) == pytest.approx([30.0, 40.0, 50.0, 75.0])
    assert [round(x) for x in curve.get_xdata()] == list(TOP_KS)
    levels = {
        round(float(line.get_ydata()[0]), 1): line.get_linestyle() for line in ax.lines if len(line.get_xdata()) == 2
    }
    # Ours is drawn through, the paper's dashed; what the paper has of Search-o1 is a hollow point.
    assert (levels[40.0], levels[58.1]) == ("-", "--")
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [float(line.get_ydata()[0]) for line in hollow] == [63.6]


def test_runs_that_make_no_curve_are_refused_with_the_way_out(home: Home) -> None:
    one = write_run(home, "nq", "search_o1", [1, 0], name="one", top_k=3).name
    with pytest.raises(DataError, match=r"several top_k .*--set top_k=.*given: one at 3"):
        report([one], home=home, figure="topk", output=home.root / "x.pdf")
    again = write_run(home, "nq", "search_o1", [1, 0], name="again", top_k=3, max_searches=2).name
    with pytest.raises(DataError, match="Runs one and again are the same method, model, set and top_k = 3"):
        report([one, again], home=home, figure="topk", output=home.root / "x.pdf")


def test_a_curve_whose_runs_differ_in_more_than_top_k_is_said_to(home: Home) -> None:
    names = sweep(home)
    assert report(names, home=home, figure="topk", output=home.root / "x.svg").notes == ()
    other = write_run(home, "gpqa", "search_o1", [1, 0], split="diamond", name="k20", top_k=20, max_searches=2).name
    (note,) = report([*names, other], home=home, figure="topk", output=home.root / "x.svg").notes
    assert (
        "Search-o1, QwQ-32B-Preview on GPQA diamond: its runs differ in more than top_k, namely in max_searches" in note
    )


def test_words_of_doubt_are_counted_a_chain(home: Home) -> None:
    run = write_run(home, "nq", "search_o1", [1, 0, 1], words="likely, likely; alternatively", samples=2)
    rates = uncertainty_rates(load_runs([run], home)[0])
    assert {word: rates[word].mean for word in UNCERTAINTY_WORDS} == {
        "perhaps": 1.0, "alternatively": 1.0, "wait": 1.0, "likely": 2.0,
    }  # fmt: skip
    assert rates["likely"].n == 3
    figure = draw_uncertainty(outcomes_of(load_runs([run], home)))
    (ax,) = figure.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == list(UNCERTAINTY_WORDS)
    points = next(line for line in ax.lines if len(line.get_ydata()) == 4)
    assert list(points.get_ydata()) == [1.0, 1.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("suffix", "magic"), [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG"), ("PNG", b"\x89PNG")]
)
def test_the_same_runs_give_the_same_bytes_whatever_the_users_style(home: Home, suffix: str, magic: bytes) -> None:
    names = sweep(home)
    files = []
    for turn, style in enumerate(({}, {"font.size": 30, "svg.hashsalt": "x", "axes.facecolor": "black"})):
        path = home.root / f"{turn}.{suffix}"
        with matplotlib.rc_context(style):
            assert report(names, home=home, figure="topk", output=path).path == path
        files.append(path.read_bytes())
    assert files[0][: len(magic)] == magic
    if suffix == "pdf":
        assert b"CreationDate" not in files[0]
    if suffix == "svg":
        assert b"<dc:date>" not in files[0]
    assert len(files[0]) > 2_000
    assert files[0] == files[1]


def test_systems_of_a_figure_differ_in_colour_and_marker() -> None:
    systems = [System(m, model) for model in ("a", "b") for m in ("direct", "standard_rag", "rag_agent", "search_o1")]
    looks = looks_of(systems)
    assert len({colour for colour, _ in looks}) == len({marker for _, marker in looks}) == 8


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"figure": "pie", "output": "x.pdf"}, "Unknown figure 'pie'; known: topk, uncertainty"),
        ({"figure": "topk"}, "needs a file: --output topk.pdf"),
        ({"figure": "topk", "output": "x.gif"}, r"'x.gif'; its name must end in \.pdf, \.svg, \.png"),
        ({"figure": "topk", "output": "x.pdf", "paper": True}, "leave out --paper and --format"),
    ],
)
def test_mistakes_of_figures_are_told(home: Home, options: dict[str, object], complaint: str) -> None:
    run = write_run(home, "nq", "direct", [1]).name
    with pytest.raises(OptionError, match=complaint):
        report([run], home=home, **options)  # type: ignore[arg-type]
