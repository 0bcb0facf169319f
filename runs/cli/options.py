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
            click.option(
                "--search", default=None,
                help="Search backend: local (default), serper, brave, tavily, searxng, ddgs, bing, retriever, "
                "litellm:PROVIDER; several, separated by commas, are fused.",
            ),
            click.option(
                "--search-option", "search_options", multiple=True, metavar="NAME=VALUE",
                help="Option of the backend, e.g. market=zh-CN; with several backends bing.market=zh-CN (repeatable).",
            ),
            click.option(
                "--reader", default=None,
                help="Page reader: web (default), jina; with web,jina the second is asked when the first fails. Local "
                "documents are read from their index.",
            ),
            click.option(
                "--reader-option", "reader_options", multiple=True, metavar="NAME=VALUE",
                help="Option of the reader, e.g. requests_per_minute=200 (repeatable).",
            ),
            click.option(
                "--corpus", type=click.Path(path_type=Path),
                help="Documents for `local`: JSONL, Parquet, or a folder of Markdown, HTML, PDF.",
            ),
            click.option("--index", default=None, help="Name of an index built before, for `local`."),
            click.option(
                "--mode", type=click.Choice(["lexical", "dense", "hybrid"]), default=None,
                help="How `local` searches; dense and hybrid need `search-o1 index embed`.",
            ),
            click.option(
                "--embeddings-url", default=None, help="Embeddings server (default: the environment's EMBEDDINGS_URL)."
            ),
            click.option("--allow-private", is_flag=True, default=None, help="Let readers fetch private addresses."),
            click.option(
                "--open-urls", is_flag=True, default=False,
                help="Let the RAG agent fetch addresses that no search returned.",
            ),
            click.option(
                "--block-benchmark-hosts", is_flag=True, default=None,
                help="Remove hits from sites that publish the benchmarks themselves.",
            ),
            click.option("--max-age", default=None, help="Ask again for what is older than e.g. 30d or 12h."),
            click.option("--no-cache", "uncached", is_flag=True, default=False, help="Do not keep searches and pages."),
            click.option(
                "--replay", is_flag=True, default=None,
                help="Answer from the cache only, without any network; say what is missing.",
            ),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def parse_retrieval(given: dict[str, Any]) -> dict[str, Any]:
    """Turn the options of `retrieval_options` into fields of `RetrievalSettings`.

    Args:
        given: Values by option name; those of other options are kept as they are.

    Returns:
        The same with `search_options` and `reader_options` parsed, `cached` for `--no-cache`, and without `open_urls`,
        which is an option of the chain.

    Raises:
        OptionError: A `NAME=VALUE` has no `=`.
    """
    rest = {k: v for k, v in given.items() if k not in ("search_options", "reader_options", "uncached", "open_urls")}
    for name, flag in (("search_options", "--search-option"), ("reader_options", "--reader-option")):
        if given.get(name):
            rest[name] = parse_changes(given[name], flag=flag, example="market=zh-CN")
    if given.get("uncached"):
        rest["cached"] = False
    return rest


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


def parse_changes(
    changes: tuple[str, ...],
    *,
    force_answer: bool = False,
    open_urls: bool = False,
    flag: str = "--set",
    example: str = "top_k=3",
) -> dict[str, Any]:
    """Read `NAME=VALUE` pairs; values are JSON where they parse as JSON, else text.

    Args:
        changes: The pairs.
        force_answer: Whether `--force-answer` was given.
        open_urls: Whether `--open-urls` was given.
        flag: The option they were given with, for errors.
        example: An example of a pair, for errors.

    Returns:
        Name to value.

    Raises:
        OptionError: A pair has no `=`.
    """
    parsed: dict[str, Any] = {"force_answer": True} if force_answer else {}
    if open_urls:
        parsed["open_urls"] = True
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name.strip():
            raise OptionError(f"{flag} {change!r}: expected NAME=VALUE, for example {flag} {example}.")
        try:
            parsed[name.strip()] = json.loads(value)
        except ValueError:
            parsed[name.strip()] = value
    return parsed
