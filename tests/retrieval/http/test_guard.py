from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.http.addresses import is_public
from retrieval.http.client import HttpClient
from retrieval.http.guard import GuardedResolver, RefusedAddress, check_url
from retrieval.http.sessions import session
from signatures.errors import ReadError
from tests.servers.names import ScriptedNames
from tests.servers.web import WebServer

LOOPBACK = [
    "http://127.0.0.1/",
    "http://127.0.0.1.:8080/x",
    "http://127.255.255.254/",
    "http://0.0.0.0/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://localhost/",
    "http://LOCALHOST:80/",
    "http://LocalHost./",
    "http://a.localhost/",
    "http://ⓛocalhost/",
]
ODD_SPELLINGS = [
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://2130706433/",
    "http://017700000001/",
    "http://0x7f000001/",
    "http://0x7F.1/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://0177.0x0.0.1/",
    "http://2852039166/",
    "http://0xA9FEA9FE/",
    "http://192.168.257/",
    "http://①②⑦.⓪.⓪.①/",
    "http://①②⑦.0.0.1/",
    "http://１２７.0.0.1/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://1.2.3.4.5/",
    "http://4294967296/",
    "http://127.0.0.1.2130706433/",
    "http://0x/",
    "http://256.256.256.256/",
]
PRIVATE = [
    "http://10.0.0.1/",
    "http://172.16.5.4/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://192.0.0.8/",
    "http://192.0.2.1/",
    "http://198.51.100.7/",
    "http://203.0.113.9/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[fc00::1]/",
    "http://[fdff::1]/",
    "http://[fec0::1]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[3fff::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[4000::1]/",
    "http://intranet/",
    "http://printer.local/",
    "http://router.home.arpa/",
    "http://nas.lan/",
    "http://wiki.corp/",
]
METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/v2/credentials",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://metadata.google.internal/",
    "http://METADATA.google.internal./",
    "http://metadata/",
]
WRAPPED = [
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::FFFF:a9fe:a9fe]/",
    "http://[0:0:0:0:0:ffff:10.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[::8.8.8.8]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::169.254.169.254]/",
    "http://[64:ff9b:1::8.8.8.8]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/",
    "http://[2001:0:4136:e378:8000:63bf:f7f7:f7f7]/",
    "http://[2606:4700::5efe:10.0.0.1]/",
    "http://[2606:4700::200:5efe:127.0.0.1]/",
]
ZONES = ["http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[2606:4700::1%25eth0]/", "http://[::1%25lo]/"]
TRICKS = [
    "http://user:pw@127.0.0.1/",
    "http://example.org@127.0.0.1/",
    "http://127.0.0.1@example.org/",
    "http://user:secret@example.org/",
    "http://user@example.org/",
    "http://:secret@example.org/",
    "http://example.org\\@127.0.0.1/",
    "http://127.0.0.1\\.example.org/",
    "http:\\\\127.0.0.1\\x",
    "http://127.0.0.1#.example.org/",
    "http://127.0.0.1?.example.org/",
    "http://exa\nmple.org/",
    "http://exam\tple.org/",
    "http://example.org/\r\nX-Injected: 1",
    "http://example.org/\x00",
    "http://example.org/\x7f",
    "http://127.0.0.1\t/",
    "http://exa mple.org/",
    "http://exa%20mple.org/",
    "http://example.org%23.evil.example/",
    "http://example.org%00.evil.example/",
    "http://a\u200bb.org/",
    "http://a..b/",
    "http://.example.org/",
    "http://example.org../",
    "http://" + "a" * 64 + ".example/",
    "http://example.org/" + "a" * 9000,
    "http://xn--a/",
]
PORTS = [
    f"http://example.org:{port}/" for port in (0, 22, 25, 53, 110, 143, 389, 465, 587, 636, 2049, 6000, 6379, 6667)
] + ["http://example.org:99999/", "http://example.org:80:80/", "http://example.org:port/", "http://8.8.8.8:22/"]
SCHEMES = [
    "file:///etc/passwd",
    "file://example.org/etc/passwd",
    "FILE:///etc/passwd",
    "ftp://example.org/",
    "gopher://example.org:70/_x",
    "dict://example.org/",
    "ldap://example.org/",
    "ws://example.org/",
    "data:text/plain,x",
    "data:text/html;base64,PGI+",
    "javascript:alert(1)",
    "blob:http://example.org/x",
    "view-source:http://example.org/",
    "jar:http://example.org/x!/y",
    "corpus://demo/1",
    "about:blank",
    "unix:///run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
]
NO_ADDRESSES = [
    "//example.org/",
    "example.org",
    "",
    " ",
    "http://",
    "http:///path",
    "http:/example.org/",
    "http:example.org",
    "http://:80/",
    "http://./",
    "http://[::1",
    "http://[]/",
    "http://[1.2.3.4]/",
    "http://[g::1]/",
    "http://exa mple.org:port/",
]
REFUSED = [
    *LOOPBACK,
    *ODD_SPELLINGS,
    *PRIVATE,
    *METADATA,
    *WRAPPED,
    *ZONES,
    *TRICKS,
    *PORTS,
    *SCHEMES,
    *NO_ADDRESSES,
]

