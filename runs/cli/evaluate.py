"""`search-o1 evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runs.cli.options import chain_options, model_options, parse_changes, parse_retrieval, retrieval_options

FAILED = 1
"""Exit code when no question of a method could be answered."""


@click.command("evaluate")
@click.argument("benchmark", default="")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Question file of your own (JSON, JSONL or Parquet); BENCHMARK is then its label.",
)
@click.option("--split", help="Split; by default the benchmark's test split.")
@click.option("--limit", type=int, help="Only the first N questions; 0 means all.")
@click.option("--method", "methods", help="Methods, separated by commas: direct, standard_rag, rag_agent, search_o1.")
@click.option(
    "--program",
    help="Compiled program: auto (default), none, a name (`search-o1 programs`), a JSON file, or "
    "models:/search-o1/champion.",
)
@model_options
@retrieval_options
@chain_options
@click.option("--samples", type=int, help="Samples a question.")
@click.option("--concurrency", type=int, help="Chains in flight (default: 8 embedded, 64 served).")
@click.option("--seed", type=int, help="Run seed.")
@click.option("--paper", is_flag=True, default=None, help="Run exactly as the authors did (see the README).")
@click.option("--fallback", help="`generate`: where a method gives no valid answer, take the direct answer.")
@click.option(
    "--unsafe-code",
    is_flag=True,
    default=None,
    help="Run model-written programs without isolation where this machine allows none.",
)
@click.option("--fresh", is_flag=True, default=None, help="Start anew instead of going on.")
@click.option("--experiment", help="MLflow experiment; by default the benchmark's name.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
@click.option("--no-track", is_flag=True, help="Do not log to MLflow.")
def command(**given: Any) -> None:
    """Evaluate methods on a benchmark or a question file.

    BENCHMARK is a name (`search-o1 benchmarks` lists them) or a Python file of your own that defines one.

    The same command goes on where a killed one stopped. Scores stand beside their 95 % intervals, failed questions
    count as wrong, and several methods are compared question by question. Exit code 1 when every question failed.

    \b
    search-o1 evaluate quickstart
    search-o1 evaluate quickstart --method direct,standard_rag,rag_agent,search_o1 --limit 0
    search-o1 evaluate mine --data questions.jsonl --corpus documents.jsonl --model hosted_vllm/Qwen/QwQ-32B \\
        --base-url http://127.0.0.1:8000/v1
    """  # noqa: D301
    from rich.console import Console

    from runs.evaluation import evaluate

    methods = given.pop("methods")
    track = not given.pop("no_track")
    options = parse_changes(given.pop("changes"), force_answer=given.pop("force_answer"), open_urls=given["open_urls"])
    given = parse_retrieval(given)
    if methods:
        given["methods"] = tuple(m.strip() for m in methods.split(",") if m.strip())
    console = Console(markup=False)
    done = evaluate(console=console, options=options, track=track, **{k: v for k, v in given.items() if v is not None})
    failed = [e for e in done if e.records and all(record["finish"] == "error" for record in e.records)]
    for e in failed:
        click.echo(f"{e.method}: every question failed; the first one: {e.records[0]['error']}", err=True)
    if failed:
        raise SystemExit(FAILED)
