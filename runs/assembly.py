"""Puts a run together: language model, search, reader and program from what a person set."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from programs.base import Program
from programs.options import COMPACT_OPTIONS, ChainOptions, make_options, paper_options
from programs.registry import make_program
from programs.saving import CompiledProgram, find_compiled, load_program, read_compiled
from retrieval.base import Reader, Search
from retrieval.cache import Cache
from retrieval.cached import CachedReader, CachedSearch
from retrieval.corpus.local import LocalSearch
from retrieval.registry import make_reader, make_search
from runs.benchmarks.spec import Benchmark
from runs.home import Home
from runs.models.factory import Model, is_local, make_model
from runs.models.weights import is_present
from runs.settings import ModelSettings, RetrievalSettings
from signatures.errors import OptionError

Say = Callable[[str], None]


@dataclass(frozen=True)
class Retrieval:
    """Search and reader of a run.

    Attributes:
        search: The backend, with the cache in front unless switched off.
        reader: The reader likewise.
        identity: What changes their answers.
        corpus_hash: Hash of the local corpus, or empty.
    """

    search: Search
    reader: Reader
    identity: str
    corpus_hash: str = ""


def assemble_model(settings: ModelSettings, home: Home, say: Say, *, seeded_cache: bool = True) -> Model:
    """Build the language model of a run, fetching weights first if they are not there.

    Args:
        settings: Model settings.
        home: Home folder.
        say: Called with a line for the user when something takes time.
        seeded_cache: Keep model replies in the cache.

    Returns:
        The model.

    Raises:
        ModelError: Weights or server are missing.
    """
    started = time.time()
    fetch = is_local(settings.model) and not is_present(settings.model, home.models)
    if fetch:
        say(f"Fetching the weights of {settings.model} into {home.models} (once) ...")
    model = make_model(
        settings.model,
        settings.base_url,
        cache=Cache(home.cache) if seeded_cache else None,
        home=home,
        context_length=settings.context_length,
        revision=settings.revision,
        profile=settings.profile,
        temperature=settings.temperature,
    )
    if fetch:
        say(f"Weights fetched and checked in {time.time() - started:.1f} s (not counted in the run's time).")
    return model


def assemble_retrieval(
    settings: RetrievalSettings, home: Home, say: Say, benchmark: Benchmark | None = None
) -> Retrieval:
    """Build search and reader of a run; a corpus that is not indexed yet is indexed first.

    Args:
        settings: Retrieval settings.
        home: Home folder.
        say: Called with a line for the user when something takes time.
        benchmark: Brings its own corpus, or None.

    Returns:
        Search and reader.

    Raises:
        OptionError: Backend or reader are unknown, or `local` has neither corpus nor index.
        SearchO1Error: The corpus is bad.
    """
    inner: Search
    corpus_hash = ""
    if settings.search == "local":
        directory = _index_directory(settings, home, say, benchmark)
        local = LocalSearch(directory)
        from retrieval.corpus.index import open_info

        inner, corpus_hash = local, open_info(directory).corpus_hash
    else:
        inner = make_search(settings.search)
    reader: Reader
    if settings.reader is not None:
        reader = make_reader(settings.reader, **({"allow_private": True} if settings.allow_private else {}))
    elif isinstance(inner, LocalSearch):
        reader = inner.reader()
    else:
        reader = make_reader("web", allow_private=settings.allow_private)
    identity = f"{inner.identity()}|{reader.identity()}"
    # A local index answers faster than the cache does, and its documents are its own cache.
    if settings.cached and not isinstance(inner, LocalSearch):
        cache = Cache(home.cache)
        return Retrieval(CachedSearch(inner, cache), CachedReader(reader, cache), identity, corpus_hash)
    return Retrieval(inner, reader, identity, corpus_hash)


def assemble_options(
    method: str,
    model: Model,
    benchmark: Benchmark | None,
    changes: dict[str, Any],
    *,
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
        paper: Use the paper's settings as the base.
        seed: Run seed.
        name: Name of the benchmark or file.
        temperature: Sampling temperature of every call, or None to leave it to options and profile.

    Returns:
        Validated options.

    Raises:
        OptionError: An option is unknown or impossible.
    """
    if paper:
        task = benchmark.task if benchmark is not None else changes.get("task", "open_qa")
        rest = {key: value for key, value in changes.items() if key != "task"}
        single_hop = name in ("nq", "triviaqa")
        base = paper_options(
            method,  # type: ignore[arg-type]
            model.profile,
            task,
            benchmark=name,
            multi_hop=not single_hop,
        ).model_dump(exclude_unset=True)
        return make_options(None, **_merge({**base, "seed": seed}, rest, temperature))
    base = dict(COMPACT_OPTIONS) if model.profile.compact else {}
    if benchmark is not None:
        base |= {**benchmark.options, "task": benchmark.task}
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
    method: str, options: ChainOptions, retrieval: Retrieval | None, model: Model, wanted: str, *, strict: bool = True
) -> tuple[Program, CompiledProgram | None]:
    """Build a method's program and load a compiled one into it.

    Args:
        method: The method.
        options: Its options.
        retrieval: Search and reader, or None for `direct`.
        model: The language model, whose profile `auto` goes by.
        wanted: `auto`, `none` or a JSON file.
        strict: Refuse a file made for another method; otherwise that method takes its shipped program.

    Returns:
        (program, the compiled program that was loaded, or None).

    Raises:
        OptionError: The method is unknown.
        ProgramError: The file is bad or made for another method.
    """
    program = make_program(
        method, retrieval.search if retrieval else None, retrieval.reader if retrieval else None, options
    )
    if wanted == "none":
        return program, None
    if wanted == "auto":
        compiled = find_compiled(method, model.profile.name, options.task, options.language)
    else:
        compiled = read_compiled(Path(wanted))
        if compiled.method != method and not strict:
            compiled = find_compiled(method, model.profile.name, options.task, options.language)
    if compiled is not None:
        load_program(program, compiled)
    return program, compiled


def index_name(corpus: Path) -> str:
    """Return the index name of a corpus file: its stem (its folder's for `corpus.jsonl`), in safe characters."""
    stem = corpus.resolve().parent.name if corpus.stem == "corpus" else corpus.stem
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem) or "corpus"


def _index_directory(settings: RetrievalSettings, home: Home, say: Say, benchmark: Benchmark | None) -> Path:
    if settings.index is not None:
        return home.indexes / settings.index
    corpus = settings.corpus or (benchmark.corpus if benchmark is not None else None)
    if corpus is None:
        raise OptionError(
            "Search `local` needs documents: give --corpus FILE.jsonl, or --index NAME after "
            "`search-o1 index build NAME FILE`."
        )
    if not corpus.is_file():
        raise OptionError(f"No corpus file at {corpus}; check the path given with --corpus.")
    # The file's content is part of the folder's name, so that an edited corpus is indexed again.
    digest = hashlib.sha256()
    with corpus.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    name = index_name(corpus)
    directory = home.indexes / f"{name}-{digest.hexdigest()[:12]}"
    if not directory.is_dir():
        from retrieval.corpus.index import build_index

        started = time.time()
        say(f"Indexing {corpus.name} ...")
        info = build_index([corpus], directory, name)
        say(f"Indexed {info.documents:,} documents in {time.time() - started:.1f} s.")
    return directory
