from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from retrieval.corpus.build_folder import BuildFolder
from retrieval.corpus.index import CorpusIndex, build_index, iter_documents, open_info
from retrieval.corpus.local import LocalSearch
from signatures.errors import DataError, OptionError

DOCUMENTS = [
    {"id": "eiffel", "title": "Eiffel Tower", "text": "An iron tower in Paris, built in 1889 by Gustave Eiffel."},
    {"id": "louvre", "title": "Louvre", "text": "A museum in Paris."},
    {"id": "tokyo", "title": "東京タワー", "text": "東京タワーは日本の電波塔です。"},
]


def write_jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_building_reports_what_was_built(tmp_path: Path) -> None:
    seen: list[Any] = []
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    info = build_index([path], tmp_path / "sub" / "i", "demo", seen.append)
    assert (info.name, info.documents, info.skipped, info.sources) == ("demo", 3, 0, ("d.jsonl",))
    assert info.bytes == path.stat().st_size
    assert info.created[:4] >= "2024"
    assert info.seconds > 0
    assert (seen[-1].documents, seen[-1].bytes_done, seen[-1].bytes_total) == (3, info.bytes, info.bytes)
    assert open_info(tmp_path / "sub" / "i") == info
    assert names(tmp_path / "sub") == ["i"]


def test_the_corpus_hash_follows_the_documents_not_their_spelling(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "1.jsonl", [{"id": "1", "title": "T", "text": "x é"}])
    same = tmp_path / "2.jsonl"
    same.write_text('\n{"text": "x é", "extra": 1,  "title":"T","id":"1"}\n', encoding="utf-8")
    contents = write_jsonl(tmp_path / "3.jsonl", [{"id": "1", "contents": '"T"\nx é'}])
    other = write_jsonl(tmp_path / "4.jsonl", [{"id": "1", "title": "T", "text": "y"}])
    hashes = [build_index([path], tmp_path / f"i{path.stem}", "n").corpus_hash for path in (one, same, contents, other)]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_the_corpus_hash_is_what_its_definition_says(tmp_path: Path) -> None:
    import hashlib

    before = bytes(32)
    for record in DOCUMENTS:
        line = json.dumps([record["id"], record["title"], record["text"]], ensure_ascii=False).encode()
        before = hashlib.sha256(before + line).digest()
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    assert build_index([path], tmp_path / "i", "n", commit_documents=2).corpus_hash == before.hex()


