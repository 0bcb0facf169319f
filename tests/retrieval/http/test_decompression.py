from __future__ import annotations

import contextlib
import gzip
import itertools
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.http.client import HttpClient, Limits
from retrieval.http.decompression import ACCEPTED, FREE_BYTES, MOST_MEMBERS, PIECE_BYTES, Decoder
from retrieval.http.failures import Failure, FailureError
from signatures.errors import ReadError
from tests.servers.web import Answer, WebServer

ROOT = Path(__file__).parents[3]


def decode(encoding: str, *pieces: bytes, max_bytes: int = 10_000_000, max_ratio: float = 100.0) -> bytes:
    decoder = Decoder(encoding, max_bytes, max_ratio)
    for piece in pieces:
        decoder.feed(piece)
    return decoder.finish()


def failure(encoding: str, *pieces: bytes, **caps: float) -> Failure:
    with pytest.raises(FailureError) as caught:
        decode(encoding, *pieces, **caps)  # type: ignore[arg-type]
    return caught.value.failure


def bare_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def zeros_gz(megabytes: int) -> bytes:
    """Gzip data that unpacks to so many megabytes of zeros; its checksum is wrong, but nobody gets that far."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    one = packer.compress(bytes(1_000_000)) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + one * megabytes


@given(
    st.binary(max_size=3000),
    st.sampled_from(["", "identity", "gzip", "x-gzip", "GZIP", " gzip , identity", "deflate", "bare deflate"]),
    st.lists(st.integers(0, 3000), max_size=6),
)
def test_any_reply_is_decoded_however_it_is_cut_up(data: bytes, encoding: str, cuts: list[int]) -> None:
    if "gzip" in encoding.lower():
        wire = gzip.compress(data)
    elif encoding == "deflate":
        wire = zlib.compress(data)
    else:
        wire = bare_deflate(data) if encoding == "bare deflate" else data
    edges = [0, *sorted(cuts), len(wire)]
    pieces = [wire[start:end] for start, end in itertools.pairwise(edges)]
    assert decode(encoding.removeprefix("bare "), *pieces) == data


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_any_bytes_are_decoded_or_refused(data: bytes, encoding: str) -> None:
    decoder = Decoder(encoding, 1000, 100)
    with contextlib.suppress(FailureError):
        decoder.feed(data)
        decoder.finish()
    assert len(decoder.body) <= 1000 + PIECE_BYTES


def test_only_what_can_be_bounded_is_asked_for_and_decoded() -> None:
    assert ACCEPTED == "gzip, deflate"
    for encoding in ("br", "zstd", "compress", "gzip, gzip", "br, gzip", "nonsense"):
        found = failure(encoding, b"x")
        assert found.reason == "unsupported"
        assert encoding in found.text


def test_members_after_one_another_are_one_reply() -> None:
    wire = b"".join(gzip.compress(part) for part in (b"one ", b"", b"two"))
    assert decode("gzip", wire) == b"one two"
    assert decode("gzip", *(wire[i : i + 1] for i in range(len(wire)))) == b"one two"


@pytest.mark.parametrize("padding", [b"\0", b"\0" * 600, b"garbage", b"\x1f"])
def test_what_follows_the_last_member_is_passed_over(padding: bytes) -> None:
    assert decode("gzip", gzip.compress(b"x") + padding) == b"x"
    assert decode("gzip", gzip.compress(b"x"), padding) == b"x"
    assert decode("deflate", zlib.compress(b"x") + padding) == b"x"


def test_a_stream_of_tiny_members_is_cut_off() -> None:
    assert "compressed parts" in failure("gzip", gzip.compress(b"") * (MOST_MEMBERS + 1)).text


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_empty_body_is_empty_whatever_its_encoding(encoding: str) -> None:
    assert decode(encoding) == b""
    assert decode(encoding, b"") == b""


def test_a_compressed_reply_that_ends_early_is_a_lost_connection() -> None:
    for wire in (gzip.compress(b"hello" * 100), zlib.compress(b"hello" * 100)):
        encoding = "gzip" if wire.startswith(b"\x1f\x8b") else "deflate"
        found = failure(encoding, wire[:-5])
        assert (found.reason, found.again) == ("connection", True)


def test_damaged_data_is_binary() -> None:
    assert failure("gzip", b"not gzip at all").reason == "binary"
    assert failure("deflate", b"not deflate either").reason == "binary"
    assert failure("gzip", b"x").reason == "binary"
    damaged = bytearray(gzip.compress(b"hello" * 1000))
    damaged[-6] ^= 1
    assert failure("gzip", bytes(damaged)).reason == "binary"


@pytest.mark.parametrize("encoding", ["", "gzip", "deflate"])
def test_the_size_is_capped_before_and_after_decompression(encoding: str) -> None:
    data = bytes(range(256)) * 10
    wire = {"": data, "gzip": gzip.compress(data), "deflate": zlib.compress(data)}[encoding]
    assert decode(encoding, wire, max_bytes=2560) == data
    assert failure(encoding, wire, max_bytes=2559).reason == "too_large"
    endless = gzip.compress(b"x") + b"\0" * 5000
    assert "longer than 4000 bytes" in failure("gzip", endless, max_bytes=4000).text


def test_the_ratio_counts_beyond_the_first_million_bytes() -> None:
    assert len(decode("gzip", gzip.compress(bytes(FREE_BYTES)))) == FREE_BYTES
    found = failure("gzip", gzip.compress(bytes(FREE_BYTES + 1)))
    assert (found.reason, "more than 100 times its size" in found.text) == ("too_large", True)
    assert len(decode("gzip", gzip.compress(bytes(FREE_BYTES + 1)), max_ratio=2000)) == FREE_BYTES + 1
    text = b"".join(b"%d " % (number * 7919) for number in range(300_000))
    assert decode("gzip", gzip.compress(text)) == text


def test_a_bomb_is_stopped_at_its_first_bytes() -> None:
    decoder = Decoder("gzip", 10**12, 100.0)
    with pytest.raises(FailureError, match="times its size"):
        decoder.feed(zeros_gz(60))
    assert len(decoder.body) < 2 * FREE_BYTES


MEASURE = """
import asyncio, re, resource, sys
from pathlib import Path
from retrieval.http.client import HttpClient, Limits
from signatures.errors import ReadError

