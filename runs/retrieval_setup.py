"""Puts search and reader of a run together from what a person set."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrieval.base import Reader, Search
from retrieval.cache import Cache, CachePolicy
from retrieval.cached import CachedReader, CachedSearch
from retrieval.corpus.modes import CorpusSearch
from retrieval.fused import reader_beside
from retrieval.registry import READERS, SEARCHES, find_reader, find_search, is_key, make_reader, make_search
from runs.benchmarks.spec import Benchmark
from runs.caching import parse_age
from runs.home import Home
from runs.settings import RetrievalSettings, split_names
from signatures.errors import OptionError

Say = Callable[[str], None]

_LOCAL_OPTIONS = {
    "directory": "--index or --corpus",
    "mode": "--mode",
    "embeddings_url": "--embeddings-url",
}

SHOWN_PROBLEMS = 3
"""Malformed lines and files of a corpus that are shown one by one."""


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


def assemble_retrieval(
    settings: RetrievalSettings, home: Home, say: Say, benchmark: Benchmark | None = None, *, watched: bool = False
) -> Retrieval:
    """Build search and reader of a run; a corpus that is not indexed yet is indexed first.

    Args:
        settings: Retrieval settings.
        home: Home folder.
        say: Called with a line for the user when something takes time.
        benchmark: Brings its own corpus, or None.
        watched: Look out for the benchmark's questions in what is found (see `runs.contamination`).

    Returns:
        Search and reader.

    Raises:
        OptionError: Backend or reader are unknown, a key or address is not set, an option has no use here, or `local`
            has neither corpus nor index.
        SearchO1Error: The corpus is bad.
    """
    names = split_names(settings.search)
    if not names:
        raise OptionError(f"No search backend is named; known are: {', '.join(sorted(SEARCHES))}.")
    # Whatever can be wrong is found before a corpus is indexed and a model asked.
    for name in split_names(settings.reader or ""):
        find_reader(name)
    webs = {name: _backend(name, names, settings) for name in names if name != "local"}
    local = _local_options(names, settings) if "local" in names else {}
    cache = Cache(home.cache, cache_policy(settings)) if settings.cached or settings.replay else None
    corpus_hash, directory = "", None
    if "local" in names:
        from retrieval.corpus.index import open_info

        directory = index_directory(settings, home, say, benchmark)
        corpus_hash = open_info(directory).corpus_hash
    searches = [
        _cached_search(
            webs[name] if name in webs else make_search("local", directory=directory, **local), cache, settings
        )
        for name in names
    ]
    search = searches[0]
    if len(searches) > 1:
        from retrieval.fused import FusedSearch

        search = FusedSearch(searches)
    reader = _reader(settings, search, cache)
    if settings.block_benchmark_hosts:
        from retrieval.blocking import BlockBenchmarkHosts, BlockBenchmarkPages

        search, reader = BlockBenchmarkHosts(search), BlockBenchmarkPages(reader)
    identity = f"{search.identity()}|{reader.identity()}"
    if watched:
        from runs.contamination import WatchedReader, WatchedSearch

        search, reader = WatchedSearch(search), WatchedReader(reader)
    return Retrieval(search, reader, identity, corpus_hash)


def cache_policy(settings: RetrievalSettings) -> CachePolicy:
    """Return how a run uses the cache.

    Raises:
        OptionError: The age limit is no age.
    """
    age = None if settings.max_age is None else parse_age(settings.max_age)
    return CachePolicy(max_age_s=age, replay=settings.replay)


def options_of(name: str, names: Sequence[str], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return the options meant for one backend or reader of several.

    Args:
        name: The one.
        names: All that are used.
        given: Option names, `market`, or `bing.market` where several are used.
        what: For errors: `--search-option` or `--reader-option`.

    Returns:
        Its options by name.

    Raises:
        OptionError: An option names none of those used, or leaves open which is meant.
    """
    family = name.partition(":")[0]
    chosen = {}
    for key, value in given.items():
        owner, dot, option = key.partition(".")
        if not dot:
            if len(names) > 1:
                raise OptionError(
                    f"{what} {key!r}: several are used ({', '.join(names)}); say which is meant: {names[0]}.{key}=..."
                )
            chosen[key] = value
        elif owner not in {n.partition(":")[0] for n in names}:
            raise OptionError(f"{what} {key!r}: {owner!r} is not used in this run; used are: {', '.join(names)}.")
        elif owner == family:
            chosen[option] = value
    return chosen


def index_name(corpus: Path) -> str:
    """Return the index name of a corpus file: its stem (its folder's for `corpus.jsonl`), in safe characters."""
    stem = corpus.resolve().parent.name if corpus.stem == "corpus" else corpus.name.partition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip(".") or "corpus"


