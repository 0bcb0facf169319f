from __future__ import annotations

import asyncio
import copy
import json
import multiprocessing
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.base import Reader, Search
from retrieval.corpus.documents import read_documents
from retrieval.corpus.index import CorpusIndex, build_index, open_info
from retrieval.corpus.local import CorpusReader, LocalSearch, corpus_url
from retrieval.corpus.snippets import SNIPPET_CHARS, snippet_around_match
from signatures.errors import DataError, OptionError, ReadError, SearchError

DOCUMENTS = [
    {"id": "eiffel", "title": "Eiffel Tower", "text": "An iron tower in Paris, built in 1889 by Gustave Eiffel."},
    {"id": "louvre", "title": "Louvre", "text": "A museum in Paris. It shows the Mona Lisa by Leonardo da Vinci."},
    {"id": "a b/c?d#é", "title": "Odd", "text": "A document whose identifier is unusual."},
    {"id": "tokyo", "title": "東京タワー", "text": "東京タワーは日本の電波塔です。Opened in 1958."},
    {"id": 7, "title": None, "text": "Running cats were seen near the Beyoncé concert."},
]


def write_jsonl(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    build_index([write_jsonl(folder / "docs.jsonl", DOCUMENTS)], folder / "index", "demo")
    return folder / "index"


def ids(search: LocalSearch, query: str, k: int = 10) -> list[str]:
    return [hit.url.rpartition("/")[2] for hit in asyncio.run(search.search(query, k))]


def test_building_reports_what_was_built(tmp_path: Path) -> None:
    seen: list[int] = []
    info = build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "sub" / "i", "demo", seen.append)
    assert (info.name, info.documents, info.format_version) == ("demo", 5, 1)
    assert seen == [5]
    assert open_info(tmp_path / "sub" / "i") == info
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["i"]


def test_the_corpus_hash_follows_the_documents_not_their_spelling(tmp_path: Path) -> None:
    one = write_jsonl(tmp_path / "1.jsonl", [{"id": "1", "title": "T", "text": "x é"}])
    same = tmp_path / "2.jsonl"
    same.write_text('\n{"text": "x é", "extra": 1,  "title":"T","id":"1"}\n', encoding="utf-8")
    contents = write_jsonl(tmp_path / "3.jsonl", [{"id": "1", "contents": '"T"\nx é'}])
    other = write_jsonl(tmp_path / "4.jsonl", [{"id": "1", "title": "T", "text": "y"}])
    hashes = [build_index([path], tmp_path / f"i{path.stem}", "n").corpus_hash for path in (one, same, contents, other)]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3]


def test_contents_on_a_single_line_are_text_without_title(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", [{"id": "1", "contents": "only line"}])
    assert [(d.title, d.text) for d in read_documents([path])] == [("", "only line")]


def test_progress_is_reported_while_building(tmp_path: Path) -> None:
    seen: list[int] = []
    records = [{"id": i, "title": "", "text": f"word{i}"} for i in range(2500)]
    build_index([write_jsonl(tmp_path / "d.jsonl", records)], tmp_path / "i", "n", seen.append)
    assert seen == [1000, 2000, 2500]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{broken", "not valid JSON"),
        ("[1]", "a JSON object is needed, not list"),
        ('{"title": "t", "text": "x"}', '"id" must be'),
        ('{"id": true, "text": "x"}', '"id" must be'),
        ('{"id": "", "text": "x"}', '"id" must be'),
        ('{"id": "9", "title": "t"}', 'neither "text" nor "contents"'),
        ('{"id": "9", "text": 5}', '"text" must be a string'),
        ('{"id": "9", "title": ["t"], "text": "x"}', '"title" must be a string'),
        ('{"id": "1", "text": "again"}', "occurs twice"),
    ],
)
def test_a_malformed_line_is_named_with_its_file(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "1", "text": "fine"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"bad\.jsonl, line 2") as caught:
        build_index([path], tmp_path / "i", "n")
    assert told in str(caught.value)
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.jsonl"]


def test_missing_and_undecodable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere\.jsonl cannot be read"):
        build_index([tmp_path / "nowhere.jsonl"], tmp_path / "i", "n")
    (tmp_path / "latin.jsonl").write_bytes('{"id": "1", "text": "é"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.jsonl is not UTF-8"):
        build_index([tmp_path / "latin.jsonl"], tmp_path / "i", "n")


def test_an_empty_corpus_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no document"):
        build_index([write_jsonl(tmp_path / "d.jsonl", [])], tmp_path / "i", "n")
    with pytest.raises(DataError, match="none given"):
        build_index([], tmp_path / "i", "n")


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b", "ü", ".hidden"])
def test_a_name_that_cannot_be_part_of_an_address_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="cannot name a corpus"):
        build_index([], tmp_path / "i", name)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be made"):
        build_index([], tmp_path / "file" / "i", "n")


