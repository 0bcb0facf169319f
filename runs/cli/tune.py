"""`search-o1 tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runs.cli.options import chain_options, model_options, parse_changes, parse_retrieval, retrieval_options
from signatures.errors import OptionError


@click.command("tune")
@click.argument("benchmark", default="")
@click.option(
    "--param", "params", multiple=True, metavar="NAME=RANGE",
    help="What to search: top_k=1:20, context_chars=500:6000:step=500, temperature=0:1, min_p=0.001:0.2:log, or "
    "choices: method=search_o1,standard_rag (repeatable). An option of the chain, a sampling field, method or program.",
)  # fmt: skip
@click.option("--trials", type=int, help="Finished trials wanted in all, over workers and starts (default: 20).")
@click.option("--objective", help="score (default), or weighed: score,tokens, score,latency, score,cost.")
@click.option("--data", type=click.Path(path_type=Path), help="Question file of your own; BENCHMARK is then its label.")
@click.option("--split", help="Split to tune on; by default validation. Test rows are refused.")
@click.option("--limit", type=int, help="Only the first N questions (default: all).")
@click.option("--i-know", is_flag=True, default=None, help="Tune on test rows all the same; the result says so.")
@click.option("--method", help="Method, unless it is a --param (default: search_o1).")
@click.option(
    "--program", help="Compiled program, unless it is a --param: auto (default), none, a name or a JSON file."
)
@click.option(
    "--storage", help="Database URL of the study, which workers on several machines share (default: SQLite at home)."
)
@click.option("--study", help="Name of the study (default: made from what is tuned).")
@click.option(
    "--pruner", type=click.Choice(["median", "hyperband", "none"]),
    help="How hopeless trials are given up (default: median).",
)  # fmt: skip
@click.option(
    "--report-every", type=int,
    help="Questions between two looks at a trial, and the most in flight while trials are pruned (default: 8).",
)  # fmt: skip
@click.option("--warmup", type=int, help="Questions each trial answers before it may be given up (default: 8).")
@click.option("--grace", type=int, help="Seconds of silence after which a worker counts as dead (default: 60).")
@model_options
@retrieval_options
@chain_options
@click.option("--concurrency", type=int, help="Chains in flight (default: 8 embedded, 64 served).")
@click.option("--seed", type=int, help="Seed of the search and of sampling.")
@click.option("--paper", is_flag=True, default=None, help="Use the authors' settings as the base of the options.")
@click.option(
    "--unsafe-code", is_flag=True, default=None,
    help="Run model-written programs without isolation where this machine allows none.",
)  # fmt: skip
@click.option("--experiment", help="MLflow experiment; by default `<benchmark> tune`.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
@click.option("--no-track", is_flag=True, help="Do not log to MLflow.")
def command(**given: Any) -> None:
    """Search for the best options on validation questions, with Optuna.

    The same command goes on where a killed one stopped. Started several times at once, also on other machines with the
    same --storage, it shares the work: all workers together finish --trials trials. The best options are printed as
    flags for `search-o1 evaluate` and kept in best.json beside the plots.

    \b
    search-o1 tune quickstart --param top_k=1:5 --param context_chars=100:600:step=100 --trials 20
    search-o1 tune mine --data validation.jsonl --search serper --param top_k=1:20 --param max_searches=1:10 \\
        --objective score,tokens --storage postgresql://tuner:secret@db/studies \\
        --model hosted_vllm/Qwen/QwQ-32B --base-url http://gpu:8000/v1
    """  # noqa: D301
    from rich.console import Console

    from runs.tuning.tune import tune

    track = not given.pop("no_track")
    params = parse_params(given.pop("params"))
    options = parse_changes(given.pop("changes"), force_answer=given.pop("force_answer"), open_urls=given["open_urls"])
    given = parse_retrieval(given)
    tune(
        console=Console(markup=False),
        options=options,
        params=params,
        track=track,
        **{name: value for name, value in given.items() if value is not None},
    )


def parse_params(params: tuple[str, ...]) -> dict[str, str]:
    """Read `NAME=RANGE` pairs.

    Args:
        params: The pairs.

    Returns:
        Name to range or choices.

    Raises:
        OptionError: A pair has no `=`, or a name comes twice.
    """
    found: dict[str, str] = {}
    for param in params:
        name, equals, spec = param.partition("=")
        name = name.strip()
        if not equals or not name:
            raise OptionError(f"--param {param!r}: expected NAME=RANGE, for example --param top_k=1:20.")
        if name in found:
            raise OptionError(f"--param {name} is given twice; put all its choices into one, such as {name}=1,3,10.")
        found[name] = spec.strip()
    return found
