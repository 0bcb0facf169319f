"""`search-o1 benchmarks`."""

from __future__ import annotations

import click


@click.group("benchmarks", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List benchmarks, or show questions of one."""
    if ctx.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.table import Table

    from runs.benchmarks.registry import BENCHMARKS

    table = Table("name", "splits", "task", "metric", "licence", "what it is")
    for b in BENCHMARKS.values():
        table.add_row(
            b.name, ", ".join(f"{k} {v}" for k, v in b.splits.items()), b.task, b.metric, b.licence, b.summary
        )
    Console().print(table)


@command.command("show")
@click.argument("name")
@click.option("--split", default="", help="Split; by default the test split.")
@click.option("--limit", default=3, show_default=True, help="How many questions.")
def show(name: str, split: str, limit: int) -> None:
    """Print questions of a benchmark with their answers."""
    from runs.benchmarks.registry import load_questions

    for question in load_questions(name, split=split, limit=limit).questions:
        groups = ", ".join(question.groups.values())
        click.echo(f"{question.id} ({groups})\n  {question.question}\n  answers: {' | '.join(question.answers)}")
        if question.gold_titles:
            click.echo(f"  gold documents: {' | '.join(question.gold_titles)}")
