"""`search-o1 index embed`."""

from __future__ import annotations

import click


@click.command("embed")
@click.argument("name")
@click.option("--embeddings-url", help="OpenAI-compatible server, ending in /v1.  [default: $EMBEDDINGS_URL]")
@click.option("--embedding-model", required=True, help="Model, as the server names it: intfloat/e5-base-v2.")
@click.option("--batch-size", default=64, show_default=True, help="Passages a request.")
@click.option("--concurrency", default=4, show_default=True, help="Requests in flight at once.")
@click.option("--query-prefix", help="Text in front of queries.  [default: what the model's family wants]")
@click.option("--passage-prefix", help="Text in front of passages.  [default: likewise]")
@click.option("--fresh", is_flag=True, help="Start anew instead of going on.")
def embed(
    name: str,
    embeddings_url: str | None,
    embedding_model: str,
    batch_size: int,
    concurrency: int,
    query_prefix: str | None,
    passage_prefix: str | None,
    fresh: bool,
) -> None:
    """Embed the passages of the index NAME for dense and hybrid search; a killed call goes on where it stopped."""
    import time

    from runs.embedding import embed_index

    started = time.monotonic()
    first: list[int] = []

    def progress(done: int, total: int) -> None:
        first[:] = first or [done]
        rate = (done - first[0]) / max(1e-9, time.monotonic() - started)
        click.echo(f"\r{done:,} of {total:,} passages embedded, {rate:,.0f} a second", nl=False, err=True)
        if done == total:
            click.echo("\nArranging the vectors for search ...", err=True)

    info = embed_index(
        name,
        embedding_model,
        embeddings_url,
        batch_size=batch_size,
        concurrency=concurrency,
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        fresh=fresh,
        on_progress=progress,
    )
    click.echo(
        f"Index {name}: {info.count:,} vectors of {info.dimension} numbers from {info.model} "
        f"in {time.monotonic() - started:.1f} s"
    )
    if info.shortened:
        click.echo(f"{info.shortened:,} passages were too long for the model and were embedded without their end.")
