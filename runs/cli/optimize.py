"""`search-o1 optimize`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runs.cli.options import chain_options, model_options, parse_changes, parse_retrieval, retrieval_options
from signatures.errors import OptionError

STOPPED = 130
"""Exit code after Ctrl-C; the best program so far is written."""


@click.command("optimize")
@click.argument("benchmark", default="")
@click.option("--benchmark", "named", help="The same as BENCHMARK.")
@click.option("--method", help="direct, standard_rag, rag_agent or search_o1 (default).")
@click.option("--optimizer", help="labeled, bootstrap, random-search (default), copro, miprov2, gepa or simba.")
@click.option("--budget", help="light (default), medium, heavy, or the number of candidates to try.")
@click.option("--train", type=click.Path(path_type=Path), help="Questions to learn from (JSON, JSONL or Parquet).")
@click.option("--val", type=click.Path(path_type=Path), help="Questions to choose by; else a fifth of the former.")
@click.option("--train-split", help="Split to learn from (default: train).")
@click.option("--val-split", help="Split to choose by (default: validation).")
@click.option("--train-limit", type=int, help="Only the first N training questions.")
@click.option("--val-limit", type=int, help="Only the first N validation questions.")
@click.option(
    "--only", type=click.Choice(["reason", "refine"]), help="Improve one prompt and leave the other as it is."
)
@click.option("--teacher", help="Stronger model that the demos come from: NAME, an address, or NAME@ADDRESS.")
@click.option("--reflection", help="Model that proposes instructions, likewise (default: the model itself).")
@click.option("--start", help="zero-shot (default), worked (demos from the labels), or a compiled program.")
@click.option("--output", help="Name in the home folder's programs, or a JSON file.")
@click.option("--force", is_flag=True, default=None, help="Replace a program of that name.")
@click.option("--i-know", is_flag=True, default=None, help="Learn from test rows all the same; all scores will say so.")
@model_options
@retrieval_options
@chain_options
@click.option("--concurrency", type=int, help="Chains in flight (default: 8 embedded, 64 served).")
@click.option("--seed", type=int, help="Seed of optimizer and sampling.")
@click.option("--paper", is_flag=True, default=None, help="Use the paper's settings.")
@click.option(
    "--unsafe-code", is_flag=True, default=None,
    help="Run model-written programs without isolation where this machine allows none.",
)  # fmt: skip
@click.option("--experiment", help="MLflow experiment; by default the benchmark's name and `optimize`.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
@click.option("--no-track", is_flag=True, help="Do not log to MLflow.")
def command(**given: Any) -> None:
    """Improve a method's prompts for a model with one of DSPy's optimizers.

    BENCHMARK is a name (`search-o1 benchmarks` lists them); prompts are learned from its training split and chosen by
    its validation split, never by test rows.

    The same command goes on where a killed one stopped and repeats no model call. Ctrl-C stops, keeps the best program
    so far and exits with 130. The compiled program goes to the home folder, where --program finds it by name.

    \b
    search-o1 optimize quickstart --method search_o1 --optimizer random-search --budget light
    search-o1 optimize --train mine.jsonl --corpus documents.jsonl --optimizer gepa --budget medium \\
        --model hosted_vllm/Qwen/QwQ-32B --base-url http://127.0.0.1:8000/v1 --output mine
    """  # noqa: D301
    from rich.console import Console

    from runs.optimizing.optimize import optimize

    named = given.pop("named")
    if named and given["benchmark"] and named != given["benchmark"]:
        raise OptionError(f"Two benchmarks are named, {given['benchmark']!r} and {named!r}; name one.")
    given["benchmark"] = given["benchmark"] or named
    track = not given.pop("no_track")
    options = parse_changes(given.pop("changes"), force_answer=given.pop("force_answer"), open_urls=given["open_urls"])
    given = parse_retrieval(given)
    console = Console(markup=False)
    done = optimize(console=console, options=options, track=track, **{k: v for k, v in given.items() if v is not None})
    if done.interrupted:
        raise SystemExit(STOPPED)
