"""Search backends and readers: their keys and addresses, and whether they answer."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from retrieval.base import Search
from retrieval.registry import READERS, SEARCHES, Backend, make_reader, make_search
from retrieval.sync import read_sync, search_sync
from runs.checks.check import Check, guarded

QUERY = "Search-o1"
PAGE = "https://example.org/"


def check_searches(chosen: tuple[str, ...], *, call: bool) -> list[Check]:
    """Look at the search backends.

    Args:
        chosen: Names that the user means to use; the others are only listed.
        call: Ask each chosen one a real query (it may cost a credit).

    Returns:
        One finding a backend; `local` is looked at by the index check.
    """
    checks = []
    for name, backend in SEARCHES.items():
        named = [c for c in chosen if c.partition(":")[0] == name]
        if name == "local":
            continue
        checks += [
            _check(f"search {c}", backend, partial(_query, c), partial(make_search, c), call=call) for c in named
        ] or [_check(f"search {name}", backend, None, None, call=False)]
    unknown = [c for c in chosen if c.partition(":")[0] not in SEARCHES]
    known = ", ".join(sorted(SEARCHES))
    return [
        *checks,
        *(Check(f"search {c}", "wrong", "there is no such backend", f"choose of {known}") for c in unknown),
    ]


def check_readers(chosen: tuple[str, ...], *, call: bool, page: str = PAGE, allow_private: bool = False) -> list[Check]:
    """Look at the page readers.

    Args:
        chosen: Names that the user means to use.
        call: Read a page with each chosen one.
        page: Address of that page.
        allow_private: Let it be a private one.

    Returns:
        One finding a reader; `corpus` is looked at by the index check.
    """
    checks = []
    for name, backend in READERS.items():
        if name == "corpus":
            continue

        def read(name: str = name) -> Check:
            found = read_sync(make_reader(name, allow_private=allow_private), page)
            return Check(f"reader {name}", "ok", f"read {page} ({len(found.text):,} characters)")

        make = partial(make_reader, name) if name in chosen else None
        checks.append(_check(f"reader {name}", backend, read, make, call=call))
    unknown = [name for name in chosen if name not in READERS]
    known = ", ".join(sorted(READERS))
    return [*checks, *(Check(f"reader {c}", "wrong", "there is no such reader", f"choose of {known}") for c in unknown)]


def _check(
    name: str, backend: Backend, use: Callable[[], Check] | None, make: Callable[[], object] | None, *, call: bool
) -> Check:
    """Look at one backend or reader; `make` makes it if the user means to use it, `use` also asks it."""
    missing = backend.missing({})
    if missing:
        mend = f"export {missing[0]}=..."
        text = f"{backend.summary}: {', '.join(missing)} not set"
        return Check(name, "off" if make is None else "wrong", text, mend)
    if make is not None and use is not None and call:
        return guarded(name, use)
    has = [variable for variable in (*backend.needs, *backend.takes) if os.environ.get(variable, "").strip()]
    text = f"{backend.summary}; {', '.join(has)} set" if has else f"{backend.summary}; needs no key"
    found = Check(name, "ok", f"{text} (not called)")

    def look() -> Check:
        if make is not None:
            make()
        return found

    return guarded(name, look)


def _query(name: str) -> Check:
    search: Search = make_search(name)
    hits = search_sync(search, QUERY, 1)
    if not hits:
        return Check(f"search {name}", "wrong", f"answered the query {QUERY!r} with nothing", "try another backend")
    return Check(f"search {name}", "ok", f"answered; first hit {hits[0].url}")