def index_directory(settings: RetrievalSettings, home: Home, say: Say, benchmark: Benchmark | None) -> Path:
    """Return the folder of the index that `local` searches, building it if need be.

    Args:
        settings: Retrieval settings.
        home: Home folder.
        say: Called with a line for the user when something takes time.
        benchmark: Brings its own corpus, or None.

    Returns:
        Folder of an index.

    Raises:
        OptionError: Neither corpus nor index is given, or they do not exist.
        SearchO1Error: The corpus is bad.
    """
    if settings.index is not None and settings.corpus is not None:
        raise OptionError(
            f"--index {settings.index} and --corpus {settings.corpus} both say what to search; give one of them."
        )
    if settings.index is not None:
        return _known_index(settings.index, home)
    corpus = settings.corpus or (benchmark.corpus if benchmark is not None else None)
    if corpus is None:
        raise OptionError(
            "Search `local` needs documents: give --corpus FILE.jsonl or a folder, or --index NAME after "
            "`search-o1 index build NAME FILE`."
        )
    if not corpus.exists():
        raise OptionError(f"No corpus file or folder at {corpus}; check the path given with --corpus.")
    # The content is part of the folder's name, so that an edited corpus is indexed again.
    name = index_name(corpus)
    directory = home.indexes / f"{name}-{content_digest(corpus)[:12]}"
    if not directory.is_dir():
        from retrieval.corpus.build import build_index

        problems: list[str] = []
        started = time.time()
        say(f"Indexing {corpus.name} ...")
        info = build_index([corpus], directory, name, on_problem=problems.append, say=say)
        say(f"Indexed {info.documents:,} documents in {time.time() - started:.1f} s.")
        for problem in problems[:SHOWN_PROBLEMS]:
            say(f"Skipped: {problem}")
        if info.skipped > SHOWN_PROBLEMS:
            say(f"Skipped {info.skipped} in all; `search-o1 index build --strict` stops at the first.")
    return directory


def _known_index(name: str, home: Home) -> Path:
    directory = home.indexes / name
    if not name.strip(". ") or Path(name).name != name or not directory.is_dir():
        known = ", ".join(sorted(p.name for p in home.indexes.glob("[!.]*") if p.is_dir())) or "none yet"
        raise OptionError(f"No index {name!r}; there are: {known}. Build one: search-o1 index build {name} FILE")
    return directory


def _backend(name: str, names: Sequence[str], settings: RetrievalSettings) -> Search:
    options = options_of(name, names, settings.search_options, "--search-option")
    search = make_search(name, **options)
    # A replay calls nobody, but the address is part of what is looked up.
    missing = [
        variable for variable in find_search(name).missing(options) if not (settings.replay and is_key(variable))
    ]
    if missing:
        raise OptionError(
            f"{name}: the environment variable {missing[0]} is not set. Set it, and `search-o1 doctor --search {name}` "
            "says whether it works; or choose another --search."
        )
    return search


def _local_options(names: Sequence[str], settings: RetrievalSettings) -> dict[str, Any]:
    options = options_of("local", names, settings.search_options, "--search-option")
    for option, instead in _LOCAL_OPTIONS.items():
        if option in options:
            raise OptionError(f"--search-option {option!r} is set by {instead} in this program.")
    given = {} if settings.embeddings_url is None else {"embeddings_url": settings.embeddings_url}
    return {"mode": settings.mode, **given, **options}


def _cached_search(search: Search, cache: Cache | None, settings: RetrievalSettings) -> Search:
    # A lexical index answers faster than the cache does; what asks a server for embeddings is kept like any call.
    if cache is None or (search.name == "local" and settings.mode == "lexical"):
        return search
    return CachedSearch(search, cache)


def _reader(settings: RetrievalSettings, search: Search, cache: Cache | None) -> Reader:
    named = split_names(settings.reader or "corpus")
    if set(named) == {"corpus"} and isinstance(search, CorpusSearch):
        if settings.reader_options:
            option = next(iter(settings.reader_options))
            raise OptionError(
                f"--reader-option {option!r}: only the local index is read in this run, which takes none."
            )
        return search.reader()
    names = tuple(name for name in named if name != "corpus") or ("web",)
    readers = [_named_reader(name, names, settings) for name in names]
    reader = readers[0]
    if len(readers) > 1:
        from retrieval.readers.chain import ReaderChain

        reader = ReaderChain(readers)
    if cache is not None:
        reader = CachedReader(reader, cache)
    # A backend's own documents (`corpus://...`) are read by the reader it brings, whatever reads the web.
    return reader_beside(search, reader)


def _named_reader(name: str, names: Sequence[str], settings: RetrievalSettings) -> Reader:
    options = options_of(name, names, settings.reader_options, "--reader-option")
    if name in READERS and settings.allow_private:
        options = {"allow_private": True, **options}
    return make_reader(name, **options)


def content_digest(corpus: Path) -> str:
    """Return the SHA-256, in hex, of a file, or of all files in a folder with their names."""
    digest = hashlib.sha256()
    files = [corpus] if corpus.is_file() else sorted(p for p in corpus.rglob("*") if p.is_file())
    for path in files:
        if corpus.is_dir():
            digest.update(str(path.relative_to(corpus)).encode("utf-8", "surrogatepass") + b"\0")
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
