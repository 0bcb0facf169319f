"""`search-o1 report`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--paper", is_flag=True, help="Lay the runs beside the paper's Tables 1, 2 and 3.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "html", "latex"]),
    help="How it is written (default: by the suffix of --output, else markdown).",
)
@click.option("--output", type=click.Path(path_type=Path), help="File to write instead of the screen.")
@click.option(
    "--figure",
    type=click.Choice(["topk", "uncertainty"]),
    help="Draw a figure instead: scores by hits a search, or words of doubt a chain.",
)
def command(runs: tuple[str, ...], paper: bool, form: str | None, output: Path | None, figure: str | None) -> None:
    """Report finished runs: as a table, beside the paper's tables, or as its figures.

    RUN is a run's id, a part of it that no other run has, or its folder.

    \b
    search-o1 report gpqa-search_o1 gpqa-direct --paper
    search-o1 report RUN RUN --paper --output tables.tex
    search-o1 report RUN RUN RUN RUN --figure topk --output topk.pdf
    """  # noqa: D301
    from runs.reporting import report

    made = report(runs, paper=paper, format=form, output=output, figure=figure)
    if made.path is None:
        click.echo(made.text, nl=False)
    else:
        click.echo(f"Written: {made.path}")
        if figure is not None:
            for note in made.notes:
                click.echo(f"Note: {note}")
