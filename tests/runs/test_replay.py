"""A run is recorded, its servers go away, and it is repeated from the exported cache alone."""

from __future__ import annotations

import asyncio
import io
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dspy
import pytest
from rich.console import Console

from programs.options import make_options
from programs.registry import make_program
from retrieval.cache import Cache, CachePolicy
from retrieval.cached import CachedReader, CachedSearch
from retrieval.caching.replay import ReplyMiss, asking_for, take_missing
from retrieval.registry import make_reader, make_search
from runs.answering import answer_one
from runs.benchmarks.question import Question
from runs.caching import cache_stats, export_cache, import_cache
from runs.evaluation import Evaluation, evaluate
from runs.home import Home
from runs.models.factory import make_model
from runs.replaying import replay_report
from signatures.errors import ModelError
from tests.runs.world import facts, write_lines
from tests.servers.lm import LMServer, searching_model
from tests.servers.web import Answer, WebServer

COUNT = 5


def page(film: str, director: str) -> str:
    lines = (
        f"{film} is a film. It was shot in a cold winter. It was directed by {director}, who also wrote it.",
        "The crew lived in huts for eleven weeks. Critics praised the light and the silence of its last hour.",
    )
    return (
        f"<html><head><title>{film}</title></head><body><article>"
        + "".join(f"<p>{x}</p>" for x in lines * 4)
        + ("</article></body></html>")
    )


class World:
    """Scripted web and model servers, questions about films, and runs on caches of one's choice."""

    def __init__(self, folder: Path, stack: ExitStack, model: str, **server: Any) -> None:
        self.folder = folder
        self.films = facts(COUNT)
        self.lm = stack.enter_context(LMServer(searching_model(self.films), **server))
        self.model = model
        hits, pages = {}, {"/shared": [Answer("gone", status=404), page("Nothing", "nobody")], "/gone": Answer("", 410)}
        for i, (film, director) in enumerate(self.films.items()):
            urls = (f"/film{i}", "/shared", *(["/gone"] if i == 2 else []))
            hits[film] = [{"title": film, "url": url, "snippet": f"{film} was directed by"} for url in urls]
            pages[f"/film{i}"] = page(film, director)
        self.web = stack.enter_context(WebServer(hits=hits, pages=pages))
        self.questions = [
            Question(f"q{i}", f"Who directed {film}?", (who,)) for i, (film, who) in enumerate(self.films.items())
        ]

    def home(self, name: str) -> Home:
        return Home(self.folder / name)

    def run(
        self, home: Home, *, replay: bool = False, method: str = "search_o1", seed: int = 0
    ) -> list[dict[str, Any]]:
        """Answer all questions, one after the other so that the shared page fails for the first of them."""
        cache = Cache(home.cache, CachePolicy(replay=replay))
        model = make_model(self.model, self.lm.base_url, cache=cache, home=home, retry_seconds=0.5)
        search = CachedSearch(make_search("bing"), cache)
        reader = CachedReader(make_reader("web", allow_private=True), cache)
        program = make_program(method, search, reader, make_options(None, task="open_qa", seed=seed))

        async def answer() -> list[dict[str, Any]]:
            records = []
            for question in self.questions:
                with asking_for(f"{seed}/{question.id}/0"):
                    records.append(await answer_one(program, model, question, 0, seed))
            return records

        return asyncio.run(answer())

    def carry(self, source: Home, target: str) -> Home:
        """Export a cache and import it into a fresh home."""
        home = self.home(target)
        export_cache(self.folder / f"{target}.cache", home=source)
        import_cache(self.folder / f"{target}.cache", home=home)
        return home


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with ExitStack() as stack:

        def make(model: str = "hosted_vllm/QwQ", **server: Any) -> World:
            found = World(tmp_path, stack, model, **server)
            monkeypatch.setenv("BING_ENDPOINT", found.web.search_url)
            monkeypatch.setenv("BING_KEY", "k-secret")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
            return found

        yield make


