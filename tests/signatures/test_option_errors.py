"""Unknown names are refused with the known ones."""

from __future__ import annotations

import pytest

from signatures.errors import OptionError, ReadError, SearchError
from signatures.examples import example_slots
from signatures.layout import Layout
from signatures.templates import method_template, task_template


def test_an_unknown_example_kind_is_refused() -> None:
    with pytest.raises(OptionError, match="'riddle'; known kinds: single_hop"):
        example_slots("open_qa", "en", "riddle")  # type: ignore[arg-type]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(OptionError, match="'fr'; known languages: en, zh"):
        method_template("search_o1", "fr")  # type: ignore[arg-type]


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(OptionError, match="'poem'; known tasks: open_qa"):
        task_template("poem")  # type: ignore[arg-type]


def test_a_layout_is_changed_by_copy() -> None:
    layout = Layout("search_o1")
    assert layout.with_changes(max_search_limit=2) == Layout("search_o1", max_search_limit=2)
    assert layout.max_search_limit == 5


def test_errors_keep_the_start_of_a_reply_and_their_kind() -> None:
    error = ReadError("x", reason="blocked", provider="web", status=403, body="b" * 500)
    assert (error.kind, error.reason, error.status, len(error.body)) == ("read", "blocked", 403, 200)
    assert SearchError("x").kind == "search"
