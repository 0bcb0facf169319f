"""Puts a run together: language model, search, reader and program from what a person set."""

from __future__ import annotations

import time
from typing import Any

from programs.base import Program
from programs.options import COMPACT_OPTIONS, ChainOptions, make_options, paper_options
from programs.registry import make_program
from programs.saving import CompiledProgram, load_program
from retrieval.cache import Cache, CachePolicy
from runs.benchmarks.spec import Benchmark
from runs.home import Home
from runs.models.factory import Model, is_local, make_model
from runs.models.weights import is_present
from runs.program_store import AUTO, NONE, find_program, model_key, read_program
from runs.retrieval_setup import Retrieval, Say
from runs.settings import ModelSettings
from signatures.templates import Task


def assemble_model(
    settings: ModelSettings, home: Home, say: Say, *, seeded_cache: bool = True, policy: CachePolicy | None = None
) -> Model:
    """Build the language model of a run, fetching weights first if they are not there.

    Args:
        settings: Model settings.
        home: Home folder.
        say: Called with a line for the user when something takes time.
        seeded_cache: Keep model replies in the cache.
        policy: How the cache is used; in a replay no server is asked.

    Returns:
        The model.

    Raises:
        ModelError: Weights or server are missing.
    """
    started = time.time()
    replay = policy is not None and policy.replay
    fetch = is_local(settings.model) and not replay and not is_present(settings.model, home.models)
    if fetch:
        say(f"Fetching the weights of {settings.model} into {home.models} (once) ...")
    model = make_model(
        settings.model,
        settings.base_url,
        cache=Cache(home.cache, policy) if seeded_cache else None,
        home=home,
        context_length=settings.context_length,
        revision=settings.revision,
        profile=settings.profile,
        temperature=settings.temperature,
    )
    if fetch:
        say(f"Weights fetched and checked in {time.time() - started:.1f} s (not counted in the run's time).")
    return model


def assemble_options(
    method: str,
    model: Model,
    benchmark: Benchmark | None,
    changes: dict[str, Any],
    *,
    task: Task = "open_qa",
    paper: bool,
    seed: int,
    name: str,
    temperature: float | None = None,
) -> ChainOptions:
    """Work out a program's options: the paper's, or those of model and benchmark, with what the user changed on top.

    Args:
        method: The method.
        model: The language model.
        benchmark: The benchmark, or None for a file.
        changes: Options the user set, by name.
        task: Task kind of the questions, unless the user set one.
        paper: Use the paper's settings as the base.
        seed: Run seed.
        name: Name of the benchmark or file.
        temperature: Sampling temperature of every call, or None to leave it to options and profile.

    Returns:
        Validated options.

    Raises:
        OptionError: An option is unknown or impossible.
    """
    kind: Task = changes.get("task", task)
    if paper:
        rest = {key: value for key, value in changes.items() if key != "task"}
        multi_hop = benchmark.multi_hop if benchmark is not None else True
        base = paper_options(
            method,  # type: ignore[arg-type]
            model.profile,
            kind,
            benchmark=name,
            multi_hop=multi_hop,
        ).model_dump(exclude_unset=True)
        return make_options(None, **_merge({**base, "seed": seed}, rest, temperature))
    base = dict(COMPACT_OPTIONS) if model.profile.compact else {}
    if benchmark is not None:
        base |= benchmark.options
    base["task"] = kind
    return make_options(None, **_merge({**base, "seed": seed}, changes, temperature))


def _merge(base: dict[str, Any], changes: dict[str, Any], temperature: float | None) -> dict[str, Any]:
    """Put changes over a base; of the sampling fields only those that are named change."""
    merged = {**base, **changes}
    for field in ("sampling", "refine_sampling"):
        if isinstance(changes.get(field, {}), dict):
            merged[field] = {**base.get(field, {}), **changes.get(field, {})}
            if temperature is not None:
                merged[field]["temperature"] = temperature
    return merged


def assemble_program(
    method: str,
    options: ChainOptions,
    retrieval: Retrieval | None,
    model: Model,
    wanted: str,
    home: Home,
    *,
    say: Say = lambda line: None,
    tracking_uri: str | None = None,
    strict: bool = True,
) -> tuple[Program, CompiledProgram | None]:
    """Build a method's program and load a compiled one into it.

    Args:
        method: The method.
        options: Its options.
        retrieval: Search and reader, or None for `direct`.
        model: The language model, whose profile `auto` goes by.
        wanted: `auto`, `none`, a name, a JSON file or a registered program (see `runs.program_store.find_program`).
        home: Home folder.
        say: Called with a line for the user: which compiled program it is, and why.
        tracking_uri: MLflow store of registered programs; by default the home folder's.
        strict: Refuse a program made for another method; otherwise that method takes what `auto` finds for it.

    Returns:
        (program, the compiled program that was loaded, or None).

    Raises:
        OptionError: The method or the program's name is unknown.
        ProgramError: The file is bad or made for another method.
    """
    program = make_program(
        method, retrieval.search if retrieval else None, retrieval.reader if retrieval else None, options
    )
    # A program made for one of several methods serves that one; the others take their own.
    kind = (method, model_key(model), options.task, options.language)
    if not strict and wanted not in (AUTO, NONE) and read_program(wanted, home, tracking_uri, kind).method != method:
        wanted = AUTO
    compiled = find_program(wanted, home, method, model, options.task, options.language, tracking_uri, say)
    if compiled is not None:
        load_program(program, compiled)
    return program, compiled
