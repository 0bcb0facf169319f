"""From the bytes of a reply to readable text: charset, HTML, plain text, PDF."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from retrieval.readers.html_text import html_text
from retrieval.readers.pdf_text import PdfError, pdf_text

VERSION = 2
"""Part of every reader's identity: raise it when the same bytes give another text, so that no cache is stale."""

_TEXT_TYPES = ("application/json", "application/xml", "application/javascript", "application/x-ndjson")
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_HTML_ROOT = re.compile(r"<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_HTML_TAG = re.compile(r"<(?:!doctype\s+html|html|head|body|title|p|div|h1)\b", re.IGNORECASE)
_NOISE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_NOISE_SHARE = 0.05
_NOISE_CHARS = 200_000
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# A free guess among all charsets takes French for Baltic; these cover what undeclared pages are written in.
_GUESSED = ["cp1252", "cp1251", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]


class Unreadable(Exception):
    """A reply holds no readable text.

    Args:
        message: Why, for people.
        reason: Short word that runs count by; see `signatures.errors.ReadError`.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True)
class Extracted:
    """What a reply holds.

    Attributes:
        title: Title, or empty.
        text: What a person would read, or empty.
        markup: The HTML it was taken from, or empty.
    """

    title: str
    text: str
    markup: str = ""


def extract(body: bytes, content_type: str, most_chars: int) -> tuple[str, str]:
    """Extract what a person would read.

    Args:
        body: The reply, decompressed.
        content_type: Its `Content-Type` field, or empty.
        most_chars: A PDF is read until it has given so many characters.

    Returns:
        Title (possibly empty) and text.

    Raises:
        Unreadable: It is of another kind, is binary noise, or has no text.
    """
    found = extract_with_markup(body, content_type, most_chars)
    if not found.text:
        raise Unreadable("the page has no readable text", "empty")
    return found.title, found.text


def extract_with_markup(body: bytes, content_type: str, most_chars: int) -> Extracted:
    """Extract what a person would read, and tell which HTML it came from.

    Args:
        body: The reply, decompressed.
        content_type: Its `Content-Type` field, or empty.
        most_chars: A PDF is read until it has given so many characters.

    Returns:
        Title, text and markup; HTML without readable text gives an empty text.

    Raises:
        Unreadable: It is of another kind, is binary noise, or is empty altogether.
    """
    media = content_type.partition(";")[0].strip().lower()
    if not body.strip():
        raise Unreadable("the page is empty", "empty")
    if body.lstrip()[:5] == b"%PDF-":
        try:
            title, text = pdf_text(body, most_chars)
        except PdfError as error:
            raise Unreadable(str(error), error.reason) from error
        return Extracted(title.strip(), text.strip())
    if media.startswith(("image/", "audio/", "video/", "font/")):
        raise Unreadable(f"{media} cannot be read as text", "unsupported")
    decoded = decode(body, content_type)
    start = decoded[:_NOISE_CHARS]
    if len(_NOISE.findall(start)) > _NOISE_SHARE * len(start):
        raise Unreadable(f"the page is binary data ({media or 'no content type'})", "binary")
    if "html" in media or _looks_html(decoded[:5000], media):
        title, text = html_text(decoded)
        return Extracted(title.strip(), text.strip(), decoded)
    if not media or media.startswith("text/") or media in _TEXT_TYPES or media.endswith(("+json", "+xml")):
        return Extracted("", decoded.strip())
    raise Unreadable(f"{media} cannot be read as text", "unsupported")


def decode(body: bytes, content_type: str) -> str:
    """Turn bytes into text, by what they are rather than by what they are called.

    Valid UTF-8 with characters beyond ASCII is never anything else, so it is tried before a charset that is merely
    declared; then come the header, the page's own declaration, and a guess.

    Args:
        body: The bytes.
        content_type: The `Content-Type` field, or empty.

    Returns:
        The text; what cannot be decoded is replaced.
    """
    for mark, charset in _BOMS:
        if body.startswith(mark):
            return body.decode(charset, "replace")
    declared = [match.group(1) for match in [_HEADER_CHARSET.search(content_type)] if match]
    declared += [match.group(1).decode("ascii") for match in [_META_CHARSET.search(body[:4096])] if match]
    # Escape sequences (ISO-2022) and zero bytes (UTF-16) are valid UTF-8 too, so there the declaration goes first.
    tried = [*declared, "utf-8"] if b"\x1b" in body or b"\x00" in body else ["utf-8", *declared]
    for charset in tried:
        try:
            return body.decode(charset)
        except (LookupError, UnicodeError):
            continue
    from charset_normalizer import from_bytes

    guess = from_bytes(body[:50_000], cp_isolation=_GUESSED).best()
    return body.decode(guess.encoding if guess else "cp1252", "replace")


def _looks_html(start: str, media: str) -> bool:
    if media in ("text/plain", "text/markdown"):
        return False
    # Feeds and other XML have titles and paragraphs too.
    return (_HTML_ROOT if media.endswith(("/xml", "+xml")) else _HTML_TAG).search(start) is not None