def chains(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [(r["id"], r["chain"], r["prediction"], r["finish"], r["error"]) for r in records]


def asked(world: World) -> tuple[int, int]:
    return len(world.lm.requests), len(world.web.requests)


def outcomes(records: list[dict[str, Any]]) -> list[list[tuple[Any, ...]]]:
    return [[(p["url"], p["status"], p["reason"]) for s in r["search_log"] for p in s["pages"]] for r in records]


@pytest.mark.parametrize(
    ("model", "method"),
    [("hosted_vllm/QwQ", "search_o1"), ("hosted_vllm/QwQ", "rag_agent"), ("openai/QwQ", "search_o1")],
)
def test_a_replay_equals_its_recording_byte_for_byte_with_all_servers_down(world: Any, model: str, method: str) -> None:
    here = world(model)
    recorded = here.run(here.home("recording"), method=method)
    if model.startswith("hosted_vllm/"):
        # The scripted model does not go on from a chain that stands in the user's turn; its chains are long ones then.
        assert [r["prediction"] for r in recorded] == list(here.films.values())
    if method == "search_o1":
        reasons = [[reason for _, _, reason in pages] for pages in outcomes(recorded)]
        # The shared page failed for the first question only, the gone one for the third.
        assert [bool(r[1]) for r in reasons] == [True, False, False, False, False]
        assert reasons[2][2]
    elsewhere = here.carry(here.home("recording"), "elsewhere")
    here.lm.stop()
    before = asked(here)
    replayed = here.run(elsewhere, replay=True, method=method)
    assert chains(replayed) == chains(recorded)
    assert outcomes(replayed) == outcomes(recorded)
    assert asked(here) == before
    assert all(r["calls_from_cache"] == r["calls"] > 0 for r in replayed)
    assert take_missing(elsewhere.cache).report() == ""
    for secret in (b"k-secret", b"sk-secret"):
        assert secret not in elsewhere.cache.read_bytes()


@pytest.mark.parametrize("context", [1_600, 2_000])
def test_a_replay_in_a_small_context_counts_tokens_as_its_recording_did(world: Any, context: int) -> None:
    here = world(max_model_len=context)
    recorded = here.run(here.home("a"))
    assert {r["finish"] for r in recorded} == {"context" if context == 1_600 else "answered"}
    assert any(h.kind == "tokens" and h.entries > 20 for h in cache_stats(home=here.home("a")))
    here.lm.stop()
    before = asked(here)
    replayed = here.run(here.carry(here.home("a"), "b"), replay=True)
    assert chains(replayed) == chains(recorded)
    assert [kinds_of_events(r) for r in replayed] == [kinds_of_events(r) for r in recorded]
    assert asked(here) == before


def kinds_of_events(record: dict[str, Any]) -> list[str]:
    return [event["type"] for event in record["events"]]


def test_the_same_command_with_replay_repeats_an_evaluation(world: Any) -> None:
    here = world()
    here.web.script("/shared", page("Nothing", "nobody"))
    data = write_lines(
        here.folder / "films.jsonl",
        [{"id": q.id, "question": q.question, "answers": list(q.answers)} for q in here.questions],
    )

    def evaluation(home: Home, **more: Any) -> Evaluation:
        (done,) = evaluate(
            "films", home=home, data=data, model="hosted_vllm/QwQ", base_url=here.lm.base_url, methods=("search_o1",),
            search="bing", reader="web", allow_private=True, track=False, progress=False, **more,
        )  # fmt: skip
        return done

    recorded = evaluation(here.home("a"))
    assert recorded.summary.scores["strict"]["em"].mean == 1.0
    elsewhere = here.carry(here.home("a"), "b")
    here.lm.stop()
    before = asked(here)
    replayed = evaluation(elsewhere, replay=True)
    assert chains(replayed.records) == chains(recorded.records)
    assert replayed.summary.scores == recorded.summary.scores
    assert asked(here) == before
    delete(elsewhere, "replies", "Bergen")
    said = io.StringIO()
    again = evaluation(elsewhere, replay=True, console=Console(file=said, width=200))
    assert "Replay: missing in the cache: 1 model reply." in said.getvalue()
    assert [r["id"] for r in again.records if r["error"]] == ["q1"]


def delete(home: Home, kind: str, about: str) -> None:
    with sqlite3.connect(home.cache) as connection:
        gone = connection.execute(f"DELETE FROM {kind} WHERE parts LIKE ?", (f"%{about}%",)).rowcount
    connection.close()
    assert gone > 0


@pytest.mark.parametrize(
    ("kind", "about", "named"),
    [
        ("searches", "Bergen", "the search 'Sunrise over Bergen 01' for"),
        ("pages", "/film1", "/film1'"),
        ("replies", "Bergen", "the reply of QwQ to a prompt ending in"),
        ("tokens", "boundary", "what the tokenizer of QwQ says of the text"),
    ],
)
def test_what_is_missing_is_named_and_the_others_are_answered(world: Any, kind: str, about: str, named: str) -> None:
    here = world()
    recorded = here.run(here.home("a"))
    home = here.carry(here.home("a"), "b")
    delete(home, kind, about)
    here.lm.stop()
    replayed = here.run(home, replay=True)
    changed = [r for r, old in zip(replayed, recorded, strict=True) if r["chain"] != old["chain"] or r["error"]]
    assert (len(changed) == COUNT) if kind == "tokens" else [r["id"] for r in changed] == ["q1"]
    for record in changed:
        assert record["finish"] == "error"
        assert named in record["error"]
        assert "is not in the cache" in record["error"]
        assert "without --replay" in record["error"]
    missing = take_missing(home.cache)
    assert missing.counts() == {kind: len(changed)}
    assert missing.report().startswith(f"Replay: missing in the cache: {len(changed)} ")
    assert take_missing(home.cache).counts() == {}


def test_a_server_that_was_never_asked_is_named_without_a_call(world: Any) -> None:
    here = world()
    with pytest.raises(ReplyMiss, match=r"what the model server at http://127\.0\.0\.1:\d+/v1 says of 'QwQ'") as missed:
        here.run(here.home("empty"), replay=True)
    assert isinstance(missed.value, ModelError)
    assert asked(here) == (0, 0)


def test_another_seed_or_another_model_is_missing_not_made_up(world: Any) -> None:
    here = world("openai/QwQ")
    here.run(here.home("a"))
    before = asked(here)
    replayed = here.run(here.home("a"), replay=True, seed=1)
    assert all("the reply of openai/QwQ" in r["error"] and r["error_kind"] == "replay_miss" for r in replayed)
    assert asked(here) == before


def test_a_run_that_was_tried_again_replays_its_last_story(world: Any) -> None:
    here = world()
    home = here.home("a")
    here.lm.fail_next(1, status=400, body={"error": {"message": "broken"}})
    first = here.run(home)
    assert [bool(r["error"]) for r in first] == [True, False, False, False, False]
    assert chains(here.run(home, replay=True)) == chains(first)
    again = here.run(home)
    assert not any(r["error"] for r in again)
    # The page that failed for the first question is there by now, for that question too.
    assert chains(here.run(home, replay=True)) == chains(again)


def test_the_embedded_model_replays_without_generating(tmp_path: Path, world: Any) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    prompt = "The capital of France is"
    recorded = make_model("local", cache=cache)
    text = recorded.lm(prompt, max_tokens=6, temperature=0.0)
    replayed = make_model("local", cache=Cache(cache.path, CachePolicy(replay=True)))
    assert replayed.lm(prompt, max_tokens=6, temperature=0.0) == text
    with pytest.raises(dspy.utils.exceptions.LMError, match="the reply of local/"):
        replayed.lm("The capital of Spain is", max_tokens=6, temperature=0.0)
    assert replayed.core is not None
    assert replayed.core.model_calls == 0
    assert asyncio.run(recorded.core.count_tokens([{"role": "user", "content": prompt}], "", True)) > 3  # type: ignore[union-attr]
    assert asyncio.run(replayed.core.count_tokens([{"role": "user", "content": prompt}], "", True)) > 3


def test_weights_that_are_not_there_are_not_fetched_in_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_O1_MODELS", str(tmp_path / "no-models"))
    with pytest.raises(ModelError, match="a replay fetches nothing"):
        make_model("local", cache=Cache(tmp_path / "cache.sqlite", CachePolicy(replay=True)))
    assert not (tmp_path / "no-models").exists()


def test_a_replay_says_when_there_is_nothing_to_compare_it_with(tmp_path: Path) -> None:
    lines = replay_report(Home(tmp_path), [("search_o1", "films-replay", [{"id": "q", "sample": 0}])])
    assert lines == ["search_o1: the recording's journal is not in this home folder, so nothing was compared"]
