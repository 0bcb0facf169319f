"""Fetching files of the hub: once, with their commit, offline from the cache, and refusals that say what to do."""

from __future__ import annotations

import pytest

from runs.benchmarks.hub import fetch
from signatures.errors import DataError
from tests.servers.hub import HubRepo

MATH = "HuggingFaceH4/MATH-500"
GPQA = "Idavidrein/gpqa"


def test_a_file_is_downloaded_once_and_comes_with_its_commit(hub) -> None:
    first, second = fetch(MATH, ["test.jsonl"]), fetch(MATH, ["test.jsonl"])
    assert first == second
    assert first.revision == hub.repos[MATH].commit
    assert first.paths[0].read_bytes() == hub.repos[MATH].files["test.jsonl"]
    assert hub.downloads() == ["test.jsonl"]


def test_a_pattern_finds_its_one_file_behind_a_redirect(hub) -> None:
    repo = "AI-MO/aimo-validation-aime"
    files = fetch(repo, ["data/train-*.parquet"])
    assert files.paths[0].read_bytes() == hub.repos[repo].files["data/train-00000-of-00001.parquet"]
    with pytest.raises(DataError, match=r"0 files match data/test-\*\.parquet, expected one.*--data FILE"):
        fetch(repo, ["data/test-*.parquet"])


def test_a_new_commit_is_fetched_and_an_old_one_can_still_be_named(hub) -> None:
    old = fetch(MATH, ["test.jsonl"])
    hub.repos[MATH] = HubRepo({"test.jsonl": b"{}\n"})
    new = fetch(MATH, ["test.jsonl"])
    assert new.revision != old.revision
    assert new.paths[0].read_bytes() == b"{}\n"
    hub.status = 503
    assert fetch(MATH, ["test.jsonl"], old.revision) == old
    assert fetch(MATH, ["test.jsonl"]) == new


@pytest.mark.parametrize("status", [500, 503, 429])
def test_without_a_hub_the_cached_copy_serves(hub, status) -> None:
    fetched = fetch(MATH, ["test.jsonl"])
    hub.status = status
    assert fetch(MATH, ["test.jsonl"]) == fetched
    with pytest.raises(
        DataError, match=rf"cannot be fetched \(HTTP {status}\) and is not in the hub's cache.*--data F"
    ):
        fetch("AI-MO/aimo-validation-amc", ["data/train-*.parquet"])


def test_an_address_where_nobody_listens_is_told_without_a_traceback(hub, monkeypatch) -> None:
    fetched = fetch(MATH, ["test.jsonl"])
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert fetch(MATH, ["test.jsonl"]) == fetched
    with pytest.raises(
        DataError, match=r"gpqa cannot be fetched \(\w+\) and is not in the hub's cache. Check the conn"
    ):
        fetch(GPQA, ["gpqa_diamond.csv"])


def test_the_librarys_offline_switch_is_respected(hub, monkeypatch) -> None:
    import huggingface_hub.constants

    fetched = fetch(MATH, ["test.jsonl"])
    asked = len(hub.requests)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert fetch(MATH, ["test.jsonl"]) == fetched
    with pytest.raises(DataError, match="Check the connection and HF_HUB_OFFLINE"):
        fetch(GPQA, ["gpqa_diamond.csv"])
    assert len(hub.requests) == asked


def test_a_gated_file_needs_a_token_with_access(hub, monkeypatch) -> None:
    complaint = (
        r"gpqa is gated: accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa, .*hf auth login.*HF_T"
    )
    with pytest.raises(DataError, match=complaint):
        fetch(GPQA, ["gpqa_diamond.csv"])
    monkeypatch.setenv("HF_TOKEN", "hf_stranger")
    with pytest.raises(DataError, match=complaint):
        fetch(GPQA, ["gpqa_diamond.csv"])
    monkeypatch.setenv("HF_TOKEN", "hf_member")
    assert fetch(GPQA, ["gpqa_diamond.csv"]).paths[0].read_bytes().startswith(b"Pre-Revision")


def test_an_invalid_token_is_told_as_such_and_never_shown(hub, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_mistyped")
    with pytest.raises(DataError, match=r"refused .*\(HTTP 401\): the token in HF_TOKEN is not valid") as caught:
        fetch(MATH, ["test.jsonl"])
    assert "hf_mistyped" not in str(caught.value)


@pytest.mark.parametrize(
    ("repo", "name", "revision", "complaint"),
    [
        ("nobody/nothing", "test.jsonl", "main", "The hub knows no dataset nobody/nothing, or does not show it"),
        (MATH, "test.jsonl", "v9", "MATH-500 has no revision 'v9'"),
        (MATH, "train.jsonl", "main", "0 files match train.jsonl, expected one"),
    ],
)
def test_what_is_not_there_is_named(hub, repo, name, revision, complaint) -> None:
    with pytest.raises(DataError, match=complaint):
        fetch(repo, [name], revision)
