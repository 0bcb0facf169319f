"""`search-o1 benchmarks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click


@click.group("benchmarks", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List benchmarks, or show questions of one."""
    if ctx.invoked_subcommand is not None:
        return
    from runs.listing import list_benchmarks

    entries = list_benchmarks()
    if as_json:
        for entry in entries:
            click.echo(json.dumps(entry.to_dict(), ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Column, Table

    table = Table(Column("name", no_wrap=True), "questions", "metric", "by", "licence", "login", "what it is")
    for entry in entries:
        splits = ", ".join(f"{split} {'?' if count is None else count}" for split, count in entry.splits.items())
        login = "needed" if entry.login else "-"
        table.add_row(
            entry.name, splits, entry.metric, ", ".join(entry.groups), entry.licence, login, entry.summary
        )  # fmt: skip
    Console(markup=False).print(table)


@command.command("show")
@click.argument("name", default="")
@click.option("--split", default="", help="Split; by default the benchmark's own.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=3, show_default=True, help="How many questions; 0 means all."
)
@click.option("--data", type=click.Path(path_type=Path), help="Question file to take instead: JSON, JSONL or Parquet.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def show(name: str, split: str, limit: int, data: Path | None, as_json: bool) -> None:
    """Print questions of a benchmark with their answers.

    NAME is a benchmark or a Python file that defines one; with --data it may be left out.
    """
    from runs.listing import describe_question, show_benchmark

    if not name and data is None:
        raise click.UsageError("Name a benchmark (see `search-o1 benchmarks`) or give --data FILE.")
    chosen = show_benchmark(name, data=data, split=split, limit=limit)
    for question in chosen.questions:
        told = describe_question(question)
        click.echo(json.dumps(told, ensure_ascii=False) if as_json else _as_text(told))
    if chosen.revision and not as_json:
        click.echo(f"{chosen.name} {chosen.split}, revision {chosen.revision}")


def _as_text(told: dict[str, Any]) -> str:
    groups = ", ".join(told.get("groups", {}).values())
    lines = [f"{told['id']}{f' ({groups})' if groups else ''}"]
    lines += [f"  {line}" for line in told["question"].rstrip("\n").split("\n")]
    if "answers" in told:
        lines.append(f"  answers: {' | '.join(told['answers'])}")
    if "tests" in told:
        tests = told["tests"]
        called = f", calling {tests['function']}" if tests["function"] else ", as a program"
        lines.append(f"  tests: {tests['public']} public, {tests['private']} private{called}")
    if "gold_titles" in told:
        lines.append(f"  gold documents: {' | '.join(told['gold_titles'])}")
    return "\n".join(lines)
