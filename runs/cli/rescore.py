"""`search-o1 rescore`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("rescore")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--backoff",
    type=click.Path(path_type=Path),
    help="File of direct answers, which stand in where FILE gives no valid answer.",
)
@click.option(
    "--kind",
    type=click.Choice(["qa", "choice", "math", "code"]),
    help="Kind of task (default: told by the fields and the name of FILE).",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Question file with the labels or tests, joined by id; what has no prediction counts as wrong.",
)
@click.option("--output", type=click.Path(path_type=Path), help="JSON file to write, with every item's scores.")
@click.option("--unsafe-code", is_flag=True, help="Run programs without isolation where none is to be had.")
def command(
    file: Path, backoff: Path | None, kind: str | None, data: Path | None, output: Path | None, unsafe_code: bool
) -> None:
    """Score predictions that were made elsewhere, in both metric families.

    FILE is an output file of the paper's authors, a journal.jsonl of ours, or JSON or JSONL with id and output.

    \b
    search-o1 rescore outputs/gpqa.qwq.search_o1/diamond.1.2,3:4.json
    search-o1 rescore diamond.json --backoff direct.json
    search-o1 rescore predictions.jsonl --data questions.jsonl --kind math --output scores.json
    """  # noqa: D301
    from rich.console import Console

    from runs.rescoring import rescore
    from runs.rescoring_printing import print_rescoring

    found = rescore(file, backoff=backoff, kind=kind, data=data, output=output, unsafe_code=unsafe_code)
    print_rescoring(Console(markup=False), found)
    if output is not None:
        click.echo(f"Written: {output}")
