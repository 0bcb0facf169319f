"""The imports that LiveCodeBench's runner puts before every program.

A program that relies on one of them (`List` without an import) passed there, so it must not fail here.

Source: the runner's import string (github.com/LiveCodeBench/LiveCodeBench, lcb_runner/evaluation/testing_util.py).
"""

from __future__ import annotations

_ALL_NAMES_OF = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
)
_MODULES = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"
)

IMPORTS = "".join(f"from {name} import *\n" for name in _ALL_NAMES_OF.split()) + "".join(
    f"import {name}\n" for name in _MODULES.split()
)
"""All names of these modules, then the modules; of two with one name the later wins."""

PRELUDE = f"{IMPORTS}sys.setrecursionlimit(50000)\n"
"""The prelude of the newest runner."""

PUBLISHED_PRELUDE = f"{IMPORTS}sys.setrecursionlimit(600000)\n"
"""The prelude of the older runner that the paper's authors used."""