ALLOWED = {
    "http://example.org/": "example.org",
    "https://example.org:8443/a?b=c#d": "example.org",
    "HTTPS://EXAMPLE.ORG": "example.org",
    "http://example.org./": "example.org.",
    "http://example.org:8080/": "example.org",
    "http://example.org/a b/ü?q=x y": "example.org",
    "https://example.org/a@b:c\\d": "example.org",
    "http://example.org#@127.0.0.1:x@/": "example.org",
    "http://8.8.8.8/": "8.8.8.8",
    "http://8.8.8.8:8000/": "8.8.8.8",
    "http://134744072/": "8.8.8.8",
    "http://0x8.8.8.8/": "8.8.8.8",
    "http://0127.0.0.1/": "87.0.0.1",
    "http://172.32.0.1/": "172.32.0.1",
    "http://172.15.255.255/": "172.15.255.255",
    "http://100.128.0.1/": "100.128.0.1",
    "http://192.0.1.1/": "192.0.1.1",
    "http://223.255.255.255/": "223.255.255.255",
    "http://[2606:4700:4700::1111]/": "2606:4700:4700::1111",
    "http://[2606:4700:4700::1111]:8080/": "2606:4700:4700::1111",
    "http://[2a00:1450:4001:81b::200e]/": "2a00:1450:4001:81b::200e",
    "http://[::ffff:8.8.8.8]/": "::ffff:808:808",
    "http://[64:ff9b::808:808]/": "64:ff9b::808:808",
    "http://[2002:808:808::1]/": "2002:808:808::1",
    "http://localhost.example.org/": "localhost.example.org",
    "http://10.example.org/": "10.example.org",
    "http://127.0.0.1.example.org/": "127.0.0.1.example.org",
    "http://notlocal.example/": "notlocal.example",
    "http://bücher.example/": "xn--bcher-kva.example",
    "http://xn--bcher-kva.example/": "xn--bcher-kva.example",
    "http://例え.テスト/": "xn--r8jz45g.xn--zckzah",
    "http://under_score.example.org/": "under_score.example.org",
}


@pytest.mark.parametrize("url", REFUSED)
def test_refused(url: str) -> None:
    with pytest.raises(RefusedAddress):
        check_url(url)


@pytest.mark.parametrize("url", ALLOWED)
def test_allowed(url: str) -> None:
    assert check_url(url).raw_host == ALLOWED[url]


def test_the_table_is_large_enough() -> None:
    assert len(set(REFUSED)) >= 150
    assert len(ALLOWED) >= 25


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://localhost/", "http://[::1]/"])
def test_private_addresses_pass_when_allowed(url: str) -> None:
    assert check_url(url, allow_private=True).host


