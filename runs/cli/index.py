"""`search-o1 index`."""

from __future__ import annotations

from pathlib import Path

import click


@click.group("index")
def command() -> None:
    """Build and search a local index of documents."""


@command.command("build")
@click.argument("name")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def build(name: str, files: tuple[Path, ...]) -> None:
    """Index JSONL documents {id, title, text} (or FlashRAG's {id, contents}) under NAME."""
    import time

    from retrieval.corpus.index import build_index
    from runs.home import Home

    started = time.monotonic()

    def progress(count: int) -> None:
        click.echo(
            f"\r{count:,} documents, {count / max(1e-9, time.monotonic() - started):,.0f} a second", nl=False, err=True
        )

    info = build_index(list(files), Home().indexes / name, name, progress)
    click.echo(
        f"\rIndex {name}: {info.documents:,} documents in {time.monotonic() - started:.1f} s, "
        f"corpus hash {info.corpus_hash[:12]}"
    )


@command.command("search")
@click.argument("name")
@click.argument("query")
@click.option("--k", default=5, show_default=True, help="How many hits.")
def search(name: str, query: str, k: int) -> None:
    """Search the index NAME."""
    from retrieval.corpus.local import LocalSearch
    from retrieval.sync import search_sync
    from runs.home import Home

    hits = search_sync(LocalSearch(Home().indexes / name), query, k)
    if not hits:
        click.echo("No hits.")
    for rank, hit in enumerate(hits, 1):
        click.echo(f"{rank}. {hit.title}  {hit.url}\n   {hit.snippet}")
