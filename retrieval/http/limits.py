"""What bounds a request: time, attempts, size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """How long, how often and how much.

    Attributes:
        connect_s: Seconds to establish a connection.
        read_s: Seconds without a byte after which a reply counts as stalled.
        total_s: Seconds for one attempt, redirects included; waiting for a turn or a free slot does not count.
        attempts: Attempts in all.
        backoff_s: Longest wait before the second attempt; doubles with each further one.
        retry_after_s: A server that asks to wait longer than this is not waited for.
        max_bytes: Longest reply, before and after decompression.
        max_ratio: How many times its size a compressed reply may grow to, beyond the first million bytes.
        max_redirects: Redirects followed.
        per_host: Requests in flight to one host.
    """

    connect_s: float = 10.0
    read_s: float = 20.0
    total_s: float = 45.0
    attempts: int = 4
    backoff_s: float = 1.0
    retry_after_s: float = 30.0
    max_bytes: int = 10_000_000
    max_ratio: float = 100.0
    max_redirects: int = 10
    per_host: int = 16
