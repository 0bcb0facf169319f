"""Paths that no file can have are refused with their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from runs.home import Home
from runs.program_store import read_program
from runs.user_path import user_path
from signatures.errors import OptionError


@pytest.mark.parametrize("text", ["~nobody-of-that-name/x.json", "a" * 300 + ".json", "a\0b.json"])
def test_a_path_that_no_file_can_have_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no such user here|cannot be a file's path"):
        user_path(text)
    with pytest.raises(OptionError):
        read_program(text, Home(tmp_path))


def test_the_home_folder_is_spelled_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_path("~/x.json") == tmp_path / "x.json"
