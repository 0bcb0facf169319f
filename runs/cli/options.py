"""Options that several verbs share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from signatures.errors import OptionError

F = TypeVar("F", bound=Callable[..., Any])


def model_options(command: F) -> F:
    """Add the options that choose the language model."""
    for option in reversed(
        [
            click.option(
                "--model", default="local", show_default=True,
                help="`local`, `local:1.5b`, a GGUF path, hosted_vllm/NAME (vLLM), or any name LiteLLM knows.",
            ),
            click.option("--base-url", help="Address of an OpenAI-compatible API, ending in /v1."),
            click.option("--revision", help="Model revision, which keeps cached replies of other revisions apart."),
            click.option("--context-length", type=int, help="Context in tokens (default: what server or profile say)."),
            click.option("--temperature", type=float, help="Sampling temperature (default: the profile's)."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def retrieval_options(command: F) -> F:
    """Add the options that choose where knowledge comes from."""
    for option in reversed(
        [
            click.option("--search", default=None, help="Search backend: local (default), bing."),
            click.option(
                "--reader", default=None, help="Page reader: web, corpus; by default the one that suits the backend."
            ),
            click.option(
                "--corpus", type=click.Path(path_type=Path), help="JSONL documents {id, title, text} for `local`."
            ),
            click.option("--index", default=None, help="Name of an index built before, for `local`."),
            click.option(
                "--allow-private", is_flag=True, default=None, help="Let the web reader fetch private addresses."
            ),
        ]
    ):
        command = option(command)
    return command


def chain_options(command: F) -> F:
    """Add `--force-answer`, and `--set NAME=VALUE`, which sets any option of the chain."""
    command = click.option(
        "--force-answer", is_flag=True, default=False,
        help="Give a chain that ran out of turns, context or length one short turn for its answer.",
    )(command)  # fmt: skip
    return click.option(
        "--set", "changes", multiple=True, metavar="NAME=VALUE",
        help="Set an option of the chain, e.g. --set top_k=3 --set max_searches=5 (repeatable).",
    )(command)  # fmt: skip


def parse_changes(changes: tuple[str, ...], *, force_answer: bool = False) -> dict[str, Any]:
    """Read `NAME=VALUE` pairs; values are JSON where they parse as JSON, else text.

    Args:
        changes: The pairs.
        force_answer: Whether `--force-answer` was given.

    Returns:
        Name to value.

    Raises:
        OptionError: A pair has no `=`.
    """
    parsed: dict[str, Any] = {"force_answer": True} if force_answer else {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"--set {change!r}: expected NAME=VALUE, for example --set top_k=3.")
        try:
            parsed[name.strip()] = json.loads(value)
        except ValueError:
            parsed[name.strip()] = value
    return parsed
