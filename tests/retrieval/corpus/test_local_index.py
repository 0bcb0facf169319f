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
from retrieval.corpus.analysis import ANALYSIS_VERSION
from retrieval.corpus.index import FORMAT_VERSION, CorpusIndex, build_index, open_info
from retrieval.corpus.local import CorpusReader, LocalSearch, corpus_url
from retrieval.corpus.snippets import SNIPPET_CHARS, snippet_around_match
from signatures.errors import DataError, ReadError, SearchError

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


def test_equal_documents_come_by_id_whatever_the_segments(tmp_path: Path) -> None:
    names = [f"{n:03}" for n in range(200)]
    records = [{"id": name, "title": "", "text": "same words"} for name in reversed(names)]
    path = write_jsonl(tmp_path / "d.jsonl", records)
    for commit_documents in (1000, 60):
        build_index([path], tmp_path / "i", "n", commit_documents=commit_documents)
        assert ids(LocalSearch(tmp_path / "i"), "words") == names[:10]


def test_a_title_counts_as_words_of_the_text_and_a_little_by_itself(tmp_path: Path) -> None:
    records = [
        {"id": "named", "title": "Blue heron", "text": "It nests in trees and eats fish."},
        {
            "id": "mentions",
            "title": "Birds of the lake",
            "text": "Among them are the blue heron and many ducks.",
        },
        {"id": "other", "title": "Blue", "text": "A colour of the sky."},
    ]
    build_index([write_jsonl(tmp_path / "d.jsonl", records)], tmp_path / "i", "n")
    assert ids(LocalSearch(tmp_path / "i"), "What does the blue heron eat?") == ["named", "mentions", "other"]


def test_identity_changes_with_the_analysis(index: Path, tmp_path: Path) -> None:
    build_index([write_jsonl(tmp_path / "d.jsonl", DOCUMENTS)], tmp_path / "i", "demo")
    assert LocalSearch(tmp_path / "i").identity().endswith(f":{FORMAT_VERSION}:{ANALYSIS_VERSION}")
    info = json.loads((tmp_path / "i" / "info.json").read_text())
    (tmp_path / "i" / "info.json").write_text(json.dumps({**info, "analysis_version": 0}))
    with pytest.raises(SearchError, match="has analysis 0, this version reads"):
        LocalSearch(tmp_path / "i").identity()


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


def test_a_large_index_is_searched_beside_the_event_loop(index: Path) -> None:
    search = LocalSearch(index)
    search.inline_documents = 3

    async def searches() -> list[list[str]]:
        found = await asyncio.gather(*(search.search(query, 3) for query in ["museum", "concert", "tower"] * 20))
        return [[hit.title for hit in hits][:1] for hits in found]

    assert asyncio.run(searches()) == [["Louvre"], [""], ["Eiffel Tower"]] * 20
    missing = LocalSearch(index / "none")
    with pytest.raises(SearchError, match="index build"):
        asyncio.run(missing.search("x", 1))


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
