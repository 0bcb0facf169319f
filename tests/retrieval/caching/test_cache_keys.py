"""Keys of cache entries may be read, and no credential stands in them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.cache import Cache
from retrieval.caching.keys import readable, shown, without_credentials
from signatures.errors import OptionError


def test_the_key_can_be_read_and_holds_no_secret(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    endpoint = "bing:https://me:pass-word@proxy.example/search?code=s3cr3t&v=7:en-US:en"
    cache.put("searches", {"backend": endpoint, "query": "who, key=value?", "k": 3}, [], "bing", "a search")
    with sqlite3.connect(cache.path) as connection:
        (parts, provider) = connection.execute("SELECT parts, provider FROM searches").fetchone()
    connection.close()
    assert json.loads(parts) == {
        "backend": "bing:https://***@proxy.example/search?code=***&v=7:en-US:en",
        "query": "who, key=value?",
        "k": 3,
        "about": "a search",
    }
    assert provider == "bing"
    assert cache.get("searches", {"backend": endpoint, "query": "who, key=value?", "k": 3}) == []


@given(user=st.from_regex(r"[a-z0-9]{3,8}", fullmatch=True), secret=st.from_regex(r"[A-Z0-9]{8,20}", fullmatch=True))
def test_no_credential_of_an_address_is_shown(user: str, secret: str) -> None:
    for address in (
        f"https://{user}:{secret}@host.example:80/v1",
        f"https://{user}:x@{secret}@host.example:80/v1",
        f"https://host.example/v1?api_key={secret}",
        f"https://host.example/v1?a=1&Subscription-Key={secret}&b=2",
        f"x:https://{user}:{secret}@host.example/?token={secret}#x",
    ):
        assert secret not in readable({"server": [address], "nested": {"x": address}})
        assert secret not in shown(address)
        assert secret not in without_credentials(address.removeprefix("x:"))
    assert without_credentials(f"https://{user}:{secret}@h.example:80/v1/") == "https://h.example:80/v1"


def test_half_a_surrogate_pair_can_be_asked_for(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "cache.sqlite")
    cache.put("searches", {"query": "half \ud800 a pair"}, ["found"], "bing")
    assert cache.get("searches", {"query": "half \ud800 a pair"}) == ["found"]
    assert cache.get("searches", {"query": "half ? a pair"}) is None


def test_an_address_that_is_none_is_an_error_of_ours() -> None:
    with pytest.raises(OptionError, match="not a valid URL"):
        without_credentials("http://[bad/v1")
