from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.corpus.documents import Document, Unit
from retrieval.corpus.file_documents import PART_CHARS, split_parts
from retrieval.corpus.index import build_index, iter_documents
from retrieval.corpus.sources import find_sources
from signatures.errors import DataError
from tests.servers.pdf import make_pdf

RECORDS = [{"id": f"d{n}", "title": f"Title {n}", "text": f"Text of number {n}. é東"} for n in range(25)]
WANTED = [Document(record["id"], record["title"], record["text"]) for record in RECORDS]


def units(*paths: Path) -> list[Unit]:
    return [unit for source in find_sources(paths).sources for unit in source.units()]


def documents(*paths: Path) -> list[Document]:
    return [document for unit in units(*paths) for document in unit.documents]


def problems(*paths: Path) -> list[str]:
    return [f"{unit.where}: {unit.problem}" for unit in units(*paths) if unit.problem]


def lines(records: Sequence[Any]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def write(path: Path, content: bytes | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_parquet(path: Path, columns: dict[str, list[Any]], rows: int = 10) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=rows)
    return path


def columns(names: Sequence[str] = ("id", "title", "text")) -> dict[str, list[Any]]:
    return {name: [record[name] for record in RECORDS] for name in names}


def zstd(data: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


COMPRESSED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", ["", *COMPRESSED])
def test_json_lines_are_read_plain_and_compressed(tmp_path: Path, suffix: str) -> None:
    body = lines(RECORDS)
    packed = COMPRESSED[suffix](body) if suffix else body
    path = write(tmp_path / f"d.jsonl{suffix}", packed)
    assert documents(path) == WANTED
    assert units(path)[-1].done == len(packed)
    # The same without a suffix that would tell.
    assert documents(write(tmp_path / "corpus", packed)) == WANTED


def test_several_gzip_members_are_one_file(tmp_path: Path) -> None:
    body = gzip.compress(lines(RECORDS[:10])) + gzip.compress(lines(RECORDS[10:]))
    assert documents(write(tmp_path / "d.jsonl.gz", body)) == WANTED


@pytest.mark.parametrize("suffix", [*COMPRESSED])
def test_a_cut_off_file_is_an_error(tmp_path: Path, suffix: str) -> None:
    noise = [{"id": f"{n}", "text": os.urandom(100).hex()} for n in range(100)]
    packed = COMPRESSED[suffix](lines(noise))
    path = write(tmp_path / f"d.jsonl{suffix}", packed[: len(packed) // 2])
    with pytest.raises(DataError, match=r"d\.jsonl.* cannot be read"):
        documents(path)
    with pytest.raises(DataError, match="cannot be read"):
        documents(write(tmp_path / f"e.jsonl{suffix}", b"this was never compressed"))


def test_the_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    body = b"\xef\xbb\xbf" + lines(RECORDS).replace(b"\n", b"\r\n")
    assert documents(write(tmp_path / "d.jsonl", body)) == WANTED
    assert documents(write(tmp_path / "d", body)) == WANTED


def test_a_single_line_of_contents_is_text_without_title(tmp_path: Path) -> None:
    path = write(tmp_path / "d.jsonl", lines([{"id": "1", "contents": "only line"}]))
    assert documents(path) == [Document("1", "", "only line")]


def test_parquet_is_read_in_both_forms(tmp_path: Path) -> None:
    assert documents(write_parquet(tmp_path / "d.parquet", columns())) == WANTED
    contents = [f'"{r["title"]}"\n{r["text"]}' for r in RECORDS]
    flashrag = {"contents": contents, "id": [r["id"] for r in RECORDS], "extra": [1] * 25}
    assert documents(write_parquet(tmp_path / "e.parquet", flashrag)) == WANTED
    untitled = documents(write_parquet(tmp_path / "f.parquet", columns(("id", "text"))))
    assert untitled == [Document(d.id, "", d.text) for d in WANTED]
    (tmp_path / "d.parquet").rename(tmp_path / "unnamed")
    assert documents(tmp_path / "unnamed") == WANTED


def test_numbers_as_ids_and_empty_cells_in_parquet(tmp_path: Path) -> None:
    table = {"id": [1, 2, 3], "title": ["a", None, "c"], "text": ["x", "y", None]}
    path = write_parquet(tmp_path / "d.parquet", table)
    assert documents(path) == [Document("1", "a", "x"), Document("2", "", "y")]
    assert problems(path) == [f'{path}, row 3: "text" must be a string, not None.']


def test_parquet_without_the_columns_says_which_there_are(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "d.parquet", {"doc": ["x"], "body": ["y"]})
    with pytest.raises(DataError, match=r"d\.parquet has the columns doc, body; it needs id and text"):
        documents(path)
    with pytest.raises(DataError, match=r"e\.parquet cannot be read"):
        documents(write(tmp_path / "e.parquet", b"PAR1 nonsense"))


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "jsonl.zst", "parquet", "folder"])
def test_reading_goes_on_from_every_position(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"d.{kind}"
    if kind == "parquet":
        write_parquet(path, {**columns(), "text": [None if n % 7 == 3 else f"t{n}" for n in range(25)]})
    elif kind == "folder":
        for record in RECORDS:
            write(path / f"{record['id']}.txt", record["text"] if record["id"] != "d7" else "")
    else:
        body = b"\n".join([*lines(RECORDS[:12]).splitlines(), b"broken", b"", *lines(RECORDS[12:]).splitlines()])
        write(path, {"jsonl": bytes, "jsonl.gz": gzip.compress, "jsonl.zst": zstd}[kind](body))
    (source,) = find_sources([path]).sources
    straight = list(source.units())
    assert any(unit.problem for unit in straight)
    assert straight[-1].done == pytest.approx(source.size)
    for number, unit in enumerate(straight, start=1):
        rest = list(source.units(unit.position))
        assert [(u.documents, u.where, u.problem, u.position) for u in rest] == [
            (u.documents, u.where, u.problem, u.position) for u in straight[number:]
        ]


def test_a_folder_gives_its_text_files_in_order_by_relative_path(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    write(folder / "b.md", "# The second\n\nIts text.")
    write(folder / "a" / "z.txt", "Plain text.")
    write(folder / "a" / "deeper" / "page.html", "<html><head><title>A page</title></head><body><p>Hello.</p></body>")
    write(folder / "c.PDF", make_pdf("First page", "Second page", title="The report"))
    write(folder / "d.pdf", make_pdf("Untitled"))
    for hidden in (".git/x.txt", ".hidden.md", "a/.cache/y.txt"):
        write(folder / hidden, "hidden")
    write(folder / "picture.png", b"\x89PNG")
    assert [(d.id, d.title) for d in documents(folder)] == [
        ("a/deeper/page.html", "A page"),
        ("a/z.txt", "z"),
        ("b.md", "The second"),
        ("c.PDF", "The report"),
        ("d.pdf", "d"),
    ]
    texts = [d.text for d in documents(folder)]
    assert texts[:2] == ["Hello.", "Plain text."]
    assert "First page\n\nSecond page" in texts[3]
    assert problems(folder) == []


def test_a_folder_is_indexed(tmp_path: Path) -> None:
    write(tmp_path / "docs" / "a.md", "# One\ntext")
    write(tmp_path / "docs" / "b.md", "")
    told: list[str] = []
    info = build_index([tmp_path / "docs"], tmp_path / "i", "n", on_problem=told.append)
    assert (info.documents, info.skipped, info.sources) == (1, 1, ("docs",))
    assert told == [f"{tmp_path}/docs/b.md: the page is empty."]
    assert list(iter_documents(tmp_path / "i")) == [Document("a.md", "One", "# One\ntext")]


def test_a_single_text_file_is_a_corpus_too(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "note.md", "# Title\ntext")) == [Document("note.md", "Title", "# Title\ntext")]


def test_folders_of_the_same_file_names_keep_apart(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one" / "x.txt", "1").parent, write(tmp_path / "two" / "x.txt", "2").parent
    assert [d.id for d in documents(one, two)] == ["one/x.txt", "two/x.txt"]
    assert [d.id for d in documents(one)] == ["x.txt"]


def test_corpus_files_in_a_folder_are_read_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    write(folder / "1.jsonl.gz", gzip.compress(lines(RECORDS[:5])))
    write(folder / "0.jsonl", lines(RECORDS[5:10]))
    write_parquet(folder / "2.parquet", {"id": ["p"], "text": ["x"]})
    write(folder / "package.json", '{"name": "x"}')
    write(folder / "read.txt", "me")
    assert [d.id for d in documents(folder)] == [
        "read.txt",
        "d5",
        "d6",
        "d7",
        "d8",
        "d9",
        "d0",
        "d1",
        "d2",
        "d3",
        "d4",
        "p",
    ]


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ('---\ntitle: "From: the front"\nlang: en\n---\n# Heading\nx', "From: the front", "# Heading\nx"),
        ("---\ntitle: 'Single'\n...\nx", "Single", "x"),
        ("---\nlang: en\n---\n\n# Heading #\nx", "Heading", "# Heading #\nx"),
        ("---\r\nTitle: Windows\r\n---\r\nx\r\n", "Windows", "x"),
        ("intro\n\n# Later *heading*\nx", "Later *heading*", "intro\n\n# Later *heading*\nx"),
        ("Underlined\n===\nx", "Underlined", "Underlined\n===\nx"),
        ("```\n# a comment\n```\n\n# Real\nx", "Real", "```\n# a comment\n```\n\n# Real\nx"),
        ("## Only a second level\nx", "name", "## Only a second level\nx"),
        ("#hashtag\nx", "name", "#hashtag\nx"),
        ("a\n---\nb", "name", "a\n---\nb"),
        ("--- no front matter\ntitle: x", "name", "--- no front matter\ntitle: x"),
    ],
)
def test_the_title_of_markdown(tmp_path: Path, text: str, title: str, body: str) -> None:
    assert documents(write(tmp_path / "name.md", text)) == [Document("name.md", title, body)]


def test_other_charsets_are_decoded(tmp_path: Path) -> None:
    write(tmp_path / "d" / "a.txt", "Crème brûlée à la carte, garçon".encode("cp1252"))
    write(tmp_path / "d" / "b.txt", "naïve café".encode("utf-16"))
    write(tmp_path / "d" / "c.html", '<meta charset="shift_jis"><p>東京の電波塔</p>'.encode("shift_jis"))
    wanted = ["Crème brûlée à la carte, garçon", "naïve café", "東京の電波塔"]
    assert [d.text for d in documents(tmp_path / "d")] == wanted


def test_files_that_give_no_text_are_named_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    write(folder / "binary.txt", bytes(range(256)) * 20)
    write(folder / "empty.md", " \n")
    write(folder / "front.md", "---\ntitle: x\n---\n")
    write(folder / "good.txt", "good")
    write(folder / "huge.txt", b"x" * 10_000_001)
    write(folder / "scan.pdf", make_pdf(""))
    write(folder / "torn.pdf", b"%PDF-1.4 nonsense")
    (folder / "dangling.txt").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.txt")
    assert [d.id for d in documents(folder)] == ["good.txt"]
    told = {problem.split(": ")[0].rpartition("/")[2]: problem.split(": ", 1)[1] for problem in problems(folder)}
    assert set(told) == {
        "binary.txt", "dangling.txt", "empty.md", "front.md", "huge.txt", "pipe.txt", "scan.pdf", "torn.pdf",
    }  # fmt: skip
    assert "binary data" in told["binary.txt"]
    assert "No such file" in told["dangling.txt"]
    assert "front matter" in told["front.md"]
    assert "longer than 10,000,000 bytes" in told["huge.txt"]
    assert told["pipe.txt"] == "not a regular file."
    assert "holds no text" in told["scan.pdf"]
    assert "cannot be opened" in told["torn.pdf"]


def test_links_are_followed_to_files_and_never_round_in_circles(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    write(folder / "a" / "real.txt", "real")
    (folder / "a" / "up").symlink_to(folder)
    (folder / "self.txt").symlink_to(folder / "self.txt")
    (folder / "z.txt").symlink_to(folder / "a" / "real.txt")
    assert [d.id for d in documents(folder)] == ["a/real.txt", "z.txt"]
    assert len(problems(folder)) == 1
    assert "self.txt: cannot be read" in problems(folder)[0]
    (tmp_path / "link").symlink_to(folder)
    assert [d.id for d in documents(tmp_path / "link")] == ["a/real.txt", "z.txt"]


def test_a_folder_without_anything_to_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(DataError, match=r"d holds no file that can be read; known formats: JSONL"):
        find_sources([tmp_path / "d"])
    write(tmp_path / "d" / "picture.png", b"\x89PNG")
    with pytest.raises(DataError, match="holds no file that can be read"):
        find_sources([tmp_path / "d"])


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.docx", b"PK\x03\x04", "has an unknown format; known formats: JSONL"),
        ("x", b"some words", "has an unknown format"),
        ("x", b"", "is empty"),
        ("x.json", b' [{"id": "1"}]', "is one JSON list; write one object a line"),
    ],
)
def test_an_unknown_format_is_named_with_the_known_ones(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    with pytest.raises(DataError, match=name) as caught:
        find_sources([write(tmp_path / name, content)])
    assert told in str(caught.value)


def test_json_lines_under_the_name_json_are_known_by_their_content(tmp_path: Path) -> None:
    assert documents(write(tmp_path / "d.json", lines(RECORDS))) == WANTED


def test_the_inputs_change_with_every_file(tmp_path: Path) -> None:
    folder = write(tmp_path / "d" / "a.txt", "a").parent
    corpus = write(tmp_path / "c.jsonl", lines(RECORDS))
    seen = {find_sources([folder, corpus]).fingerprint, find_sources([corpus, folder]).fingerprint}
    assert find_sources([folder, corpus]).fingerprint in seen
    os.utime(corpus, ns=(1, 1))
    seen.add(find_sources([folder, corpus]).fingerprint)
    write(folder / "b.txt", "b")
    seen.add(find_sources([folder, corpus]).fingerprint)
    (folder / "b.txt").rename(folder / "c.txt")
    seen.add(find_sources([folder, corpus]).fingerprint)
    assert len(seen) == 5


def test_a_long_file_becomes_parts_with_numbered_ids(tmp_path: Path) -> None:
    paragraphs = [f"Paragraph {n}. " + "word " * 200 for n in range(60)]
    path = write(tmp_path / "book.md", "# Book\n\n" + "\n\n".join(paragraphs))
    found = documents(path)
    assert [d.id for d in found] == [f"book.md#{n}" for n in range(1, len(found) + 1)]
    assert {d.title for d in found} == {"Book"}
    assert all(PART_CHARS / 2 <= len(d.text) <= PART_CHARS for d in found[:-1])
    assert all(d.text.startswith("Paragraph") for d in found[1:])
    assert "".join("".join(d.text for d in found).split()) == "".join(path.read_text().split())


def test_a_pdf_of_many_pages_is_read_to_its_end(tmp_path: Path) -> None:
    pages = [f"Page {n}\n" + "\n".join(f"line {i} of page {n}" for i in range(20)) for n in range(400)]
    path = write(tmp_path / "long.pdf", make_pdf(*pages, title="Long"))
    found = documents(path)
    assert len(found) > 5
    assert "line 19 of page 399" in found[-1].text
    assert all(len(d.text) <= PART_CHARS for d in found)


@given(
    text=st.text(alphabet="ab. \n。", max_size=400) | st.text(max_size=200),
    most=st.integers(2, 60),
)
def test_no_text_is_lost_in_parts(text: str, most: int) -> None:
    parts = split_parts(text, most)
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(len(part) <= most for part in parts)
    assert all(part for part in parts[:-1])
