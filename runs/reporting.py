"""Reports of finished runs: beside the paper's tables, as one table, or as the paper's figures: `search-o1 report`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from runs.home import Home
from runs.reports.averages import Average, Gain
from runs.reports.cells import Cell
from runs.reports.fallback import Outcomes, outcomes_of
from runs.reports.latex import to_latex
from runs.reports.layout import Document
from runs.reports.loading import ReportRun, load_runs
from runs.reports.markdown import to_markdown
from runs.reports.paper_report import compare_with_paper
from runs.reports.plain_report import plain_document
from runs.reports.web_page import to_html
from runs.user_path import user_path
from signatures.errors import DataError, OptionError

FORMATS: dict[str, Callable[[Document], str]] = {"markdown": to_markdown, "html": to_html, "latex": to_latex}
FIGURES = ("topk", "uncertainty")
_SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".html": "html", ".htm": "html", ".tex": "latex"}


@dataclass(frozen=True)
class Report:
    """A report of runs.

    Attributes:
        runs: The runs.
        text: The report in its format; empty where only a figure was drawn.
        format: One of `FORMATS`.
        path: File that the report or the figure was written to, or None.
        document: The layout before it was rendered, or None for a figure.
        cells: Our numbers beside the paper's; empty without `paper`.
        averages: Averages over sets, likewise.
        gains: Relative gains, likewise.
        notes: What a reader must know of a comparison with the paper, or of a figure.
    """

    runs: tuple[ReportRun, ...]
    text: str
    format: str
    path: Path | None = None
    document: Document | None = None
    cells: tuple[Cell, ...] = ()
    averages: tuple[Average, ...] = ()
    gains: tuple[Gain, ...] = ()
    notes: tuple[str, ...] = ()


def report(
    runs: Sequence[str | Path],
    *,
    paper: bool = False,
    format: str | None = None,
    output: str | Path | None = None,
    figure: str | None = None,
    home: Home | None = None,
) -> Report:
    """Report finished runs.

    Args:
        runs: Ids of runs, parts of ids that no other run shares, or folders.
        paper: Lay them beside the paper's Tables 1, 2 and 3; otherwise they make one table.
        format: `markdown`, `html` or `latex`; None goes by the suffix of `output`, else Markdown.
        output: File to write; a figure's suffix chooses PDF, SVG or PNG.
        figure: Draw a figure instead: `topk` (the paper's Figure 3) or `uncertainty` (Figure 1).
        home: Home folder in which ids are looked up; by default the user's.

    Returns:
        The report.

    Raises:
        OptionError: A run, format, figure or suffix is unknown, no run is given, or a figure has no file to go to.
        DataError: A run is damaged, the file cannot be written, or the runs do not make the figure.
    """
    if not runs:
        raise OptionError("Name at least one run to report: an id, the start of one, or a run's folder.")
    path = user_path(output) if output is not None else None
    if figure is not None:
        return _figure(runs, figure, path, home, format, paper)
    chosen = _format(format, path)
    loaded = load_runs(runs, home)
    if paper:
        found = compare_with_paper(outcomes_of(loaded))
        text = FORMATS[chosen](found.document)
        made = Report(
            tuple(loaded), text, chosen, path, found.document, found.cells, found.averages, found.gains, found.notes
        )
    else:
        document = plain_document([Outcomes(run) for run in loaded])
        made = Report(tuple(loaded), FORMATS[chosen](document), chosen, path, document)
    if path is not None:
        _write(path, made.text)
    return made


def _figure(
    runs: Sequence[str | Path], figure: str, path: Path | None, home: Home | None, format: str | None, paper: bool
) -> Report:
    if figure not in FIGURES:
        raise OptionError(f"Unknown figure {figure!r}; known: {', '.join(FIGURES)}.")
    if format is not None or paper:
        raise OptionError(f"--figure {figure} draws a picture: leave out --paper and --format.")
    if path is None:
        raise OptionError(f"--figure {figure} needs a file: --output {figure}.pdf (or .svg, .png).")
    from runs.reports.figures import check_suffix, save_figure
    from runs.reports.run_table import learned_notes, missing_notes
    from runs.reports.topk_figure import draw_topk, topk_notes
    from runs.reports.uncertainty_figure import draw_uncertainty

    check_suffix(path)
    loaded = load_runs(runs, home)
    outcomes = outcomes_of(loaded)
    topk = figure == "topk"
    save_figure(draw_topk(outcomes) if topk else draw_uncertainty(outcomes), path)
    notes = (*missing_notes(outcomes), *learned_notes(outcomes), *(topk_notes(outcomes) if topk else ()))
    return Report(tuple(loaded), "", path.suffix[1:], path, notes=notes)


def _format(format: str | None, path: Path | None) -> str:
    if format is not None and format not in FORMATS:
        raise OptionError(f"Unknown format {format!r}; known: {', '.join(FORMATS)}.")
    if format is not None or path is None:
        return format or "markdown"
    if path.suffix.lower() not in _SUFFIXES:
        raise OptionError(f"--output {path}: its suffix names no format; use {', '.join(_SUFFIXES)}, or --format.")
    return _SUFFIXES[path.suffix.lower()]


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}; choose another --output.") from error
