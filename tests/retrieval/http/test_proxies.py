from __future__ import annotations

import datetime
import logging
import os
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from yarl import URL

from retrieval.http.client import HttpClient, Limits, Reply
from retrieval.http.failures import FailureError
from retrieval.http.proxies import proxy_for, warn_of_rebinding
from signatures.errors import ReadError
from tests.servers.names import ScriptedNames
from tests.servers.proxy import ProxyServer
from tests.servers.web import WebServer

ROOT = Path(__file__).parents[3]
QUICK = Limits(connect_s=2, read_s=2, total_s=4, attempts=1)
VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "REQUEST_METHOD")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def client(names: ScriptedNames | None = None) -> HttpClient:
    """A client for pages, guarded if it is given names, else one for a configured endpoint."""
    return HttpClient("web", ReadError, limits=QUICK, guarded=names is not None, resolver=names)


async def get(url: str, names: ScriptedNames | None = None) -> Reply:
    return await client(names).request("GET", url, what="the page")


async def failure(url: str, names: ScriptedNames | None = None) -> ReadError:
    with pytest.raises(ReadError) as caught:
        await get(url, names)
    return caught.value


@pytest.mark.parametrize(
    ("settings", "url", "proxy"),
    [
        ({}, "http://a.example/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "https://a.example/", None),
        ({"HTTPS_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"HTTPS_PROXY": "https://p:1"}, "https://a.example/", "https://p:1"),
        ({"HTTPS_PROXY": "p:1"}, "https://a.example/", "http://p:1"),
        ({"HTTPS_PROXY": "http://u:pw@p:1"}, "https://a.example/", "http://u:pw@p:1"),
        ({"HTTPS_PROXY": "  "}, "https://a.example/", None),
        ({"ALL_PROXY": "http://p:1"}, "https://a.example/", "http://p:1"),
        ({"ALL_PROXY": "http://p:1", "HTTP_PROXY": "http://q:2"}, "http://a.example/", "http://q:2"),
        ({"ALL_PROXY": "socks5://p:1", "HTTP_PROXY": "http://q:2"}, "http://a.example/", "http://q:2"),
        ({"https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:2"}, "https://a.example/", "http://p:1"),
        ({"https_proxy": "", "HTTPS_PROXY": "http://q:2"}, "https://a.example/", None),
        ({"HTTP_PROXY": "http://p:1", "REQUEST_METHOD": "GET"}, "http://a.example/", None),
        ({"http_proxy": "http://p:1", "REQUEST_METHOD": "GET"}, "http://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, "http://localhost:8080/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://LOCALHOST./", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://app.localhost/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://127.0.0.2:8080/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://[::1]:8080/", None),
        ({"HTTP_PROXY": "http://p:1"}, "http://10.0.0.1/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "*"}, "http://a.example/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "b.example, a.example"}, "http://a.example/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "http://x.A.example/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": ".a.example"}, "http://x.a.example/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.example"}, "http://nota.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.example:8080"}, "http://a.example:8080/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "a.example:8080"}, "http://a.example/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "no_proxy": "10.0.0.0/8"}, "http://10.1.2.3/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "10.0.0.0/8"}, "http://11.1.2.3/", "http://p:1"),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": "[fd00::1],10.0.0.1"}, "http://[fd00::1]/", None),
        ({"HTTP_PROXY": "http://p:1", "NO_PROXY": ",, ."}, "http://a.example/", "http://p:1"),
    ],
)
def test_the_environment_chooses_the_proxy(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    found = proxy_for(URL(url))
    assert (None if found is None else str(found).rstrip("/")) == proxy


@pytest.mark.parametrize("value", ["socks5://u:pw@p:1", "ftp://p:1", "http://", "http://p:port", "http://[::1"])
def test_another_kind_of_proxy_is_told_by_its_variable_only(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(FailureError, match="ALL_PROXY names no http:// or https:// proxy") as caught:
        proxy_for(URL("https://a.example/"))
    assert "pw" not in str(caught.value)


async def test_a_configured_endpoint_goes_through_the_proxy_unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer(pages={"/a": "fine"}) as server, ProxyServer({"in.corp": ("127.0.0.1", server.port)}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        reply = await get("http://in.corp/a?q=1")
        assert (reply.body, reply.url) == (b"fine", "http://in.corp/a?q=1")
        assert [(asked.method, asked.target) for asked in proxy.asked] == [("GET", "http://in.corp/a?q=1")]
        assert server.requests[0].headers["host"] == "in.corp"


async def test_this_machine_and_exempt_names_are_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer(pages={"/": "fine"}) as server, ProxyServer() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        for host in ("127.0.0.1", "localhost"):
            assert (await get(f"http://{host}:{server.port}/")).body == b"fine"
        assert proxy.asked == []


async def test_credentials_reach_the_proxy_only_and_never_show(monkeypatch: pytest.MonkeyPatch) -> None:
    with WebServer(pages={"/": "fine"}) as server:
        ways = {"a.example": ("127.0.0.1", server.port)}
        with ProxyServer(ways, credentials="user:proxy-secret") as proxy:
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            assert (await get("http://a.example/")).body == b"fine"
            assert "proxy-authorization" in proxy.asked[0].headers
            assert "proxy-authorization" not in server.requests[0].headers
            wrong = proxy.url.replace("proxy-secret", "wrong-secret")
            monkeypatch.setenv("HTTP_PROXY", wrong)
            monkeypatch.setenv("HTTPS_PROXY", wrong)
            for url in ("http://a.example/", "https://a.example/"):
                error = await failure(url)
                assert "407" in str(error)
                assert "proxy" in str(error)
                assert "secret" not in f"{error}{error!r}{error.body}{error.__cause__}{error.__context__}"
            assert proxy.asked[-1].target == "a.example:443"
        monkeypatch.setenv("HTTP_PROXY", wrong)
        error = await failure("http://a.example/")
        assert "no connection to the proxy" in str(error)
        assert "secret" not in f"{error}{error!r}"


async def test_a_proxy_that_fails_is_told_from_a_server_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with ProxyServer(status=502) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        error = await failure("https://a.example/")
        assert (error.reason, "the proxy answered 502" in str(error)) == ("connection", True)


async def test_pages_are_resolved_and_checked_before_the_proxy_fetches_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = ScriptedNames({"page.example": ["8.8.8.8"], "inside.example": ["10.0.0.1"]})
    with WebServer(pages={"/": "fine"}) as server:
        ways = dict.fromkeys(names.table, ("127.0.0.1", server.port))
        with ProxyServer(ways) as proxy, caplog.at_level(logging.WARNING):
            monkeypatch.setenv("HTTP_PROXY", proxy.url)
            warn_of_rebinding.cache_clear()
            for _ in range(2):
                assert (await get("http://page.example/", names)).body == b"fine"
            assert (await failure("http://inside.example/", names)).reason == "refused"
            unknown = await failure("http://unknown.example/", names)
            assert "unknown.example cannot be resolved here" in str(unknown)
            assert "--allow-private" in str(unknown)
            assert [asked.target for asked in proxy.asked] == ["http://page.example/"] * 2
            # Numeric hosts are checked as they are written.
            assert (await failure("http://10.0.0.1/", names)).reason == "refused"
    # The limit is said, and said once.
    said = [record.message for record in caplog.records if record.name.startswith("retrieval")]
    assert ["rebinding" in message for message in said] == [True]


CHILD = """
import asyncio, sys
from retrieval.http.client import HttpClient, Limits
from signatures.errors import ReadError
from tests.servers.names import ScriptedNames

async def main():
    names = ScriptedNames({"secure.example": ["8.8.8.8"], "other.example": ["8.8.4.4"]})
    for guarded in (True, False):
        client = HttpClient("web", ReadError, limits=Limits(attempts=1), guarded=guarded, resolver=names)
        print((await client.request("GET", "https://secure.example/x", what="it")).body.decode())
    try:
        await client.request("GET", "https://other.example/x", what="it")
    except ReadError as error:
        print(error)

asyncio.run(main())
"""


def test_secure_pages_are_tunnelled_and_their_certificates_checked(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path, "secure.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_serve_securely, args=(listener, context), daemon=True).start()
    here = ("127.0.0.1", listener.getsockname()[1])
    with ProxyServer({"secure.example": here, "other.example": here}) as proxy:
        environment = {**os.environ, "HTTPS_PROXY": proxy.url, "SSL_CERT_FILE": str(certificate)}
        ended = subprocess.run(
            [sys.executable, "-c", CHILD], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
        )
        targets = [(asked.method, asked.target) for asked in proxy.asked]
    listener.close()
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["hello from inside"] * 2
    assert "no secure connection" in lines[2]
    assert ("CONNECT", "secure.example:443") in targets
    assert targets[-1] == ("CONNECT", "other.example:443")


def _serve_securely(listener: socket.socket, context: ssl.SSLContext) -> None:
    body = b"hello from inside"
    while True:
        try:
            plain, _ = listener.accept()
        except OSError:
            return
        try:
            with context.wrap_socket(plain, server_side=True) as secure:
                secure.recv(65_536)
                secure.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        except OSError:
            continue


def _certificate(folder: Path, name: str) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
