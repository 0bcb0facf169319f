"""The doctor: one line a part, and what mends it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from retrieval.cache import Cache
from retrieval.corpus.index import build_index
from runs.checks.check import Check
from runs.checks.storage import check_tracking, without_password
from runs.doctor import doctor
from runs.home import Home
from tests.runs.world import command, corpus_file
from tests.servers.lm import LMServer
from tests.servers.web import WebServer


def found(checks: list[Check], name: str) -> Check:
    (one,) = [check for check in checks if check.name == name]
    return one


def test_a_new_home_is_all_right_and_says_what_is_not_set_up(tmp_path: Path) -> None:
    checks = doctor(home=Home(tmp_path))
    assert not [check for check in checks if check.state == "wrong"]
    assert found(checks, "home").state == "ok"
    assert found(checks, "index").state == "off"
    assert found(checks, "index").mend == "search-o1 index build NAME FILE"
    assert found(checks, "search serper").mend == "export SERPER_API_KEY=..."
    assert {c.name.split()[0] for c in checks} == {"home", "model", "search", "reader", "index", "cache", "mlflow"}


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    check = found(doctor(home=Home(blocked / "home")), "home")
    assert check.state == "wrong"
    assert "SEARCH_O1_HOME" in check.mend


def test_the_served_model_and_its_context_are_compared_with_what_is_wanted(tmp_path: Path) -> None:
    with LMServer([], model="Qwen/QwQ-32B", max_model_len=8192) as server:
        checks = doctor(model="hosted_vllm/Qwen/QwQ-32B", base_url=server.base_url, home=Home(tmp_path))
        assert found(checks, "model").state == "ok"
        context = found(checks, "context")
        assert context.state == "wrong"
        assert "8,192" in context.text
        assert "--context-length" in context.mend
        other = doctor(model="hosted_vllm/other", base_url=server.base_url, home=Home(tmp_path))
        assert "it serves: Qwen/QwQ-32B" in found(other, "model").text


def test_a_server_that_does_not_answer_is_wrong(tmp_path: Path) -> None:
    check = found(doctor(model="hosted_vllm/x", base_url="http://127.0.0.1:9/v1", home=Home(tmp_path)), "model")
    assert check.state == "wrong"
    assert "search-o1 serve" in check.text


def test_weights_of_another_content_are_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_O1_MODELS", str(tmp_path))
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF but broken")
    check = found(doctor(home=Home(tmp_path)), "model")
    assert check.state == "wrong"
    assert "remove" in check.mend


def test_a_providers_missing_key_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    check = found(doctor(model="openai/gpt-4.1-mini", home=Home(tmp_path)), "model")
    assert check.state == "wrong"
    assert "OPENAI_API_KEY" in check.mend


def test_a_chosen_backend_is_asked_and_the_others_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hits = [{"title": "A", "url": "https://a.example.org/", "snippet": "s"}]
    with WebServer(default_hits=hits) as server:
        monkeypatch.setenv("BING_ENDPOINT", server.search_url)
        monkeypatch.setenv("BING_KEY", "secret-key")
        quiet = doctor(home=Home(tmp_path))
        assert "BING_KEY set" in found(quiet, "search bing").text
        assert not server.requests
        asked = doctor(search="bing", home=Home(tmp_path))
        assert found(asked, "search bing").text == "answered; first hit https://a.example.org/"
        assert "secret-key" not in "".join(map(str, quiet + asked))
        server.hits, server.default_hits = {}, ()
        assert found(doctor(search="bing", home=Home(tmp_path)), "search bing").state == "wrong"


def test_a_chosen_backend_without_its_key_is_wrong(tmp_path: Path) -> None:
    check = found(doctor(search="bing", home=Home(tmp_path)), "search bing")
    assert (check.state, check.mend) == ("wrong", "export BING_ENDPOINT=...")


def test_an_unknown_backend_or_reader_lists_the_known_ones(tmp_path: Path) -> None:
    checks = doctor(search="gogle", reader="weeb", home=Home(tmp_path))
    assert "serper" in found(checks, "search gogle").mend
    assert "jina" in found(checks, "reader weeb").mend


def test_a_reader_reads_the_page_it_is_given(tmp_path: Path) -> None:
    with WebServer(pages={"/p": "<html><body><p>A page with a sentence that can be read.</p></body></html>"}) as server:
        options = {"reader": "web", "page": server.url + "/p", "home": Home(tmp_path)}
        assert found(doctor(allow_private=True, **options), "reader web").state == "ok"
        refused = found(doctor(**options), "reader web")
        assert refused.state == "wrong"
        assert "not a public address" in refused.text


def test_an_index_of_another_format_is_wrong_and_the_others_are_still_looked_at(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    corpus = corpus_file(tmp_path, 3)
    build_index([corpus], home.indexes / "good", "good")
    build_index([corpus], home.indexes / "bad", "bad")
    info = home.indexes / "bad" / "info.json"
    info.write_text(info.read_text().replace('"format_version": ', '"format_version": 9'))
    checks = doctor(home=home)
    assert "3 documents" in found(checks, "index good").text
    assert found(checks, "index bad").state == "wrong"
    assert found(checks, "index bad").mend == "search-o1 index build bad FILE"


def test_the_cache_is_counted_or_found_damaged(tmp_path: Path) -> None:
    home = Home(tmp_path)
    cache = Cache(home.cache)
    cache.put("pages", {"url": "x"}, {"text": "y"})
    cache.close()
    assert "1 pages" in found(doctor(home=home), "cache").text
    home.cache.write_bytes(b"this is no database, whatever its name says" * 100)
    assert found(doctor(home=home), "cache").state == "wrong"


def test_a_cache_that_another_program_is_writing_is_not_called_wrong(tmp_path: Path) -> None:
    home = Home(tmp_path)
    Cache(home.cache).put("pages", {"url": "x"}, {"text": "y"})
    with sqlite3.connect(home.cache) as other:
        other.execute("BEGIN IMMEDIATE")
        assert found(doctor(home=home), "cache").state == "ok", "a writer does not hinder readers"


def test_a_tracking_server_is_asked_for_its_health_and_passwords_are_not_shown(tmp_path: Path) -> None:
    with WebServer(pages={"/health": "OK"}) as server:
        assert check_tracking(server.url).state == "ok"
        assert check_tracking(server.url + "/elsewhere").state == "wrong"
    assert check_tracking("http://127.0.0.1:9").state == "wrong"
    assert without_password("http://me:pw@host:5/x") == "http://***@host:5/x"


def test_the_command_prints_a_line_each_and_fails_when_something_is_wrong(tmp_path: Path) -> None:
    good = command("doctor", home=tmp_path)
    assert good.exit_code == 0, good.output
    assert "ok    home" in good.output
    bad = command("doctor", "--search", "serper", home=tmp_path, SERPER_API_KEY=None)
    assert bad.exit_code == 1
    assert "WRONG search serper" in bad.output
    assert "-> export SERPER_API_KEY=..." in bad.output


def test_every_finding_is_one_line_without_a_password(tmp_path: Path) -> None:
    no_store = tmp_path / "notes"
    no_store.write_text("not a database\n" * 50)
    for uri in ("nonsense://me:pass-word@host/x", f"sqlite:///{no_store}", "http://me:pass-word@127.0.0.1:9/x"):
        check = check_tracking(uri)
        assert check.state == "wrong"
        assert "\n" not in check.text
        assert len(check.text) < 1_000
        assert "pass-word" not in check.text


def test_a_folder_in_the_place_of_the_cache_is_wrong(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.cache.mkdir(parents=True)
    check = found(doctor(home=home), "cache")
    assert (check.state, check.mend) == ("wrong", f"move {home.cache} away: a new one is made")


def test_names_and_settings_are_checked_without_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RETRIEVER_URL", "http://127.0.0.1:9/retrieve")
    checks = doctor(search="litellm:nobody,retriever", call=False, home=Home(tmp_path))
    assert found(checks, "search retriever").state == "ok"
    wrong = found(checks, "search litellm:nobody")
    assert wrong.state == "wrong"
    assert "Unknown search provider 'nobody'" in wrong.text