def test_documents_are_read_back_in_the_order_of_the_corpus_over_many_segments(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": f"d{n}", "text": f"word{n}"} for n in range(300)])
    build_index([path], tmp_path / "i", "n", commit_documents=29)
    wanted = [f"d{n}" for n in range(300)]
    assert [document.id for document in iter_documents(tmp_path / "i")] == wanted
    assert [document.id for document in iter_documents(tmp_path / "i", start=123)] == wanted[123:]
    assert list(iter_documents(tmp_path / "i", start=300)) == []
    index = CorpusIndex(tmp_path / "i")
    assert len(index) == 300
    texts = [document and document.text for document in index.get_many(["d7", "none", "d299"])]
    assert texts == ["word7", None, "word299"]


def test_what_is_malformed_is_skipped_counted_and_told(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "1", "text": "fine"}\n{broken\n{"id": "1", "text": "again"}\n{"id": 2, "text": "good"}\n')
    told: list[str] = []
    info = build_index([path], tmp_path / "i", "n", on_problem=told.append)
    assert (info.documents, info.skipped) == (2, 2)
    assert "d.jsonl, line 2: not valid JSON" in told[0]
    assert "d.jsonl, line 3: the id '1' occurs twice" in told[1]
    assert CorpusIndex(tmp_path / "i").get("1").text == "fine"  # type: ignore[union-attr]


@pytest.mark.parametrize("commit_documents", [1, 2, 100])
def test_an_id_is_found_again_before_and_after_a_commit(tmp_path: Path, commit_documents: int) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": f"{n % 5}", "text": "x"} for n in range(12)])
    info = build_index([path], tmp_path / "i", "n", commit_documents=commit_documents)
    assert (info.documents, info.skipped) == (5, 7)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{broken", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1]", "a JSON object is needed, not list"),
        ('{"title": "t", "text": "x"}', '"id" must be'),
        ('{"id": true, "text": "x"}', '"id" must be'),
        ('{"id": 1.5, "text": "x"}', '"id" must be'),
        ('{"id": "", "text": "x"}', '"id" must be'),
        ('{"id": "%s", "text": "x"}'.replace("%s", "i" * 1001), "1,001 characters"),
        ('{"id": "9", "title": "t"}', 'neither "text" nor "contents"'),
        ('{"id": "9", "text": 5}', '"text" must be a string'),
        ('{"id": "9", "contents": ["x"]}', '"contents" must be a string'),
        ('{"id": "9", "title": ["t"], "text": "x"}', '"title" must be a string'),
        ('{"id": "1", "text": "again"}', "occurs twice"),
    ],
)
def test_with_strict_a_malformed_line_stops_the_build(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "1", "text": "fine"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.jsonl, line 2") as caught:
        build_index([path], tmp_path / "i", "n", strict=True)
    assert told in str(caught.value)
    assert names(tmp_path) == ["bad.jsonl"]
    assert build_index([path], tmp_path / "i", "n").skipped == 1


def test_a_line_that_is_not_utf_8_is_malformed(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"id": "1", "text": "caf\xe9"}\n{"id": "2", "text": "fine"}\n')
    told: list[str] = []
    assert build_index([path], tmp_path / "i", "n", on_problem=told.append).documents == 1
    assert "line 1: not UTF-8" in told[0]


def test_a_line_beyond_the_cap_is_skipped_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    with open(path, "w") as file:
        for size in (10_000_001, 25_000_000, 9_000_000):
            file.write(f'{{"id": "{size}", "text": "' + "x" * (size - 40) + " end" + " " * 60 + '"}\n')
        file.write('{"id": "last", "text": "fine"}')
    told: list[str] = []
    info = build_index([path], tmp_path / "i", "n", on_problem=told.append)
    assert (info.documents, info.skipped) == (2, 2)
    assert all("longer than 10,000,000 bytes" in problem for problem in told)
    assert [document.id for document in iter_documents(tmp_path / "i")] == ["9000000", "last"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl cannot be read"):
        build_index([tmp_path / "nowhere.jsonl"], tmp_path / "i", "n")
    assert names(tmp_path) == []


def test_a_file_put_down_late_does_not_keep_a_refused_build(tmp_path: Path) -> None:
    place = BuildFolder(tmp_path / "i")
    with place.locked(lambda: None):
        place.index.mkdir()
        late = threading.Thread(target=put_down, args=(place.index, 0.3))
        late.start()
    late.join()
    assert names(tmp_path) == []


def put_down(folder: Path, seconds: float) -> None:
    """Put files down in a folder for a while, as long as it is there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with contextlib.suppress(FileNotFoundError):
            (folder / f"{time.monotonic_ns()}.idx").touch()


def test_an_empty_corpus_is_refused_with_its_first_problems(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no document"):
        build_index([write_jsonl(tmp_path / "d.jsonl", [])], tmp_path / "i", "n")
    with pytest.raises(DataError, match="none given"):
        build_index([], tmp_path / "i", "n")
    with pytest.raises(DataError, match=r"no document: e\.jsonl\.\n.*line 1: a JSON object is needed, not int"):
        build_index([write_jsonl(tmp_path / "e.jsonl", [1, 2])], tmp_path / "i", "n")
    assert names(tmp_path) == ["d.jsonl", "e.jsonl"]


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "ü", ".hidden"])
def test_a_name_that_cannot_be_part_of_an_address_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="cannot name a corpus"):
        build_index([], tmp_path / "i", name)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    with pytest.raises(DataError, match="cannot be made"):
        build_index([path], path / "i", "n")


def test_what_is_no_index_is_never_replaced(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    for place in (tmp_path, path):
        with pytest.raises(DataError, match="exists and is no index"):
            build_index([path], place, "n")
    assert path.exists()
    (tmp_path / "empty").mkdir()
    assert build_index([path], tmp_path / "empty", "n").documents == 3


def test_building_again_replaces_the_index_while_readers_go_on(tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "n")
    before = CorpusIndex(tmp_path / "i")
    new = write_jsonl(tmp_path / "e.jsonl", [{"id": "new", "title": "", "text": "another museum"}])
    build_index([new], tmp_path / "i", "n")
    assert [document.id for document in before.search("museum", 5)] == ["louvre"]
    assert [document.id for document in CorpusIndex(tmp_path / "i").search("museum", 5)] == ["new"]


def test_a_failed_build_leaves_the_old_index(tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "n")
    (tmp_path / "bad.jsonl").write_text("nonsense")
    with pytest.raises(DataError):
        build_index([tmp_path / "bad.jsonl"], tmp_path / "i", "n")
    assert open_info(tmp_path / "i").documents == 3
    assert names(tmp_path) == ["bad.jsonl", "d.jsonl", "i"]


MEMORY = """
import sys, threading, time
from pathlib import Path
from retrieval.corpus.index import build_index
def anonymous():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("RssAnon"))
most = {}
def on_progress(progress):
    half = progress.bytes_done * 4 // max(1, progress.bytes_total) >= 1
    most[half] = max(most.get(half, 0), anonymous())
build_index([Path(sys.argv[1])], Path(sys.argv[2]), "n", on_progress, commit_documents=12_000)
print(most[False], most[True])
"""


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    # Long words are not indexed, so the test is quick, yet whoever kept documents or ids would need 150 MB more.
    path = tmp_path / "d.jsonl"
    with open(path, "w") as file:
        for number in range(100_000):
            file.write(f'{{"id": "{number}", "title": "t", "text": "{f"{number:07}" * 200}"}}\n')
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(path), str(tmp_path / "i")],
        capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[3], check=True,
    )  # fmt: skip
    first_quarter, rest = map(int, done.stdout.split())
    assert rest < first_quarter + 60
    assert rest < 400
    assert LocalSearch(tmp_path / "i").identity()
