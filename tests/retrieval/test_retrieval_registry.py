from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import retrieval
from retrieval.base import Reader, Search
from retrieval.registry import READERS, SEARCHES, make_reader, make_search
from signatures.errors import OptionError, SearchError


def test_every_registered_name_can_be_made(tmp_path: Path) -> None:
    searches = {name: {} for name in SEARCHES} | {"local": {"directory": tmp_path}}
    searches["litellm:exa_ai"] = searches.pop("litellm")
    readers = {"corpus": {"directories": {}}, "web": {"allow_private": True}, "jina": {}}
    assert set(readers) == set(READERS)
    for name, options in searches.items():
        search = make_search(name, **options)
        assert isinstance(search, Search)
        assert search.name == name
    for name, options in readers.items():
        reader = make_reader(name, **options)
        assert isinstance(reader, Reader)
        assert reader.name == name
    assert all(backend.summary for backend in [*SEARCHES.values(), *READERS.values()])


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(OptionError, match=r"Unknown search backend 'google'; known are: bing, brave, ddgs, .*tavily\."):
        make_search("google")
    with pytest.raises(OptionError, match=r"Unknown page reader 'x'; known are: corpus, jina, web\."):
        make_reader("x")


def test_every_provider_names_the_environment_variable_it_lacks() -> None:
    for name, backend in SEARCHES.items():
        for variable in backend.needs:
            assert variable not in os.environ
            with pytest.raises(SearchError, match=backend.needs[0]):
                asyncio.run(make_search(name).search("a query", 1))


def test_unknown_and_missing_options_are_named() -> None:
    with pytest.raises(OptionError, match="'web' has no option 'speed'; it takes: allow_private, page_chars, limits"):
        make_reader("web", speed=1)
    with pytest.raises(OptionError, match="'local' needs the option 'directory'"):
        make_search("local")


def test_the_package_gives_its_public_names_lazily() -> None:
    for name in retrieval.__all__:
        assert getattr(retrieval, name).__name__ == name, name
    assert dir(retrieval) == sorted(retrieval.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = retrieval.nothing


def test_importing_the_package_imports_nothing_heavy() -> None:
    program = """
import sys
import retrieval
from retrieval import Hit, best_window, make_search
heavy = {"tantivy", "trafilatura", "aiohttp", "pypdfium2", "punkt", "dspy"} & set(sys.modules)
print(sorted(heavy))
"""
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60)
    assert ended.stdout.strip() == "[]"
