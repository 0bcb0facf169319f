"""An HTTP proxy that stands in for public search engines: it answers for every host itself, over TLS.

Clients that trust its certificate authority and go through it take its answers for the engines'.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.servers.web import Answer

MOJEEK = "www.mojeek.com"
DUCKDUCKGO = "html.duckduckgo.com"
WIKIPEDIA = "en.wikipedia.org"
HOSTS = (MOJEEK, DUCKDUCKGO, WIKIPEDIA, "search.brave.com", "search.yahoo.com", "www.startpage.com", "grokipedia.com")


def mojeek_page(*hits: Mapping[str, str]) -> Answer:
    """Return a result page of Mojeek."""
    items = "".join(
        f'<li class="r{number}"><a class="ob" href="{hit["url"]}"></a><h2><a class="title" href="{hit["url"]}">'
        f'{hit["title"]}</a></h2><p class="s">{hit["snippet"]}</p></li>'
        for number, hit in enumerate(hits, 1)
    )
    return Answer(f'<!DOCTYPE html><html><body><ul class="results-standard">{items}</ul></body></html>')


def duckduckgo_page(*hits: Mapping[str, str]) -> Answer:
    """Return a result page of DuckDuckGo's version without scripts."""
    items = "".join(
        f'<div class="links_main links_deep result__body"><h2 class="result__title"><a class="result__a" '
        f'href="{hit["url"]}">{hit["title"]}</a></h2><a class="result__snippet" href="{hit["url"]}">'
        f"{hit['snippet']}</a></div>"
        for hit in hits
    )
    return Answer(f'<!DOCTYPE html><html><body><div class="serp__results">{items}</div></body></html>')


def duckduckgo_puzzle() -> Answer:
    """Return what DuckDuckGo answers when it suspects a robot: status 202 and a puzzle."""
    return Answer('<html><body><div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div>', 202)


class EngineProxy:
    """The proxy; a context manager.

    Args:
        folder: Where its certificates are written.
        answers: What each host gives, one for each request in turn, the last one for all further ones. Hosts that are
            not in it answer 404.
    """

    def __init__(self, folder: Path, answers: Mapping[str, list[Answer]]) -> None:
        self.answers = {host: list(given) for host, given in answers.items()}
        self.asked: list[str] = []
        self.port = 0
        self.ca_file = folder / "authority.pem"
        self._context = _server_context(folder, self.ca_file)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="engine-proxy", daemon=True)

    @property
    def url(self) -> str:
        """Address of the proxy."""
        return f"http://127.0.0.1:{self.port}"

    def count(self, host: str) -> int:
        """Return how often a host was asked."""
        return sum(asked.startswith(f"{host}/") for asked in self.asked)

    def __enter__(self) -> EngineProxy:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            host = head.split()[1].decode().partition(":")[0]
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await writer.drain()
            await writer.start_tls(self._context)
            while True:
                await self._one_request(host, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _one_request(self, host: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = [line.partition(":")[2] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
        body = await reader.readexactly(int(length[0])) if length else b""
        self.asked.append(f"{host}{head.split()[1]} {body.decode()}")
        script = self.answers.get(host) or [Answer("not found", 404)]
        answer = script.pop(0) if len(script) > 1 else script[0]
        await asyncio.sleep(answer.latency_s)
        fields = {"Content-Type": answer.content_type, "Content-Length": str(len(answer.data)), **answer.headers}
        lines = [f"HTTP/1.1 {answer.status} Scripted", *(f"{name}: {value}" for name, value in fields.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + answer.data)
        await writer.drain()


def _server_context(folder: Path, ca_file: Path) -> ssl.SSLContext:
    authority_key, authority = _certificate("Test authority", None)
    key, certificate = _certificate("Engines", (authority_key, authority))
    ca_file.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    chain = folder / "engines.pem"
    chain.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context


def _certificate(
    name: str, issuer: tuple[ec.EllipticCurvePrivateKey, x509.Certificate] | None
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[1].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in HOSTS])
        builder = builder.add_extension(names, critical=False)
    return key, builder.sign(issuer[0] if issuer else key, hashes.SHA256())
