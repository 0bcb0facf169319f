from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from retrieval.base import Hit, Page
from retrieval.sync import read_sync, run_sync, search_sync
from signatures.errors import ReadError

colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


async def where() -> tuple[str, str]:
    await asyncio.sleep(0)
    return threading.current_thread().name, colour.get()


def test_a_coroutine_runs_on_the_background_loop() -> None:
    assert run_sync(where()) == ("search-o1-loop", "none")


def test_context_variables_are_visible_inside() -> None:
    token = colour.set("red")
    try:
        assert run_sync(where())[1] == "red"
    finally:
        colour.reset(token)


def test_errors_come_out() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        run_sync(fail())


async def test_it_works_inside_a_running_loop() -> None:
    assert run_sync(where())[0] == "search-o1-loop"


def test_it_works_inside_itself_with_the_context() -> None:
    async def outer() -> tuple[str, str]:
        colour.set("blue")
        return run_sync(where())

    assert run_sync(outer()) == ("search-o1-nested", "blue")


def test_an_error_inside_itself_comes_out() -> None:
    async def fail() -> None:
        raise KeyError("x")

    async def outer() -> None:
        run_sync(fail())

    with pytest.raises(KeyError):
        run_sync(outer())


def test_many_threads_use_it_at_once() -> None:
    results: list[str] = []
    threads = [threading.Thread(target=lambda: results.append(run_sync(where())[0])) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["search-o1-loop"] * 8


class Both:
    name = "both"

    async def search(self, query: str, k: int) -> list[Hit]:
        return [Hit(query, "u")] * k

    async def read(self, url: str) -> Page:
        if url == "bad":
            raise ReadError("bad")
        return Page(url, "text")

    def identity(self) -> str:
        return self.name


def test_the_shims_search_and_read() -> None:
    assert search_sync(Both(), "q", 2) == [Hit("q", "u")] * 2
    assert read_sync(Both(), "u").text == "text"
    with pytest.raises(ReadError):
        read_sync(Both(), "bad")


def test_a_forked_child_gets_its_own_loop() -> None:
    run_sync(where())
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if run_sync(where())[0] == "search-o1-loop" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_the_process_ends_in_good_order_with_sessions_and_tasks_open() -> None:
    program = """
import asyncio
from retrieval.http.sessions import session
from retrieval.sync import run_sync
async def begin():
    session(False)
    asyncio.get_running_loop().create_task(asyncio.sleep(60))
run_sync(begin())
print("done")
"""
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
