"""`search-o1 ask`."""

from __future__ import annotations

import json
from typing import Any

import click

from runs.cli.options import chain_options, model_options, parse_changes, parse_retrieval, retrieval_options

NO_ANSWER = 3


@click.command("ask")
@click.argument("question")
@click.option("--method", default="search_o1", show_default=True, help="direct, standard_rag, rag_agent or search_o1.")
@click.option(
    "--program",
    default="auto",
    show_default=True,
    help="Compiled program: auto, none, a name (`search-o1 programs`), a JSON file, or models:/search-o1/champion.",
)
@click.option(
    "--tracking-uri", help="MLflow store of registered programs; by default MLFLOW_TRACKING_URI or the home folder's."
)
@model_options
@retrieval_options
@chain_options
@click.option("--json", "as_json", is_flag=True, help="Print the whole prediction as JSON.")
def command(question: str, as_json: bool, changes: tuple[str, ...], force_answer: bool, **given: Any) -> None:
    """Ask one question over the web or your own documents.

    Exit code 0 with an answer, 3 without one, 2 after an error.

    \b
    search-o1 ask "In which city was hafnium first identified?"
    search-o1 ask "..." --corpus documents.jsonl
    SERPER_API_KEY=... search-o1 ask "..." --search serper --model hosted_vllm/Qwen/QwQ-32B
    """  # noqa: D301
    from runs.asking import ask

    options = parse_changes(changes, force_answer=force_answer, open_urls=given["open_urls"])
    settings = {name: value for name, value in parse_retrieval(given).items() if value is not None}
    prediction = ask(
        question,
        options=options,
        say=lambda line: click.echo(line, err=True),
        **settings,
    )
    if as_json:
        click.echo(json.dumps(prediction.toDict(), ensure_ascii=False, indent=1))
    else:
        click.echo(prediction.reasoning)
        click.echo(f"\nAnswer: {prediction.answer or '-'}   ({prediction.finish})")
        for number, url in enumerate(dict.fromkeys(h["url"] for s in prediction.searches for h in s["hits"]), 1):
            click.echo(f"[{number}] {url}")
        if prediction.error:
            click.echo(f"Error: {prediction.error}", err=True)
    if prediction.finish == "error":
        raise SystemExit(2)
    raise SystemExit(0 if prediction.answer else NO_ANSWER)
