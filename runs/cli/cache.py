"""`search-o1 cache`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click


@click.group("cache")
def command() -> None:
    """Look after the cache of searches, pages and model replies.

    It is one SQLite file in the home folder. Exported and imported elsewhere it lets `--replay` repeat a run offline.
    """


@command.command("stats")
def stats() -> None:
    """Show what the cache holds: entries, size and age by kind and provider."""
    from runs.caching import cache_stats
    from runs.home import Home

    home = Home()
    held = cache_stats(home=home)
    click.echo(str(home.cache))
    _show(held)


@command.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write over FILE if it is there.")
def export(file: Path, force: bool) -> None:
    """Write the whole cache into FILE, consistent while others write to it."""
    from runs.caching import export_cache

    held = export_cache(file, force=force)
    _show(held)
    click.echo(f"Wrote {file}, {_size(file.stat().st_size)}. Take it in elsewhere: search-o1 cache import {file.name}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
def import_(file: Path) -> None:
    """Take in the entries of FILE, written by `cache export`; of two for the same question the newer one wins."""
    from runs.caching import import_cache

    done = import_cache(file)
    click.echo(f"Added: {_counts(done.added)}. Replaced by a newer one: {_counts(done.replaced)}.")
    click.echo(f"Kept, as new or newer: {_counts(done.kept)}.")
    if done.damaged:
        click.echo(f"Left out as damaged: {done.damaged:,}.", err=True)


@command.command("prune")
@click.option("--older-than", metavar="AGE", help="Remove entries older than this: 30d, 12h, 2w.")
@click.option("--kind", "--kinds", "kinds", multiple=True, help="Only entries of this kind, e.g. pages (repeatable).")
@click.option("--provider", "providers", multiple=True, help="Only entries of this provider (repeatable).")
@click.option("--max-bytes", metavar="SIZE", help="Remove the oldest until all entries are at most this large: 500MB.")
def prune(older_than: str | None, kinds: tuple[str, ...], providers: tuple[str, ...], max_bytes: str | None) -> None:
    """Remove entries and give their room back.

    \b
    search-o1 cache prune --older-than 30d --kind pages
    search-o1 cache prune --provider serper
    search-o1 cache prune --max-bytes 2GB
    """  # noqa: D301
    from runs.caching import prune_cache

    split = tuple(name.strip() for kind in kinds for name in kind.split(",") if name.strip())
    done = prune_cache(older_than=older_than, kinds=split, providers=providers, max_bytes=max_bytes)
    click.echo(f"Removed: {_counts(done.removed)}. {_size(done.bytes_before)} -> {_size(done.bytes_after)}.")
    if not done.shrunk:
        click.echo("Another program uses the cache: the freed room is used again, the file shrinks at a later prune.")


def _show(held: Sequence[Any]) -> None:
    import time

    from rich.console import Console
    from rich.table import Table

    if not held:
        click.echo("It is empty.")
        return
    table = Table("kind", "provider", "entries", "size", "oldest", "newest", box=None)
    now = time.time()
    for part in held:
        ages = (_age(now - part.oldest), _age(now - part.newest))
        table.add_row(part.kind, part.provider or "-", f"{part.entries:,}", _size(part.bytes), *ages)
    total = sum(part.entries for part in held)
    table.add_row("all", "", f"{total:,}", _size(sum(part.bytes for part in held)), "", "", style="bold")
    Console(soft_wrap=True).print(table)


def _counts(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items()) or "nothing"


def _size(size: int) -> str:
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _age(seconds: float) -> str:
    for unit, factor in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= factor:
            return f"{seconds / factor:.0f} {unit} ago"
    return f"{max(0.0, seconds):.0f} s ago"
