"""`search-o1 compare`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("compare")
@click.argument("run_a")
@click.argument("run_b")
@click.option("--metric", help="Metric; by default the headline of the runs' task: em, math_equal or pass@1.")
@click.option(
    "--family", type=click.Choice(["strict", "official"]), default="strict", show_default=True, help="Metric family."
)
@click.option("--group", default="", help="Groups to tell apart, e.g. type; by default all that the questions have.")
@click.option("--shared", is_flag=True, help="Compare unfinished or different runs on the questions they share.")
@click.option(
    "--flips", type=click.IntRange(min=0), default=20, show_default=True,
    help="How many questions gained and lost to show; 0 means all.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page with both chains of each such question.",
)
def command(
    run_a: str, run_b: str, metric: str | None, family: str, group: str, shared: bool, flips: int, as_json: bool,
    html: Path | None,
) -> None:  # fmt: skip
    """Compare two runs question by question.

    RUN_A is the baseline, and every difference is B - A. A run is named by its id, by any part of it that no other run
    has (its hash), or by its folder. Beside the difference stand its 95 % interval and p, the same by group and without
    contaminated questions, how many questions it would take to see it, and the questions that flipped.

    \b
    search-o1 compare quickstart-direct quickstart-search_o1
    search-o1 compare 57db8c49 a8c55409 --metric f1 --family official --group type
    search-o1 compare 57db8c49 a8c55409 --html flipped.html

    Exit code 2 when the runs do not compare: other questions, other versions of the metrics, unfinished.
    """  # noqa: D301
    from runs.comparing import compare

    found = compare(run_a, run_b, metric=metric, family=family, group=group, shared=shared)
    if html is not None:
        from runs.comparison_page import comparison_page
        from signatures.errors import OptionError

        try:
            html.write_text(comparison_page(found), encoding="utf-8", errors="replace")
        except OSError as error:
            raise OptionError(f"--html {html}: cannot be written: {error.strerror}.") from None
    if as_json:
        import json

        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, indent=2))
        return
    from rich.console import Console

    from runs.comparison_printing import print_comparison

    print_comparison(Console(markup=False), found, flips=flips)
    if html is not None:
        click.echo(f"Page: {html}")
