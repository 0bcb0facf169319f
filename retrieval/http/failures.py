"""What can go wrong with a request, and how it becomes an error for people."""

from __future__ import annotations

import email.utils
import random
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from urllib.parse import quote

from retrieval.http.limits import Limits
from signatures.errors import ReadError, RetrievalError

LASTING_STATUSES = frozenset({501, 505, 511})
"""Statuses from 500 that another attempt does not change."""
SHOWN_CHARS = 200
_KEPT_BYTES = 4000


@dataclass(frozen=True)
class Failure:
    """One failed attempt.

    Attributes:
        reason: Short word that runs count by; see `signatures.errors.ReadError`.
        text: What happened, for people.
        status: HTTP status, or None; 429 also for a request that was not sent because the provider is paused.
        body: Start of the reply.
        again: Whether trying again can help.
        retry_after: Seconds the server asks to wait, or None.
    """

    reason: str
    text: str
    status: int | None = None
    body: str = ""
    again: bool = False
    retry_after: float | None = None


class FailureError(Exception):
    """Carries a `Failure` out of the middle of an attempt.

    Args:
        failure: What went wrong.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


def status_failure(status: int, headers: Mapping[str, str], body: bytes) -> Failure:
    """Describe a reply whose status is no success.

    Args:
        status: HTTP status, from 300.
        headers: Header fields, names in lower case.
        body: The reply.

    Returns:
        The failure; 408, 429 and most of 5xx can be tried again.
    """
    reasons = {
        401: "blocked",
        403: "blocked",
        451: "blocked",
        404: "not_found",
        410: "not_found",
        429: "rate_limited",
    }
    meaning = {402: " (payment required)", 407: " (the proxy asks for credentials)", 429: " (rate limited)"}
    again = status in (408, 429) or (status >= 500 and status not in LASTING_STATUSES)
    return Failure(
        reason=reasons.get(status, "http"),
        text=f"the server answered {status}{meaning.get(status, '')}",
        status=status,
        body=reply_start(body),
        again=again,
        retry_after=retry_after_seconds(headers) if again else None,
    )


def paused_failure(seconds: float) -> Failure:
    """Describe a request that was not sent because its provider asked for a pause.

    Args:
        seconds: What is left of the pause.

    Returns:
        The failure.
    """
    text = f"the provider is paused (rate limited) for {seconds:.0f} s more, as its earlier replies asked"
    return Failure("rate_limited", text, status=429)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read how long a server asks to wait.

    Args:
        headers: Header fields, names in lower case.

    Returns:
        Seconds from `Retry-After`, given as seconds, also with a fraction, or as a date; None without it or if it
        makes no sense.
    """
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", value):
        return float(value)
    try:
        moment = email.utils.parsedate_to_datetime(value)
        # The standard wants GMT; a date without a zone is meant so.
        return max(0.0, moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def reply_start(body: bytes) -> str:
    """Return the start of a reply on one line, for a failure's `body`."""
    return " ".join(body[:_KEPT_BYTES].decode("utf-8", "replace").split())


def retry_wait(limits: Limits, failure: Failure, attempt: int) -> float | None:
    """Return how long to wait before trying again.

    Args:
        limits: How often and how patiently.
        failure: What went wrong.
        attempt: Number of the attempt that failed, from 1.

    Returns:
        Seconds, spread at random (full jitter); None when trying again cannot help, is used up, or the server asks for
        more patience than there is.
    """
    if not failure.again or attempt >= limits.attempts:
        return None
    if failure.retry_after is None:
        return random.uniform(0, limits.backoff_s * 2 ** (attempt - 1))
    if failure.retry_after > limits.retry_after_s:
        return None
    # Spread, so that all who were told the same moment do not come back at once.
    return failure.retry_after + random.uniform(0, limits.backoff_s)


def to_error(
    failure: Failure,
    error: type[RetrievalError],
    provider: str,
    what: str,
    *,
    attempts: int = 1,
    secrets: Iterable[str] = (),
) -> RetrievalError:
    """Make the error that callers see.

    Args:
        failure: The last failed attempt.
        error: `SearchError` or `ReadError`.
        provider: Name of the backend or reader.
        what: What was asked for: `the query 'x'`, `the page https://…`.
        attempts: Attempts made.
        secrets: Strings to black out wherever they occur.

    Returns:
        The error, with the first 200 characters of the reply.
    """
    message = f"{provider}: {what} failed: {failure.text}"
    if attempts > 1:
        message += f", tried {attempts} times"
    if failure.retry_after is not None:
        message += f"; the server asks to wait {failure.retry_after:.0f} s"
    # Blacked out before it is cut: half a key would no longer be recognised.
    message, body = _black_out(message, secrets), _black_out(failure.body, secrets)[:SHOWN_CHARS]
    # The start of an HTML page says nothing to a reader; it stays in the error's `body`.
    message += f": {body}" if body and not body.startswith("<") else "."
    if issubclass(error, ReadError):
        return error(message, reason=failure.reason, provider=provider, status=failure.status, body=body)
    return error(message, provider=provider, status=failure.status, body=body)


def _black_out(text: str, secrets: Iterable[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "***").replace(quote(secret, safe=""), "***")
    return text
