"""A real vLLM on the CPU for tests, seen through a recording proxy."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy

from runs.home import Home
from runs.models.factory import Model, make_model
from runs.models.weights import SMOLLM2, find_weights
from runs.serving.commands import converted_weights, cpu_command, find_vllm_python
from runs.serving.process import ServerProcess
from tests.servers.recorder import Exchange, Recorder

BLOCK = 32
CONTEXT = 2_048
COMPLETIONS = "/v1/completions"


class RealVLLM:
    """The server and the proxy before it.

    Attributes:
        root: Address of the server itself, without a path.
        wire: The proxy.
        process: The server's process; None when a running server is reused.
        facts: What was measured.
    """

    def __init__(self, root: str, wire: Recorder, process: ServerProcess | None) -> None:
        self.root = root
        self.wire = wire
        self.process = process
        self.facts: dict[str, float] = {}

    def model(self, *, direct: bool = False, **options: Any) -> Model:
        """Return our client's model, through the proxy unless `direct`."""
        url = f"{self.root}/v1" if direct else self.wire.base_url
        return make_model(f"hosted_vllm/{SMOLLM2.name}", base_url=url, **options)

    def ask(self, program: Any, question: str, **options: Any) -> tuple[Any, list[Exchange]]:
        """Run a program on a question; returns its prediction and the generations that went over the wire."""
        seen = len(self.wire.exchanges)
        with dspy.context(lm=self.model(**options).lm):
            prediction = program(question=question)
        return prediction, [e for e in self.wire.exchanges[seen:] if e.path == COMPLETIONS]


@contextmanager
def real_vllm(folder: Path) -> Iterator[RealVLLM]:
    """Start vLLM on a free port, or use the one at `SEARCH_O1_VLLM_URL`; its log goes to the folder."""
    running = os.environ.get("SEARCH_O1_VLLM_URL")
    if running:
        root = running.rstrip("/").removesuffix("/v1")
        with Recorder(root) as wire:
            yield RealVLLM(root, wire, None)
        return
    process = new_process(folder)
    root = process.command.base_url.removesuffix("/v1")
    with process, Recorder(root) as wire:
        took = process.wait_ready(600)
        server = RealVLLM(root, wire, process)
        server.facts["start_seconds"] = took
        yield server


def new_process(folder: Path) -> ServerProcess:
    """Return vLLM's process, not started yet; the weights are fetched and converted if need be."""
    python = find_vllm_python()
    weights = converted_weights(python, find_weights("local", Home().models))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = cpu_command(python, weights, SMOLLM2.name, "127.0.0.1", port, os.cpu_count() or 1, CONTEXT)
    return ServerProcess(command, folder / "vllm.log")


def chains_of(exchanges: list[Exchange]) -> list[list[Exchange]]:
    """Group generations into chains: each continues the ids of the one before it; single calls are left out."""
    chains: list[list[Exchange]] = []
    for exchange in exchanges:
        ids = exchange.body["prompt"]
        before = [c for c in chains if len(ids) > len(sent := c[-1].body["prompt"]) and ids[: len(sent)] == sent]
        if before:
            before[0].append(exchange)
        else:
            chains.append([exchange])
    return [chain for chain in chains if len(chain) > 1]


def written(exchange: Exchange) -> list[int]:
    """Return the token ids that a generation wrote."""
    return list(exchange.reply["choices"][0]["token_ids"])


def common(first: list[int], second: list[int]) -> int:
    """Return how many ids two lists have in common from their start."""
    return next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )


def block_hits(chain: list[Exchange]) -> tuple[int, int]:
    """Return (blocks that were cached, full blocks that could be) over the continuation turns of a chain."""
    hits = possible = 0
    for before, after in pairwise(chain):
        known = [*before.body["prompt"], *written(before)]
        full = common(known, after.body["prompt"]) // BLOCK
        possible += full
        # Other chains may have left blocks of the injected text behind; those prove nothing.
        hits += min(full, after.reply["usage"]["prompt_tokens_details"]["cached_tokens"] // BLOCK)
    return hits, possible
