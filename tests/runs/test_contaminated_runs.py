"""An evaluation whose corpus and pages hold some of its own questions: flags, clean scores, counts, and the guard."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import pickle

import pytest
from rich.console import Console

from retrieval.base import BackendFailure, Hit, Page, Search, SearchReport, report_search
from retrieval.sync import read_sync, search_sync
from runs import evaluate
from runs.answering import make_record, table_row
from runs.benchmarks.question import Question
from runs.contamination import Watch, WatchedReader, WatchedSearch, contamination_kinds, watching
from runs.printing import print_scores
from runs.summary import summarise
from signatures.errors import ReadError
from tests.runs.world import facts, read_records, write_lines
from tests.servers.web import Answer, WebServer

QUESTION = Question("q", "Who directed the film Sunrise over Arden?", ("Jo Arden",))
MIRROR = "https://huggingface.co/datasets/a/films"
NEW = ("reads", "reads_cached", "reads_failed", "searches_failed", "hits_blocked", "contaminated", "contamination")


class Source:
    """A backend and reader of fixed pages."""

    name = "source"

    def __init__(self, pages: dict[str, str], snippet: str = "", text: str = "") -> None:
        self.pages = pages
        self.snippet, self.text = snippet, text

    async def search_with_report(self, query: str, k: int) -> SearchReport:
        await asyncio.sleep(0)
        hits = [Hit("title", url, self.snippet, text=self.text) for url in self.pages]
        return SearchReport(hits, True, (BackendFailure("other", "gone"),))

    async def search(self, query: str, k: int) -> list[Hit]:
        return (await self.search_with_report(query, k)).hits

    async def read_with_origin(self, url: str) -> tuple[Page, bool]:
        await asyncio.sleep(0)
        if url not in self.pages:
            raise ReadError("source: no such page", reason="not_found")
        return Page(url, self.pages[url], meta={"final_url": MIRROR} if url == "moved" else {}), True

    async def read(self, url: str) -> Page:
        return (await self.read_with_origin(url))[0]

    def identity(self) -> str:
        return "source:1"


async def test_what_the_question_and_answer_stand_in_is_flagged_with_its_query() -> None:
    source = Source({"a": "Trees.", "b": "who directed the film Sunrise over Arden", MIRROR: "", "moved": ""})
    search, reader = WatchedSearch(source), WatchedReader(source)
    with watching(QUESTION) as watch:
        await asyncio.gather(*(asyncio.create_task(search.search(q, 9)) for q in ("first", "second")))
        await asyncio.gather(*(asyncio.create_task(reader.read(url)) for url in source.pages))
    assert sorted(watch.flags(), key=lambda f: str(f["url"])) == [
        {"url": "b", "kind": "question", "overlap": 1.0, "query": "first"},
        {"url": MIRROR, "kind": "mirror", "overlap": 0.0, "mirror": "data set hub", "query": "first"},
        {"url": "moved", "kind": "mirror", "overlap": 0.0, "mirror": "data set hub", "query": "first"},
    ]


@pytest.mark.parametrize(
    ("snippet", "text"), [(f"<b>{QUESTION.question}</b>", ""), ("", f"Quiz. {QUESTION.question}"), ("", "x")]
)
async def test_snippets_and_texts_of_hits_count(snippet: str, text: str) -> None:
    with watching(QUESTION) as watch:
        await report_search(WatchedSearch(Source({"a": ""}, snippet, text)), "q", 3)
    assert [f["kind"] for f in watch.flags()] == ([] if text == "x" else ["question"])


async def test_a_page_has_one_flag_for_its_text_the_graver() -> None:
    with watching(QUESTION) as watch:
        for text in (QUESTION.question, f"{QUESTION.question} Jo Arden did.", QUESTION.question):
            await WatchedReader(Source({"a": text})).read("a")
    assert [f["kind"] for f in watch.flags()] == ["question_and_answer"]


async def test_questions_answered_at_once_see_their_own_pages_only() -> None:
    reader = WatchedReader(Source({"a": QUESTION.question}))

    async def answer(question: Question) -> list[object]:
        with watching(question) as watch:
            await asyncio.gather(reader.read("a"))
        return [f["kind"] for f in watch.flags()]

    other = Question("r", "Who painted the picture of the sea?", ("Jo Arden",))
    assert await asyncio.gather(answer(QUESTION), answer(other), answer(QUESTION)) == [["question"], [], ["question"]]


def test_programs_that_call_synchronously_are_watched_too() -> None:
    source = Source({"a": QUESTION.question, MIRROR: ""})
    with watching(QUESTION) as watch:
        read_sync(WatchedReader(source), "a")
        search_sync(WatchedSearch(source), "q", 5)
    assert {f["kind"] for f in watch.flags()} == {"question", "mirror"}


async def test_watching_changes_nothing_else() -> None:
    source = Source({"a": "text"})
    search, reader = WatchedSearch(source), WatchedReader(source)
    assert isinstance(search, Search)
    assert (search.name, search.identity(), reader.identity()) == ("source", "source:1", "source:1")
    for thing in (search, pickle.loads(pickle.dumps(search)), copy.deepcopy(search)):
        report = await report_search(thing, "q", 3)
        assert (report.cached, report.failures) == (True, (BackendFailure("other", "gone"),))
    assert await copy.deepcopy(reader).read_with_origin("a") == (Page("a", "text"), True)
    with pytest.raises(ReadError, match="no such page"):
        await reader.read("nowhere")
    assert isinstance(search.reader(), WatchedReader)


def leaky(films, count: int = 8, leaks: int = 2):
    """Return a world whose corpus holds the first questions, with their answers where the number is even."""
    world = films(count)
    rows = read_records(world.corpus)
    for i, (film, director) in enumerate(list(facts(count).items())[:leaks]):
        answer = f"Answer: {director}." if i % 2 == 0 else "Nobody knows."
        rows.append({"id": f"quiz{i}", "title": f"{film} quiz", "text": f"Who directed {film}? {answer}"})
    write_lines(world.corpus, rows)
    return world


@pytest.mark.parametrize("method", ["search_o1", "standard_rag", "rag_agent"])
def test_a_run_tells_its_contaminated_questions_and_scores_without_them(films, method) -> None:
    world = leaky(films)
    done = world.run_one(methods=(method,), options={"top_k": 3})
    flagged = {
        r["id"]: contamination_kinds(r) for r in read_records(done.folder / "journal.jsonl") if r["contaminated"]
    }
    assert flagged == {"q0": ["question_and_answer"], "q1": ["question"]}
    (flag,) = next(r for r in done.records if r["id"] == "q1")["contamination"]
    assert (flag["url"].rpartition("/")[2], flag["overlap"]) == ("quiz1", 1.0)
    assert facts()["Sunrise over Bergen 01"] == "Director Bergen 01"
    assert "Sunrise over Bergen 01" in flag["query"]
    summary = done.summary
    assert (summary.contaminated, summary.contamination_share) == (2, 0.25)
    assert summary.contamination == {"question_and_answer": 1, "question": 1}
    metrics = summary.metrics()
    assert (metrics["clean.questions"], metrics["contamination.mirror"]) == (6, 0)
    assert summary.clean.scores["strict"]["em"].n == 6
    assert metrics["clean.strict.em"] == metrics["strict.em"] == 1.0
    assert {f"clean.{name}" for name in metrics if name.startswith(("strict.", "official."))} <= set(metrics)
    assert json.loads((done.folder / "summary.json").read_text()) == metrics


def test_clean_scores_leave_out_whole_questions_and_say_nothing_when_none_is_left() -> None:
    records = [made(i, sample, right=i == 0, seen=(i == 0 and sample == 1)) for i in range(3) for sample in range(2)]
    summary = summarise(records)
    assert (summary.scores["strict"]["em"].mean, summary.contaminated) == (pytest.approx(1 / 3), 1)
    assert (summary.clean.scores["strict"]["em"].mean, summary.clean.questions) == (0.0, 2)
    assert summary.clean.groups["strict"]["type=b"].n == 1
    everything = summarise([made(0, 0, right=True, seen=True)])
    assert everything.contamination_share == 1.0
    assert everything.clean.scores["strict"]["em"].mean != everything.clean.scores["strict"]["em"].mean
    assert not any(name.startswith("clean.strict") for name in everything.metrics())
    screen = io.StringIO()
    for label, one in (("one", summary), ("two", everything)):
        print_scores(Console(file=screen, width=150), [(label, one)])
    text = screen.getvalue()
    assert "contaminated questions" in text
    assert "1 (33.3 %)" in text
    assert "1 (100.0 %)" in text
    assert "em (strict), clean" in text
    assert "question on a page" in text
    assert summarise([]).metrics()["contamination_share"] == 0.0


def test_nothing_is_printed_of_contamination_when_there_is_none() -> None:
    screen = io.StringIO()
    print_scores(Console(file=screen, width=150), [("one", summarise([made(0, 0, right=True, seen=False)]))])
    assert not any(word in screen.getvalue() for word in ("contaminated", "clean", "failed", "removed"))


def made(i: int, sample: int, *, right: bool, seen: bool):
    question = Question(f"q{i}", QUESTION.question, ("yes",), groups={"type": "b" if i == 1 else "a"})
    watch = Watch(question)
    if seen:
        watch.see_page(Page("a", question.question))
    found = {"reasoning": f"\\boxed{{{'yes' if right else 'no'}}}", "finish": "answered"}
    return make_record(question, sample, found, "open_qa", 1.0, 2.0, watch)


def test_a_journal_of_an_earlier_version_is_read_and_gone_on_with(films) -> None:
    world = films(3)
    done = world.run_one()
    old = [{k: v for k, v in r.items() if k not in NEW} for r in read_records(world.journal())]
    write_lines(world.journal(), old[:2])
    again = world.run_one()
    assert again.answered == 1
    assert again.summary.contaminated == 0
    assert again.summary.scores == done.summary.scores
    rows = [table_row(record) for record in again.records]
    assert {row["contaminated"] for row in rows} == {False}
    assert sorted(row["pages_read"] > 0 for row in rows) == [False, False, True]


def page(text: str) -> str:
    return f"<html><body><p>{text * 8}</p></body></html>"


@pytest.fixture
def web(monkeypatch):
    films = facts(3)
    hits, pages = {}, {}
    for i, (film, director) in enumerate(films.items()):
        urls = [f"/film{i}", f"/broken{i}", f"/datasets/triviaqa/{i}"]
        hits[film] = [{"title": film, "url": url, "snippet": f"{film} was"} for url in urls]
        pages[f"/film{i}"] = page(f"{film} was directed by {director}. ")
        pages[f"/broken{i}"] = Answer(status=404) if i else Answer(status=403)
        pages[f"/datasets/triviaqa/{i}"] = page("Lines of some data set of trivia. ")
    with WebServer(hits=hits, pages=pages) as server:
        monkeypatch.setenv("BING_ENDPOINT", server.search_url)
        monkeypatch.setenv("BING_KEY", "k")
        yield server


def on_the_web(world, **changes):
    screen = io.StringIO()
    settings = world.settings(search="bing", reader="web", allow_private=True, **changes)
    (done,) = evaluate(
        "films", home=world.home, console=Console(file=screen, width=180), **{**settings, "corpus": None}
    )
    return done, screen.getvalue()


def test_pages_that_fail_and_pages_of_mirrors_are_counted_by_reason_and_blocked_on_demand(films, web) -> None:
    world = films(3)
    done, text = on_the_web(world)
    assert {r["id"]: r["reads_failed"] for r in done.records} == {
        "q0": {"blocked": 1}, "q1": {"not_found": 1}, "q2": {"not_found": 1}
    }  # fmt: skip
    assert {(r["reads"], r["reads_cached"]) for r in done.records} == {(2, 0)}
    assert done.summary.contamination == {"mirror": 3}
    metrics = done.summary.metrics()
    assert (metrics["read.failed.not_found"], metrics["read.failed.blocked"]) == (2, 1)
    assert metrics["chain.pages_failed_share"] == pytest.approx(1 / 3)
    assert "not_found 2, blocked 1" in text
    assert "page of a benchmark host" in text
    blocked, text = on_the_web(world, block_benchmark_hosts=True)
    assert blocked.id != done.id
    assert (blocked.summary.contaminated, blocked.summary.hits_blocked) == (0, 3)
    assert not any("datasets" in hit["url"] for r in blocked.records for hit in r["search_log"][0]["hits"])
    assert "hits removed from benchmark hosts" in text
    assert blocked.summary.scores["strict"]["em"].mean == 1.0


@pytest.mark.parametrize("method", ["standard_rag", "search_o1"])
def test_a_search_that_fails_is_counted(films, web, method) -> None:
    web.script("/v7.0/search", *[Answer("gone", status=401)] * 2)
    done, text = on_the_web(films(2), methods=(method,))
    assert [sum(r["searches_failed"].values()) for r in done.records] == [1, 1]
    assert sum(done.summary.search_failures.values()) == 2
    assert "searches failed, by provider" in text
    if method == "standard_rag":
        assert done.summary.metrics()["search.failed.bing"] == 2
