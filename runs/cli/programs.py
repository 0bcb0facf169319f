"""`search-o1 programs`."""

from __future__ import annotations

import json

import click

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_URI = click.option(
    "--tracking-uri", help="MLflow store of registered programs; by default MLFLOW_TRACKING_URI or the home folder's."
)


@click.group("programs", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List compiled programs, show one, or lay two beside each other.

    A program is named by its name, its JSON file, or as one registered in MLflow (models:/search-o1/champion). Your own
    lie in the home folder's `programs`; of two that have the same name, yours is meant.

    \b
    search-o1 programs
    search-o1 programs show search_o1--smollm2-135m--open_qa
    search-o1 programs diff mine search_o1--smollm2-135m--open_qa
    """  # noqa: D301
    if ctx.invoked_subcommand is None:
        _print_list(as_json)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def list_command(as_json: bool) -> None:
    """List your own programs, then those that come with the package."""
    _print_list(as_json)


@command.command("show")
@click.argument("program")
@click.option(
    "--demos", type=click.IntRange(min=0), default=1, show_default=True,
    help="How many demos of each predictor to show; 0 means all.",
)  # fmt: skip
@_URI
@_JSON
def show(program: str, demos: int, tracking_uri: str | None, as_json: bool) -> None:
    """Print a program: how it came about, its scores, and the prompt text and demos of each predictor."""
    from runs.program_listing import show_program

    found = show_program(program, tracking_uri=tracking_uri)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=1))
        return
    from rich.console import Console

    from runs.program_printing import print_program

    print_program(Console(), found, demos=demos)


@command.command("diff")
@click.argument("program_a")
@click.argument("program_b")
@click.option(
    "--demos", type=click.IntRange(min=0), default=3, show_default=True,
    help="How many demos of each group to show; 0 means all.",
)  # fmt: skip
@_URI
@_JSON
def diff(program_a: str, program_b: str, demos: int, tracking_uri: str | None, as_json: bool) -> None:
    """Lay two programs beside each other: prompt text word by word, demos by question, and how they came about."""
    from runs.program_diff import diff_programs

    found = diff_programs(program_a, program_b, tracking_uri=tracking_uri)
    if as_json:
        click.echo(json.dumps(found.to_dict(), indent=1))
        return
    from rich.console import Console

    from runs.program_printing import print_diff

    print_diff(Console(), found, demos=demos)


def _print_list(as_json: bool) -> None:
    from runs.program_listing import list_programs

    if as_json:
        for program in list_programs():
            click.echo(json.dumps(program.to_dict()))
        return
    from runs.program_printing import list_line

    for program in list_programs():
        click.echo(list_line(program))