def test_what_is_no_index_is_never_replaced(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    for place in (tmp_path, path):
        with pytest.raises(DataError, match="exists and is no index"):
            build_index([path], place, "n")
    assert path.exists()
    (tmp_path / "empty").mkdir()
    assert build_index([path], tmp_path / "empty", "n").documents == 5


def _build_in_process(folder: str) -> int:
    return build_index([Path(folder) / "d.jsonl"], Path(folder) / "i", "n").documents


def test_two_processes_may_build_the_same_index(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_build_in_process, [str(tmp_path)] * 4, chunksize=1) == [5] * 4
    assert ids(LocalSearch(tmp_path / "i"), "museum") == ["louvre"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.jsonl", "i"]


def test_building_again_replaces_the_index_while_readers_go_on(tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "n")
    before = LocalSearch(tmp_path / "i")
    assert ids(before, "museum") == ["louvre"]
    new = write_jsonl(tmp_path / "e.jsonl", [{"id": "new", "title": "", "text": "another museum"}])
    build_index([new], tmp_path / "i", "n")
    assert ids(before, "museum") == ["louvre"]
    assert ids(LocalSearch(tmp_path / "i"), "museum") == ["new"]


def test_a_failed_build_leaves_the_old_index(tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "n")
    (tmp_path / "bad.jsonl").write_text("nonsense")
    with pytest.raises(DataError):
        build_index([tmp_path / "bad.jsonl"], tmp_path / "i", "n")
    assert open_info(tmp_path / "i").documents == 5


def test_hits_carry_title_address_snippet_and_site(index: Path) -> None:
    search = LocalSearch(index)
    assert isinstance(search, Search)
    hit = asyncio.run(search.search("Who built the Eiffel Tower?", 1))[0]
    assert (hit.title, hit.url, hit.site) == ("Eiffel Tower", "corpus://demo/eiffel", "demo")
    assert hit.snippet == DOCUMENTS[0]["text"]


def test_words_are_stemmed_and_accents_folded(index: Path) -> None:
    assert ids(LocalSearch(index), "cat runs") == ["7"]
    assert ids(LocalSearch(index), "beyonce concerts") == ["7"]


def test_a_word_of_the_title_is_found(index: Path) -> None:
    assert ids(LocalSearch(index), "louvre") == ["louvre"]


def test_japanese_is_found_by_its_characters(index: Path) -> None:
    search = LocalSearch(index)
    assert ids(search, "東京タワーはどこですか")[0] == "tokyo"
    assert ids(search, "電波塔") == ["tokyo"]
    assert ids(search, "opened 1958") == ["tokyo"]


def test_stop_words_count_only_when_there_is_nothing_else(index: Path) -> None:
    assert ids(LocalSearch(index), "the") != []
    assert "louvre" not in ids(LocalSearch(index), "Eiffel by the")


@pytest.mark.parametrize("query", ["", "   ", "?!", '"', "()", "\x00", "🙂"])
def test_a_query_without_words_has_no_hits(index: Path, query: str) -> None:
    assert ids(LocalSearch(index), query) == []


def test_no_hits_are_asked_for_and_none_come(index: Path) -> None:
    assert ids(LocalSearch(index), "paris", 0) == []
    assert len(ids(LocalSearch(index), "paris", 1)) == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(query=st.text(max_size=80) | st.text(alphabet='paris AND OR NOT "()[]{}+-^~*?:\\/TO ', max_size=40))
def test_no_query_ever_raises(index: Path, query: str) -> None:
    for hit in asyncio.run(LocalSearch(index).search(query, 3)):
        assert hit.url.startswith("corpus://demo/")


def test_lone_surrogates_do_no_harm(index: Path, tmp_path: Path) -> None:
    assert ids(LocalSearch(index), "paris \ud83d")
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "x\\ud83d", "title": "", "text": "odd \\ud83d text"}\n')
    build_index([path], tmp_path / "i", "n")
    search = LocalSearch(tmp_path / "i")
    hit = asyncio.run(search.search("odd", 1))[0]
    assert asyncio.run(search.reader().read(hit.url)).text == "odd \ud83d text"


def test_equal_scores_are_ordered_by_id(tmp_path: Path) -> None:
    records = [{"id": name, "title": "", "text": "same words"} for name in "dbca"]
    build_index([write_jsonl(tmp_path / "d.jsonl", records)], tmp_path / "i", "n")
    assert ids(LocalSearch(tmp_path / "i"), "words") == ["a", "b", "c", "d"]


def test_the_reader_gives_the_documents_back(index: Path) -> None:
    reader = LocalSearch(index).reader()
    assert isinstance(reader, Reader)
    for record in DOCUMENTS:
        page = asyncio.run(reader.read(corpus_url("demo", str(record["id"]))))
        assert (page.title, page.text, page.status) == (record["title"] or "", record["text"], 200)
    assert corpus_url("demo", "a b/c?d#é") == "corpus://demo/a%20b%2Fc%3Fd%23%C3%A9"


@pytest.mark.parametrize(
    ("url", "reason", "told"),
    [
        ("corpus://demo/none", "not_found", "holds no document"),
        ("corpus://other/x", "not_found", "there are: demo"),
        ("corpus://demo", "unsupported", "corpus://NAME/ID"),
        ("https://example.org/", "unsupported", "corpus://NAME/ID"),
    ],
)
def test_what_the_reader_does_not_hold_is_an_error(index: Path, url: str, reason: str, told: str) -> None:
    with pytest.raises(ReadError, match=told) as caught:
        asyncio.run(CorpusReader({"demo": index}).read(url))
    assert (caught.value.reason, caught.value.provider) == (reason, "corpus")


def test_a_missing_index_says_how_to_build_it(tmp_path: Path) -> None:
    search, reader = LocalSearch(tmp_path / "none"), CorpusReader({"n": tmp_path / "none"})
    for attempt in (lambda: asyncio.run(search.search("x", 1)), search.identity, search.reader):
        with pytest.raises(SearchError, match="search-o1 index build NAME FILE"):
            attempt()
    with pytest.raises(ReadError, match="index build"):
        reader.identity()
    with pytest.raises(ReadError, match="index build"):
        asyncio.run(reader.read("corpus://n/1"))


def test_a_damaged_or_older_index_says_so(tmp_path: Path) -> None:
    directory = tmp_path / "i"
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], directory, "n")
    info = json.loads((directory / "info.json").read_text())
    (directory / "info.json").write_text(json.dumps({**info, "format_version": 0}))
    with pytest.raises(DataError, match="has format 0"):
        open_info(directory)
    (directory / "info.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        open_info(directory)
    (directory / "info.json").write_text(json.dumps(info))
    (directory / "meta.json").unlink()
    with pytest.raises(SearchError, match="damaged"):
        asyncio.run(LocalSearch(directory).search("x", 1))


def test_identity_changes_with_the_documents_only(index: Path, tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "demo")
    build_index([write_jsonl(tmp_path / "e.jsonl", DOCUMENTS[:2])], tmp_path / "j", "demo")
    assert LocalSearch(index).identity() == LocalSearch(tmp_path / "i").identity()
    assert LocalSearch(index).identity() != LocalSearch(tmp_path / "j").identity()
    assert LocalSearch(index).reader().identity() == LocalSearch(tmp_path / "i").reader().identity()


def test_search_and_reader_survive_pickling_and_deepcopy_when_open(index: Path) -> None:
    search = LocalSearch(index)
    reader = search.reader()
    assert ids(search, "museum") == ["louvre"]
    asyncio.run(reader.read("corpus://demo/louvre"))
    for copied in (pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
        assert ids(copied, "museum") == ["louvre"]
    for other in (pickle.loads(pickle.dumps(reader)), copy.deepcopy(reader)):
        assert asyncio.run(other.read("corpus://demo/louvre")).title == "Louvre"


def _search_in_process(directory: str) -> list[str]:
    return ids(LocalSearch(directory), "museum")


def test_several_processes_search_one_index(index: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(_search_in_process, [str(index)] * 2) == [["louvre"], ["louvre"]]
        assert ids(LocalSearch(index), "museum") == ["louvre"]


def test_an_opened_index_finds_nothing_under_an_unknown_id(index: Path) -> None:
    assert CorpusIndex(index).get("nope") is None


LONG = " ".join(f"Sentence number {n} speaks of nothing much at all." for n in range(40))


def test_a_short_text_is_its_own_snippet() -> None:
    assert snippet_around_match(" A short text. ", "anything") == "A short text."


def test_the_snippet_holds_the_sentence_with_most_query_terms() -> None:
    text = LONG + " The tower was designed by Gustave Eiffel. " + LONG
    snippet = snippet_around_match(text, "Who designed the Eiffel tower?")
    assert "The tower was designed by Gustave Eiffel." in snippet
    assert len(snippet) <= SNIPPET_CHARS


def test_the_snippet_of_a_text_without_match_is_its_start() -> None:
    assert snippet_around_match(LONG, "zebra").startswith("Sentence number 0")


def test_a_match_at_the_end_keeps_the_sentences_before_it() -> None:
    snippet = snippet_around_match(LONG + " Zebras run.", "zebra")
    assert snippet.endswith("Zebras run.")
    assert "number 39" in snippet


def test_a_sentence_that_is_too_long_is_cut_between_words_around_the_match() -> None:
    text = "word " * 200 + "zebra " + "other " * 200
    snippet = snippet_around_match(text, "zebras")
    assert "zebra" in snippet
    assert len(snippet) <= SNIPPET_CHARS
    assert set(snippet.split()) <= {"word", "zebra", "other"}


def test_a_long_japanese_text_has_a_snippet_too() -> None:
    text = "今日は天気がいいです。" * 40 + "電波塔は赤いです。" + "明日は雨でしょう。" * 40
    snippet = snippet_around_match(text, "電波塔")
    assert "電波塔は赤いです。" in snippet
    assert len(snippet) <= SNIPPET_CHARS


def test_white_space_has_no_snippet() -> None:
    assert snippet_around_match(" \n" * 400, "x") == ""
