"""`search-o1 index`."""

from __future__ import annotations

from pathlib import Path

import click

from runs.cli.embed import embed


@click.group("index")
def command() -> None:
    """Build, search and look after local indexes of documents."""


command.add_command(embed)


@command.command("build")
@click.argument("name")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Stop at the first malformed line, row or file instead of skipping it.")
@click.option("--fresh", is_flag=True, help="Start anew instead of going on after a build that was stopped.")
def build(name: str, files: tuple[Path, ...], strict: bool, fresh: bool) -> None:
    """Index FILES under NAME; an index of that name is replaced once the new one is whole.

    \b
    JSONL     one object a line: {id, title, text} or FlashRAG's {id, contents};
              also .gz, .bz2, .xz, .zst
    Parquet   the same as columns
    folders   of Markdown, HTML, PDF and plain text; the path in the folder is the id,
              parts of a long file are PATH#1, PATH#2, ...; JSONL and Parquet files too

    Documents are streamed, so a corpus may be larger than memory. The same command goes on where a stopped or killed
    one was. What is malformed, longer than 10 MB, or repeats an id is skipped and counted.
    """  # noqa: D301
    from runs.indexing import build_index

    info = build_index(name, files, strict=strict, fresh=fresh)
    skipped = f", {info.skipped:,} skipped" if info.skipped else ""
    click.echo(
        f"Index {name}: {info.documents:,} documents in {info.seconds:.1f} s{skipped}, "
        f"corpus hash {info.corpus_hash[:12]}"
    )


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List the indexes."""
    from rich.console import Console
    from rich.table import Table

    from runs.indexing import list_indexes

    held = list_indexes()
    if as_json:
        _print_json([_record(index) for index in held])
        return
    if not held:
        click.echo("No index yet. Build one with: search-o1 index build NAME FILE")
        return
    table = Table()
    for column in ("index", "documents", "on disk", "built", "corpus hash", "dense"):
        table.add_column(column, justify="right" if column in ("documents", "on disk") else "left")
    for index in held:
        if index.info is None:
            table.add_row(index.name, "-", _size(index.bytes), "-", "-", "no", style="dim")
            continue
        built, corpus_hash = index.info.created[:10], index.info.corpus_hash[:12]
        dense = "yes" if index.dense else "no"
        table.add_row(index.name, f"{index.info.documents:,}", _size(index.bytes), built, corpus_hash, dense)
    Console(soft_wrap=True).print(table)
    for index in held:
        if index.problem:
            click.echo(f"{index.name}: {index.problem}")


@command.command("info")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(name: str, as_json: bool) -> None:
    """Show what the index NAME holds."""
    from runs.indexing import index_info

    held = index_info(name)
    if as_json:
        _print_json(_record(held))
        return
    lines = {"folder": str(held.directory), "on disk": _size(held.bytes), "dense": "yes" if held.dense else "no"}
    if held.info is not None:
        lines |= {
            "documents": f"{held.info.documents:,}",
            "skipped": f"{held.info.skipped:,}",
            "built from": f"{', '.join(held.info.sources)} ({_size(held.info.bytes)})",
            "built": f"{held.info.created} in {held.info.seconds:.1f} s",
            "corpus hash": held.info.corpus_hash,
            "format": f"{held.info.format_version}, analysis {held.info.analysis_version}",
        }
    for label, value in lines.items():
        click.echo(f"{label:12} {value}")
    if held.problem:
        click.echo(held.problem)


@command.command("search")
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="QUERY...")
@click.option("--k", default=5, show_default=True, help="How many hits.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def search(name: str, words: tuple[str, ...], k: int, as_json: bool) -> None:
    """Search the index NAME."""
    from runs.indexing import search_index

    hits = search_index(name, " ".join(words), k)
    if as_json:
        _print_json([hit.to_dict() for hit in hits])
        return
    if not hits:
        click.echo("No hits.")
    for rank, hit in enumerate(hits, 1):
        click.echo(f"{rank}. {hit.title}  {hit.url}\n   {hit.snippet}")


@command.command("remove")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(name: str, yes: bool) -> None:
    """Remove the index NAME, with its vectors and what a stopped build of it left."""
    from runs.indexing import index_info, remove_index

    held = index_info(name)
    documents = f"{held.info.documents:,} documents, " if held.info else ""
    if not yes and not click.confirm(f"Remove the index {name} ({documents}{_size(held.bytes)})?"):
        click.echo("Nothing was removed.")
        return
    remove_index(name)
    click.echo(f"Removed {name}.")


def _record(held: object) -> dict[str, object]:
    from dataclasses import asdict

    return {**asdict(held), "directory": str(held.directory)}  # type: ignore[call-overload, attr-defined]


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _size(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
