"""`search-o1 index` and the Python functions behind it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from retrieval.corpus.build import BuildProgress
from retrieval.corpus.build_folder import BuildFolder
from retrieval.corpus.index import build_index as build_in
from runs.home import Home
from runs.index_progress import IndexProgress
from runs.indexing import build_index, index_info, remove_index, search_index
from signatures.errors import DataError, OptionError, SearchError
from tests.runs.world import command, corpus_file, interrupt, start_command, wait_until, write_lines


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    build_index("films", [corpus_file(tmp_path)], home=made, progress=False)
    return made


def half_built(home: Home, folder: Path, name: str) -> None:
    path = write_lines(folder / f"{name}.jsonl", [{"id": 1, "text": "x"}, {"id": 2, "text": "x"}, 3])

    def stop(problem: str) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        build_in([path], home.indexes / name, name, on_problem=stop, commit_documents=2)


def test_building_says_what_was_skipped_and_how_much(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "c.jsonl", [{"id": "1", "text": "x"}, *range(8)])
    done = command("index", "build", "mine", str(path), home=tmp_path)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Index mine: 1 documents in ")
    assert ", 8 skipped, corpus hash " in done.stdout
    skipped = [line for line in done.stderr.splitlines() if line.startswith("Skipped: ")]
    assert len(skipped) == 6
    assert skipped[0] == f"Skipped: {path}, line 2: a JSON object is needed, not int."
    assert skipped[5] == "Skipped: further ones are only counted ..."
    strict = command("index", "build", "mine", str(path), "--strict", home=tmp_path)
    assert (strict.exit_code, strict.stdout) == (2, "")
    assert strict.stderr == f"Error: {path}, line 2: a JSON object is needed, not int.\n"


def test_what_cannot_be_built_is_said(tmp_path: Path) -> None:
    for arguments, told in (
        (("x", str(tmp_path / "none.jsonl")), "none.jsonl cannot be read: No such file"),
        (("a/b", str(tmp_path)), "'a/b' cannot name a corpus"),
        (("x", str(tmp_path)), "holds no file that can be read; known formats: JSONL"),
    ):
        done = command("index", "build", *arguments, home=tmp_path)
        assert (done.exit_code, told in done.stderr) == (2, True), done.stderr


def test_ctrl_c_stops_a_build_and_leaves_no_index(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    path = write_lines(tmp_path / "c.jsonl", [{"id": n, "text": f"word{n} " * 50} for n in range(60_000)])
    process = start_command("index", "build", "notes", str(path), home=home.root)
    wait_until(lambda: (home.indexes / ".notes-building" / "index").exists() or process.poll() is not None)
    interrupt(process)
    _, err = process.communicate()
    assert (process.returncode, "Stopped. The same command goes on from here." in err) == (130, True)
    assert not (home.indexes / "notes").exists()


def test_a_stopped_build_goes_on_or_starts_anew(home: Home, tmp_path: Path) -> None:
    half_built(home, tmp_path, "later")
    done = command("index", "build", "later", str(tmp_path / "later.jsonl"), home=home.root)
    assert "Going on after 2 documents of the build that was stopped (--fresh starts anew)." in done.stderr
    assert "Index later: 2 documents" in done.stdout
    half_built(home, tmp_path, "later")
    anew = command("index", "build", "later", str(tmp_path / "later.jsonl"), "--fresh", home=home.root)
    assert "Going on" not in anew.stderr
    assert "Index later: 2 documents" in anew.stdout


def test_indexes_are_listed(home: Home, tmp_path: Path) -> None:
    half_built(home, tmp_path, "later")
    (home.indexes / "old").mkdir()
    (home.indexes / "old" / "info.json").write_text('{"name": "old", "format_version": 1}')
    (home.indexes / "other").mkdir()
    (home.indexes / "films" / "vectors").mkdir()
    (home.indexes / "films" / "vectors" / "info.json").write_text("{}")
    listed = command("index", "list", home=home.root, COLUMNS="160")
    assert listed.exit_code == 0, listed.output
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in listed.stdout.splitlines() if "│" in line]
    assert [row[0] for row in rows] == ["films", "later", "old"]
    info = index_info("films", home=home).info
    assert info is not None
    assert (rows[0][1], rows[0][3:]) == ("8", [info.created[:10], info.corpus_hash[:12], "yes"])
    assert rows[0][2].endswith("kB")
    assert "later: Half-built: 2 documents so far" in listed.stdout
    assert "old: The index in" in listed.stdout
    assert "has format 1, this version reads 2; build it again with: search-o1 index build old FILE" in listed.stdout
    printed = json.loads(command("index", "list", "--json", home=home.root).stdout)
    assert [(index["name"], index["dense"], index["info"] and index["info"]["documents"]) for index in printed] == [
        ("films", True, 8),
        ("later", False, None),
        ("old", False, None),
    ]


def test_an_empty_home_says_how_to_build_an_index(tmp_path: Path) -> None:
    done = command("index", "list", home=tmp_path)
    assert done.stdout == "No index yet. Build one with: search-o1 index build NAME FILE\n"
    assert command("index", "list", "--json", home=tmp_path).stdout == "[]\n"


def test_an_index_tells_what_it_holds(home: Home) -> None:
    shown = command("index", "info", "films", home=home.root).stdout
    info = index_info("films", home=home).info
    assert info is not None
    lines = {line[:12].strip(): line[13:] for line in shown.splitlines()}
    assert (lines["documents"], lines["skipped"], lines["dense"]) == ("8", "0", "no")
    assert lines["built from"].startswith("library.jsonl (")
    assert lines["corpus hash"] == info.corpus_hash
    printed = json.loads(command("index", "info", "films", "--json", home=home.root).stdout)
    assert printed["info"]["corpus_hash"] == info.corpus_hash
    assert printed["directory"] == str(home.indexes / "films")


@pytest.mark.parametrize("verb", [("info",), ("search", "query"), ("remove", "--yes")])
def test_an_unknown_name_lists_the_known_ones(home: Home, verb: tuple[str, ...]) -> None:
    done = command("index", verb[0], "nope", *verb[1:], home=home.root)
    assert done.exit_code == 2
    assert "There is no index 'nope'; there are: films. Build it with: search-o1 index build NAME FILE" in done.stderr
    outside = command("index", verb[0], "../home", *verb[1:], home=home.root)
    assert (outside.exit_code, "There is no index '../home'" in outside.stderr) == (2, True)


def test_hits_are_printed_as_json(home: Home) -> None:
    found = json.loads(command("index", "search", "films", "Arden", "--k", "1", "--json", home=home.root).stdout)
    assert [(hit["title"], hit["url"], hit["site"]) for hit in found] == [
        ("Sunrise over Arden 00", "corpus://films/d0", "films")
    ]
    assert command("index", "search", "films", "zzzz", "--json", home=home.root).stdout == "[]\n"
    with pytest.raises(OptionError, match="k = 0"):
        search_index("films", "x", 0, home=home)


def test_searching_an_index_of_another_format_says_so(home: Home) -> None:
    (home.indexes / "films" / "info.json").write_text('{"name": "films", "format_version": 1}')
    with pytest.raises(SearchError, match="has format 1"):
        search_index("films", "x", home=home)


def test_removing_asks_first(home: Home, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from runs.cli.index import command as index

    def answer(text: str) -> str:
        given = {"SEARCH_O1_HOME": str(home.root)}
        return CliRunner().invoke(index, ["remove", "films"], input=text, env=given).stdout

    assert "Remove the index films (8 documents, " in answer("n\n")
    assert (home.indexes / "films").exists()
    assert answer("y\n").endswith("Removed films.\n")
    assert list(home.indexes.iterdir()) == []


def test_removing_takes_a_half_built_index_too_and_nothing_else(home: Home, tmp_path: Path) -> None:
    half_built(home, tmp_path, "later")
    half_built(home, tmp_path, "films")
    (home.indexes / "kept").mkdir()
    assert command("index", "remove", "later", "--yes", home=home.root).stdout == "Removed later.\n"
    assert remove_index("films", home=home).info is not None
    assert [path.name for path in home.indexes.iterdir()] == ["kept"]
    with pytest.raises(OptionError, match="no index 'kept'"):
        remove_index("kept", home=home)


def test_an_index_that_is_a_link_is_unlinked_only(home: Home, tmp_path: Path) -> None:
    (home.indexes / "films").rename(tmp_path / "elsewhere")
    (home.indexes / "films").symlink_to(tmp_path / "elsewhere")
    remove_index("films", home=home)
    assert (tmp_path / "elsewhere" / "info.json").is_file()
    assert list(home.indexes.iterdir()) == []


def test_an_index_that_is_being_built_is_not_removed(home: Home) -> None:
    place = BuildFolder(home.indexes / "films")
    with place.locked(lambda: None), pytest.raises(DataError, match="'films' is being built; stop that first"):
        remove_index("films", home=home)
    assert index_info("films", home=home).info is not None


def test_vectors_outlive_a_new_build_of_the_same_documents_only(home: Home, tmp_path: Path) -> None:
    vectors = home.indexes / "films" / "vectors"
    vectors.mkdir()
    (vectors / "info.json").write_text("{}")
    build_index("films", [corpus_file(tmp_path)], home=home, progress=False)
    assert index_info("films", home=home).dense
    build_index("films", [corpus_file(tmp_path, 5)], home=home, progress=False)
    assert not index_info("films", home=home).dense


def test_progress_on_a_terminal_is_a_bar_and_elsewhere_lines(tmp_path: Path) -> None:
    progress = BuildProgress(documents=1500, skipped=2, bytes_done=30, bytes_total=100, resumed=500)
    for terminal in (True, False):
        out = io.StringIO()
        with IndexProgress("wiki", Console(file=out, force_terminal=terminal, width=150)) as shown:
            shown.say("Going on after 500 documents")
            shown.update(progress)
        text = out.getvalue()
        assert "Going on after 500 documents" in text
        assert ("Indexing wiki" in text and "1,500 documents" in text and "2 skipped" in text) == terminal
    quiet = io.StringIO()
    with IndexProgress("wiki", Console(file=quiet, force_terminal=True), shown=False) as shown:
        shown.update(progress)
        shown.problem("x")
        shown.say("y")
    assert quiet.getvalue() == ""
