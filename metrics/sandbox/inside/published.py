"""Running a program the way the paper's authors did: LiveCodeBench's older runner, for its scores to compare.

That runner does not start a program. It puts the program's lines into a function and calls it in its own process, with
stand-ins for standard input and output. So these fail there, and here too, though they are right:

- a problem that asks for a class or a function: nothing is printed;
- `main()` below an `if __name__ == "__main__":` that is not the program's last statement, which never runs;
- `global`, for the program's variables are the function's;
- `exit()` and `quit()`, which are taken away (`sys.exit()` is a normal end);
- `sys.stdin.buffer` and `sys.stdout.buffer`, which the stand-ins lack;
- `open(0)`, and `for line in stdin` after `from sys import stdin`, which reach an empty input (`stdin.read()`,
  `readline()` and `readlines()` are made to work);
- a text over several lines, into which tabs are put.

Source: lcb_runner/evaluation/testing_util.py as copied in the authors' repository
(github.com/sunnynexus/Search-o1, scripts/lcb_runner), described from its behaviour.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import os
import sys
import types
from typing import Any

from metrics.sandbox.inside.prelude import PUBLISHED_PRELUDE

_ENTRY = "code"
_MAIN = "__name__ == '__main__'"
_NO_MODULES = ("ipdb", "joblib", "resource", "psutil", "tkinter")
_NO_FUNCTIONS = (
    "kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames truncate replace "
    "unlink fchmod fchown chmod chown chroot lchown getcwd chdir"
)


def wrap(source: str) -> str:
    """Return the module that the older runner makes of a program.

    Args:
        source: The program.

    Returns:
        The prelude, the imports that stand before the first other line, and a function `code` with all the rest.
    """
    lines = _without_main_guard(source).split("\n")
    wrapped: list[str] = []
    inside = False
    for line in lines:
        is_import = line.startswith(("from ", "import "))
        if not is_import and not inside:
            wrapped += ["stdin = sys.stdin", "stdout = sys.stdout", f"def {_ENTRY}():"]
            inside = True
        wrapped.append(f"\t{line}" if inside else line)
    return PUBLISHED_PRELUDE + "\n".join(wrapped) + "\n"


def call(code: types.CodeType, text: str, output: int, limit: int) -> None:
    """Execute a wrapped program, call it, and write what it printed.

    Args:
        code: What `wrap` made, compiled.
        text: Its standard input.
        output: File descriptor to write to, once the program is done.
        limit: Printed characters after which they are written at once, for the reader to end it.

    Raises:
        BaseException: Whatever the program raises, except SystemExit.
    """
    _disarm()
    # What the program reads or writes past the stand-ins is empty, or lost.
    for descriptor in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
    module = types.ModuleType("tmp_sol")
    exec(code, module.__dict__)
    # Without any line but imports there is no function, which is an error of the program.
    entry = getattr(module, _ENTRY)
    # The runner means to change its stand-in so, but changes the stream that was there before.
    lines = iter(text.split("\n"))
    former: Any = sys.stdin
    former.readline = lambda *_: next(lines)
    former.readlines = lambda *_: text.split("\n")
    former.read = lambda *_: text
    printed = _Printed(output, limit)
    sys.stdin, sys.stdout = io.StringIO(text), printed
    try:
        with contextlib.suppress(SystemExit):
            entry()
    finally:
        printed.send()


class _Printed(io.StringIO):
    """Standard output of the program, kept until its end."""

    def __init__(self, descriptor: int, limit: int) -> None:
        super().__init__()
        self._descriptor, self._limit = descriptor, limit
        self._size = 0

    def write(self, text: str) -> int:
        self._size += len(text)
        if self._size > self._limit:
            self.send()
        return super().write(text)

    def send(self) -> None:
        """Write what was printed since the last time."""
        view = memoryview(self.getvalue().encode("utf-8", "backslashreplace"))
        self.seek(0)
        self.truncate()
        while view:
            view = view[os.write(self._descriptor, view) :]


def _without_main_guard(source: str) -> str:
    """Return a program with the body of a final `if __name__ == "__main__":` in that statement's place."""
    try:
        body = ast.parse(source).body
        last = body[-1]
        if isinstance(last, ast.If) and ast.unparse(last.test).strip() == _MAIN:
            return "\n".join(ast.unparse(statement) for statement in (*body[:-1], *last.body))
    except (SyntaxError, ValueError, IndexError, RecursionError, MemoryError):
        pass
    return source


def _disarm() -> None:
    """Take away what the older runner takes away before it executes a program."""
    for name in ("exit", "quit"):
        setattr(builtins, name, None)
    for name in _NO_FUNCTIONS.split():
        setattr(os, name, None)
    for name in _NO_MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
