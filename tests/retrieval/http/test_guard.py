from __future__ import annotations

import asyncio
import contextlib
import socket

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.http.client import HttpClient
from retrieval.http.guard import GuardedResolver, RefusedAddress, check_url, is_public
from retrieval.http.sessions import session
from signatures.errors import ReadError
from tests.servers.web import WebServer

REFUSED = [
    "http://127.0.0.1/",
    "http://127.0.0.1.:8080/x",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://0/",
    "http://0.0.0.0/",
    "http://①②⑦.0.0.1/",
    "http://127。0。0。1/",
    "http://10.0.0.1/",
    "http://172.16.5.4/",
    "http://192.168.1.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://localhost/",
    "http://LOCALHOST:80/",
    "http://localhost./",
    "http://a.localhost/",
    "http://printer.local/",
    "http://metadata.google.internal/",
    "http://router.home.arpa/",
    "http://user:pw@127.0.0.1/",
    "http://example.org@127.0.0.1/",
    "file:///etc/passwd",
    "ftp://example.org/",
    "gopher://example.org/",
    "data:text/plain,x",
    "javascript:alert(1)",
    "corpus://demo/1",
    "//example.org/",
    "example.org",
    "",
    "http://",
    "http:///path",
    "http://[::1",
    "http://exa mple.org:port/",
]

ALLOWED = [
    "http://example.org/",
    "https://example.org:8443/a?b=c#d",
    "HTTPS://EXAMPLE.ORG",
    "http://8.8.8.8/",
    "http://134744072/",
    "http://[2606:4700:4700::1111]/",
    "http://[::ffff:8.8.8.8]/",
    "http://[64:ff9b::808:808]/",
    "http://localhost.example.org/",
    "http://10.example.org/",
    "http://127.0.0.1@example.org/",
    "http://bücher.example/",
]


@pytest.mark.parametrize("url", REFUSED)
def test_refused(url: str) -> None:
    with pytest.raises(RefusedAddress):
        check_url(url)


@pytest.mark.parametrize("url", ALLOWED)
def test_allowed(url: str) -> None:
    assert check_url(url).host


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_private_addresses_pass_when_allowed(url: str) -> None:
    assert check_url(url, allow_private=True).host


@pytest.mark.parametrize("url", ["file:///etc/passwd", "corpus://a/b", "http://"])
def test_the_scheme_is_checked_even_then(url: str) -> None:
    with pytest.raises(RefusedAddress):
        check_url(url, allow_private=True)


@given(st.ip_addresses(v=4, network="127.0.0.0/8") | st.ip_addresses(v=4, network="10.0.0.0/8"))
def test_every_spelling_of_a_private_address_is_refused(address: object) -> None:
    number = int(address)  # type: ignore[call-overload]
    octets = str(address).split(".")
    spellings = [
        str(address),
        str(number),
        hex(number),
        "0" + oct(number)[2:],
        ".".join(hex(int(octet)) for octet in octets),
        ".".join("0" + oct(int(octet))[2:] for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"[::ffff:{address}]",
    ]
    for spelling in spellings:
        with pytest.raises(RefusedAddress):
            check_url(f"http://{spelling}/")


@given(st.text(max_size=60))
def test_any_text_is_either_parsed_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://{text}/x"):
        with contextlib.suppress(RefusedAddress):
            assert check_url(url).scheme in ("http", "https")


@given(st.ip_addresses())
def test_the_verdict_is_given_for_every_address(address: object) -> None:
    assert is_public(str(address)) in (True, False)


async def test_the_resolver_hands_out_no_private_address() -> None:
    resolver = GuardedResolver()
    with pytest.raises(RefusedAddress, match="not public"):
        await resolver.resolve("localhost", 80)
    assert [found["host"] for found in await resolver.resolve("8.8.8.8", 80)] == ["8.8.8.8"]
    with pytest.raises(RefusedAddress):
        await resolver.resolve("2130706433", 80)
    await resolver.close()


async def test_the_address_is_checked_when_connecting() -> None:
    with WebServer(pages={"/": "secret"}) as server:
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session(True).get(f"http://localhost:{server.port}/")
        assert isinstance(caught.value.os_error, RefusedAddress)
        assert server.requests == []


async def test_a_name_that_resolves_to_a_private_address_is_refused() -> None:
    name = socket.gethostname()
    try:
        private = not any(is_public(found[4][0]) for found in socket.getaddrinfo(name, 80))
    except OSError:
        private = False
    with pytest.raises(ReadError) as caught:
        await HttpClient("web", ReadError, guarded=True).request("GET", f"http://{name}:1/", what="the page")
    assert caught.value.reason == ("refused" if private else "connection")


def test_the_guard_and_the_open_sessions_are_apart() -> None:
    async def both() -> bool:
        return session(True) is session(True) is not session(False)

    assert asyncio.run(both())