@pytest.mark.parametrize("url", [*SCHEMES, "http://", "http://127.0.0.1/\r\nX: 1", "http://a/" + "a" * 9000])
def test_the_form_is_checked_even_then(url: str) -> None:
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


@given(st.ip_addresses(v=6, network="2000::/3"))
def test_an_address_is_public_only_if_the_standard_library_thinks_so_too(address: object) -> None:
    # Older Pythons do not know the later registrations; none calls a global address private.
    if is_public(str(address)):
        assert not ipaddress.ip_address(str(address)).is_private


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_the_same_in_every_ipv6_form(address: ipaddress.IPv4Address) -> None:
    verdict, number = is_public(str(address)), int(address)
    for form in (0xFFFF << 32 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80):
        assert is_public(str(ipaddress.IPv6Address(form))) == verdict


async def test_the_resolver_hands_out_no_private_address() -> None:
    names = ScriptedNames(
        {"mixed.example": ["10.0.0.1", "8.8.8.8", "::1"], "inside.example": ["192.168.0.1", "fe80::1"]}
    )
    resolver = GuardedResolver(names)
    assert [found["host"] for found in await resolver.resolve("mixed.example", 80)] == ["8.8.8.8"]
    with pytest.raises(RefusedAddress, match=r"inside\.example resolves to an address that is not public"):
        await resolver.resolve("inside.example", 80)
    with pytest.raises(OSError, match="no such name"):
        await resolver.resolve("none.example", 80)
    # A proxy might choose any of them.
    with pytest.raises(RefusedAddress):
        await resolver.check_all("mixed.example", 80)


async def test_the_system_resolver_is_guarded_too() -> None:
    resolver = GuardedResolver()
    with pytest.raises(RefusedAddress, match="not public"):
        await resolver.resolve("localhost", 80)
    with pytest.raises(RefusedAddress):
        await resolver.resolve("2130706433", 80)
    assert [found["host"] for found in await resolver.resolve("8.8.8.8", 80)] == ["8.8.8.8"]
    await resolver.close()


async def test_a_name_that_changes_between_check_and_connection_gains_nothing() -> None:
    names = ScriptedNames({"rebind.example": [["8.8.8.8"], ["127.0.0.1"]]})
    connected: list[str] = []

    def record(address: Any) -> socket.socket:
        connected.append(address[4][0])
        raise OSError(errno.ENETUNREACH, "no network in tests")

    connector = aiohttp.TCPConnector(resolver=GuardedResolver(names), socket_factory=record, ttl_dns_cache=0)
    async with aiohttp.ClientSession(connector=connector) as open_session:
        for _ in range(2):
            with pytest.raises(aiohttp.ClientConnectorError):
                await open_session.get("http://rebind.example/")
    # Asked once a connection, and connected to that very answer; the second answer was refused.
    assert names.asked == ["rebind.example", "rebind.example"]
    assert connected == ["8.8.8.8"]


async def test_a_page_whose_name_points_inside_is_refused_and_never_asked() -> None:
    with WebServer(pages={"/": "secret"}) as server:
        names = ScriptedNames({"inside.example": ["127.0.0.1"]})
        client = HttpClient("web", ReadError, guarded=True, resolver=names)
        with pytest.raises(ReadError, match=r"inside\.example resolves to an address that is not public") as caught:
            await client.request("GET", f"http://inside.example:{server.port}/", what="the page")
        assert (caught.value.reason, server.requests, names.asked) == ("refused", [], ["inside.example"])


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"])
async def test_every_address_is_checked_when_connecting(host: str) -> None:
    with WebServer(pages={"/": "secret"}) as server:
        # Past `check_url`: numeric hosts pass no resolver, but their socket is never made.
        with pytest.raises(aiohttp.ClientConnectorError) as caught:
            await session(True).get(f"http://{host}:{server.port}/")
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
    assert caught.value.reason == "refused" or not private


def test_the_guard_and_the_open_sessions_are_apart() -> None:
    async def both() -> bool:
        return session(True) is session(True) is not session(False)

    assert asyncio.run(both())
