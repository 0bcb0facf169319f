"""Where compiled programs are found, and which of them `auto` takes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from programs.registry import make_program
from programs.saving import SHIPPED, CompiledProgram, save_program
from runs.home import Home
from runs.program_store import find_program, model_key, program_path, read_program, stored_programs
from signatures.errors import OptionError, ProgramError
from signatures.profiles import profile_for
from tests.programs.world import MemoryReader, MemorySearch


def model(name: str) -> Any:
    return SimpleNamespace(name=name, profile=profile_for(name))


SMOL = model("local/SmolLM2-135M-Instruct-Q8_0")
QWQ = model("hosted_vllm/Qwen/QwQ-32B")


def keep(
    home: Home, name: str, method: str = "search_o1", key: str = "qwq-32b", *, folder: Path | None = None, **given: Any
) -> CompiledProgram:
    """Write a program; a `date` is its age by its metadata, other words are options."""
    metadata = {k: given.pop(k) for k in ("date", "model") if k in given}
    program = make_program(method, MemorySearch(), MemoryReader(), **given)
    program.reason.demos = [{"question": name, "reasoning": "\\boxed{x}"}]
    path = folder / f"{name}.json" if folder else program_path(home, name)
    return save_program(program, path, model=key, metadata=metadata)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def find(home: Home) -> Callable[..., Any]:
    def ask(wanted: str = "auto", method: str = "search_o1", for_model: Any = QWQ, task: str = "open_qa") -> Any:
        said: list[str] = []
        found = find_program(wanted, home, method, for_model, task, "en", None, said.append)
        return (found.path.stem if found is not None else None), said

    return ask


def test_none_and_auto_without_a_program_find_nothing_and_say_nothing(find) -> None:
    assert find("none", for_model=SMOL) == (None, [])
    assert find("auto", for_model=QWQ) == (None, [])


def test_auto_takes_the_packages_program_for_model_method_and_task(find) -> None:
    name = "search_o1--smollm2-135m--open_qa"
    assert find(for_model=SMOL) == (name, [f"search_o1: compiled program {name}.json (without it: --program none)."])
    assert find(for_model=SMOL, task="math") == (None, [])
    assert find(method="direct", for_model=SMOL)[0] == "direct--smollm2-135m--open_qa"


def test_the_users_own_program_comes_before_the_packages_whatever_its_name(find, home) -> None:
    keep(home, "mine", key="smollm2-135m")
    assert find(for_model=SMOL) == (
        "mine",
        ["search_o1: compiled program mine.json, your own for smollm2-135m (without it: --program none)."],
    )
    assert find(for_model=QWQ)[0] is None


def test_of_several_the_newest_is_taken_by_its_date_else_by_that_of_its_file(find, home) -> None:
    keep(home, "a", date="2026-11-30T10:00:00+00:00")
    keep(home, "b", date="2026-11-30T12:00:00+02:30")
    name, said = find()
    assert (name, "the newest of your 2 for qwq-32b" in said[0]) == ("a", True)
    undated = keep(home, "c", date="not a date")
    os.utime(undated.path, (0, 0))
    assert find()[0] == "a"
    os.utime(undated.path, (4e9, 4e9))
    assert find()[0] == "c"


def test_a_program_made_with_this_very_model_comes_before_its_sisters(find, home) -> None:
    seven, seventy = (model(f"hosted_vllm/Qwen/Qwen2.5-{size}-Instruct") for size in ("7B", "72B"))
    keep(home, "small", key="qwen2.5", date="2020-01-01", model={"name": seven.name})
    keep(home, "large", key="qwen2.5", date="2021-01-01", model={"name": seventy.name})
    assert (find(for_model=seven)[0], find(for_model=seventy)[0]) == ("small", "large")
    assert find(for_model=model("Qwen2.5-14B"))[0] == "large"


def test_programs_for_another_method_task_or_language_are_not_taken(find, home) -> None:
    keep(home, "direct-one", method="direct")
    keep(home, "math-one", task="math")
    keep(home, "zh-one", language="zh")
    assert find()[0] is None
    assert find(task="math")[0] == "math-one"


def test_a_damaged_file_disturbs_nobody_and_is_named_where_it_was_meant(find, home) -> None:
    keep(home, "fine")
    for name in ("broken", "search_o1--qwq-32b--open_qa"):
        (home.programs / f"{name}.json").write_text("{")
    name, said = find()
    assert name == "fine"
    assert len(said) == 2
    assert "passed over a damaged program" in said[0]
    assert "search_o1--qwq-32b--open_qa.json is not a JSON file" in said[0]
    assert find(method="direct", for_model=SMOL)[1][0].startswith("direct: compiled program direct--smollm2")
    listed = {entry.name: entry for entry in stored_programs(home)}
    assert [listed[n].damage != "" for n in ("broken", "fine")] == [True, False]
    assert listed["broken"].compiled is None
    with pytest.raises(ProgramError, match="not a JSON file"):
        find("broken")


@pytest.mark.parametrize("suffix", ["", ".json"])
def test_a_name_is_looked_up_at_home_and_then_in_the_package(home, suffix) -> None:
    name = "direct--smollm2-135m--open_qa"
    assert read_program(name + suffix, home).path == SHIPPED / f"{name}.json"
    own = keep(home, name, method="direct", key="smollm2-135m")
    assert read_program(name + suffix, home) == own


def test_a_file_is_taken_from_where_it_lies(home, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    keep(home, "mine")
    here = keep(home, "mine", folder=tmp_path)
    assert read_program("mine.json", home).path == Path("mine.json")
    assert read_program("./mine.json", home).digest == here.digest
    assert read_program("mine", home).path == home.programs / "mine.json"
    with pytest.raises(ProgramError, match="No compiled program at nowhere/x"):
        read_program("nowhere/x.json", home)


def test_a_program_compiled_for_another_model_is_taken_and_said(find, home) -> None:
    keep(home, "mine", key="smollm2-135m")
    assert find("mine")[1] == [
        "search_o1: compiled program mine.json, which was compiled for smollm2-135m and not for qwq-32b "
        "(without it: --program none)."
    ]
    assert find("mine", for_model=SMOL)[1] == ["search_o1: compiled program mine.json (without it: --program none)."]


def test_an_unknown_name_lists_the_known_ones_the_nearest_first(home) -> None:
    for name in ("films", "music", *(f"zz{i}" for i in range(10))):
        keep(home, name, method="direct")
    with pytest.raises(OptionError, match=r"Unknown program 'musci'\. It is `auto`, `none`, a JSON file") as refused:
        read_program("musci", home)
    lines = str(refused.value).splitlines()
    assert lines[1] == "  music"
    assert lines[-1] == "  ... 6 more: search-o1 programs"
    for wrong in ("", "..", ".hidden", "a b"):
        with pytest.raises(OptionError, match="Unknown program"):
            read_program(wrong, home)


@pytest.mark.parametrize("name", ["", "auto", "none", "none.json", "../up", "a/b", "a\\b", ".hidden", "a b", "x" * 151])
def test_a_name_that_is_no_file_name_is_refused(home, name) -> None:
    with pytest.raises(OptionError, match="cannot name a program"):
        program_path(home, name)


def test_a_name_becomes_a_file_in_the_home_folder(home) -> None:
    assert program_path(home, "a--b_1.5.json") == program_path(home, "a--b_1.5") == home.programs / "a--b_1.5.json"
    assert not home.programs.exists()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("hosted_vllm/Qwen/QwQ-32B", "qwq-32b"),
        ("local/SmolLM2-135M-Instruct-Q8_0", "smollm2-135m"),
        ("hosted_vllm/mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-instruct-v0.3"),
        ("openai/My Model: the 2nd", "my-model-the-2nd"),
        ("hosted_vllm/a--b/", "a-b"),
        ("---", "model"),
    ],
)
def test_a_model_has_a_key_that_can_name_a_file(home, name, key) -> None:
    found = model_key(model(name))
    assert found == key
    assert program_path(home, f"search_o1--{found}--open_qa").parent == home.programs
