"""`search-o1 doctor`."""

from __future__ import annotations

from typing import Any

import click

MARKS = {"ok": "ok   ", "wrong": "WRONG", "off": "-    "}


@click.command("doctor")
@click.option("--model", default="local", show_default=True, help="Language model to look at, as for evaluate.")
@click.option("--base-url", help="Address of its OpenAI-compatible API, ending in /v1.")
@click.option(
    "--search", default="", help="Backends to ask one query each (this may cost a credit), e.g. serper,brave."
)
@click.option("--reader", default="", help="Readers to read one page with, e.g. web,jina.")
@click.option("--page", default=None, help="Address of that page.")
@click.option("--allow-private", is_flag=True, help="Let that page be at a private address.")
@click.option("--tracking-uri", help="MLflow store; by default MLFLOW_TRACKING_URI or the home folder's.")
@click.option("--no-call", is_flag=True, help="Look at keys and addresses only; ask and read nothing.")
def command(no_call: bool, page: str | None, **given: Any) -> None:
    """Check keys, servers, model, context length, indexes, cache and MLflow, a line each.

    Exit code 0 when nothing that was asked for is wrong, 1 otherwise. What is merely not set up is marked with `-`.

    \b
    search-o1 doctor
    search-o1 doctor --search serper --reader web
    search-o1 doctor --model hosted_vllm/Qwen/QwQ-32B --base-url http://127.0.0.1:8000/v1
    """  # noqa: D301
    from runs.doctor import doctor

    if page:
        given["page"] = page
    checks = doctor(call=not no_call, **given)
    width = max(len(check.name) for check in checks)
    for check in checks:
        mend = f"  -> {check.mend}" if check.mend else ""
        click.echo(f"{MARKS[check.state]} {check.name:<{width}}  {check.text}{mend}")
    if any(check.state == "wrong" for check in checks):
        raise SystemExit(1)