def peak():
    status = Path("/proc/self/status")
    if status.exists():
        # `getrusage` begins with the peak of the process that started this one.
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

async def main(url, bomb, max_bytes, max_ratio):
    client = HttpClient("web", ReadError, limits=Limits(max_bytes=int(max_bytes), max_ratio=float(max_ratio)))
    await client.request("GET", url, what="the page")
    before = peak()
    try:
        await client.request("GET", bomb, what="the page")
    except ReadError as error:
        print(error.reason, (peak() - before) // 1024)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize(("max_bytes", "max_ratio"), [(10_000_000, 100), (10_000_000, 10**9), (10**12, 100)])
def test_a_bomb_of_ten_gigabytes_costs_little_memory(max_bytes: int, max_ratio: int) -> None:
    bomb = zeros_gz(10_000)
    assert 9_000_000 < len(bomb) < 11_000_000
    pages = {"/": "hello", "/bomb": Answer(bomb, headers={"Content-Encoding": "gzip"})}
    with WebServer(pages=pages) as server:
        command = [
            sys.executable,
            "-c",
            MEASURE,
            server.url + "/",
            server.url + "/bomb",
            str(max_bytes),
            str(max_ratio),
        ]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    reason, megabytes = ended.stdout.split()
    assert reason == "too_large"
    assert int(megabytes) < 100


async def test_the_client_asks_for_what_it_decodes_and_refuses_the_rest() -> None:
    pages = {
        "/gzip": Answer("fine", compress=True),
        "/deflate": Answer(zlib.compress(b"fine"), headers={"Content-Encoding": "deflate"}),
        "/br": Answer(b"\x8b\x01\x80fine\x03", headers={"Content-Encoding": "br"}),
        "/error": Answer(gzip.compress(b"why it failed"), status=400, headers={"Content-Encoding": "gzip"}),
        "/empty": Answer(b"", headers={"Content-Encoding": "gzip"}),
    }
    client = HttpClient("web", ReadError, limits=Limits(attempts=1))
    with WebServer(pages=pages) as server:
        for path in ("/gzip", "/deflate"):
            assert (await client.request("GET", server.url + path, what="it")).body == b"fine"
        assert (await client.request("GET", server.url + "/empty", what="it")).body == b""
        assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"
        with pytest.raises(ReadError, match="encoded as 'br'; only gzip, deflate was asked for") as caught:
            await client.request("GET", server.url + "/br", what="it")
        assert (caught.value.reason, caught.value.status) == ("unsupported", 200)
        with pytest.raises(ReadError, match="answered 400: why it failed"):
            await client.request("GET", server.url + "/error", what="it")
