"""What Jina Reader answers: `{code, status, data: {title, url, content, warning, usage}}`, or an error with a name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_TARGET_STATUS = re.compile(r"Target URL returned error (\d{3})")
_CAPTCHA = re.compile(r"requiring CAPTCHA")
_SENTENCE = re.compile(r"\w[^.!?。！？\n]{20,}[.!?。！？]")
_PAGE_REASONS = {401: "blocked", 403: "blocked", 451: "blocked", 404: "not_found", 410: "not_found"}
_UNRESOLVED = re.compile(r"could not be resolved|ERR_NAME_NOT_RESOLVED|ERR_CONNECTION|ERR_ADDRESS|ECONNREFUSED")
_SHOWN_CHARS = 200


class JinaFailure(Exception):
    """The service could not read a page, or read something that is none.

    Args:
        message: Why, with the way out, for people; no full stop at the end.
        reason: Short word that runs count by; see `signatures.errors.ReadError`.
        status: HTTP status of the service or, where it tells, of the page.
    """

    def __init__(self, message: str, reason: str, status: int | None) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


@dataclass(frozen=True)
class JinaPage:
    """A page in the service's reply.

    Attributes:
        title: Title, or empty.
        text: Markdown, possibly empty.
        url: Address after redirects, or empty.
        status: HTTP status of the page, as far as the service tells.
        warnings: What the service warns of, harmless or not.
        failure: Why it is no page after all, by the warnings; None if it is one.
    """

    title: str
    text: str
    url: str = ""
    status: int = 200
    warnings: list[str] = field(default_factory=list)
    failure: JinaFailure | None = None


def parse_reply(reply: Any, has_key: bool) -> JinaPage:
    """Parse a reply that came with a status of success.

    Args:
        reply: Parsed JSON, of whatever shape.
        has_key: Whether a key was sent, for the way out.

    Returns:
        The page.

    Raises:
        JinaFailure: It reports an error, or has another shape.
    """
    if not isinstance(reply, dict):
        raise JinaFailure("the reply does not have the shape of Jina Reader", "http", 200)
    code = reply.get("code")
    if isinstance(code, int) and not isinstance(code, bool) and code >= 400:
        said = _text(reply, "message") or _text(reply, "readableMessage") or _text(reply, "name")
        known = service_failure(code, said, has_key) or JinaFailure(f"the service answers {code}", "http", code)
        raise JinaFailure(f"{known} ({said:.{_SHOWN_CHARS}})" if said else str(known), known.reason, code)
    data = reply.get("data")
    if not isinstance(data, dict) or not isinstance(data.get("content"), str):
        raise JinaFailure("the reply does not have the shape of Jina Reader", "http", 200)
    text = data["content"].strip()
    warnings = [line.strip() for line in _text(data, "warning").splitlines() if line.strip()]
    status, failure = _heed(warnings, text)
    return JinaPage(_text(data, "title").strip(), text, _text(data, "url"), status, warnings, failure)


def service_failure(status: int, said: str, has_key: bool) -> JinaFailure | None:
    """Say what an error of the service means and what to do about it.

    Args:
        status: Its HTTP status.
        said: What it said, or the start of that.
        has_key: Whether a key was sent.

    Returns:
        The failure; None where the status speaks for itself.
    """
    with_key = "set JINA_API_KEY to a key from https://jina.ai/reader"
    if status == 402:
        way = (
            "top it up at https://jina.ai/api-dashboard or unset JINA_API_KEY: without a key reading is free, but slow"
        )
        return JinaFailure(f"the key's balance is spent; {way if has_key else with_key}", "quota", status)
    if status == 429:
        way = "lower requests_per_minute" if has_key else f"lower requests_per_minute or {with_key}"
        return JinaFailure(f"too many requests a minute; {way}", "rate_limited", status)
    if status == 401:
        way = "check JINA_API_KEY, or unset it" if has_key else with_key
        return JinaFailure(f"the service wants a valid key; {way}", "unauthorized", status)
    if status in (403, 451):
        way = "try another reader" if has_key else f"{with_key}, or try another reader"
        return JinaFailure(f"the service does not read this site; {way}", "blocked", status)
    if status in (413, 409):
        return JinaFailure("the page is too large for the service", "too_large", status)
    if status == 422:
        if "timeout" in said.lower():
            return JinaFailure("the site did not answer the service in time", "timeout", status)
        if _UNRESOLVED.search(said):
            return JinaFailure("the service cannot connect to the site; check the address", "connection", status)
        if "No content available" in said:
            return JinaFailure("the service found no content", "empty", status)
        return JinaFailure("the service could not load the page", "http", status)
    return None


def _heed(warnings: list[str], text: str) -> tuple[int, JinaFailure | None]:
    for warning in warnings:
        if match := _TARGET_STATUS.search(warning):
            status = int(match.group(1))
            reason = "rate_limited" if status == 429 else _PAGE_REASONS.get(status, "http")
            return status, JinaFailure(f"the site answered the service with {status}", reason, status)
    # Given for every short page with a captcha somewhere, so sentences speak for a page all the same.
    if any(map(_CAPTCHA.search, warnings)) and len(_SENTENCE.findall(text)) < 2:
        return 200, JinaFailure("the site shows a check for robots in place of the page", "bot_wall", 200)
    return 200, None


def _text(record: dict[Any, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
