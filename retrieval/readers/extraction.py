"""From the bytes of a reply to readable text: charset, HTML, plain text, PDF."""

from __future__ import annotations

import codecs
import re
import threading

PDF_PAGES = 200
"""Pages of a PDF that are read at most."""

_TEXT_TYPES = ("application/json", "application/xml", "application/javascript", "application/x-ndjson")
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.IGNORECASE)
_LOOKS_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body|title|p|div|h1)\b", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)
_NOISE = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]")
_NOISE_SHARE = 0.05
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# A free guess among all charsets takes French for Baltic; these cover what undeclared pages are written in.
_GUESSED = ["cp1252", "cp1251", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
# PDFium must not be entered by two threads at once.
_pdfium = threading.Lock()


class Unreadable(Exception):
    """A reply holds no readable text.

    Args:
        message: Why, for people.
        reason: Short word that runs count by; see `signatures.errors.ReadError`.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


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
    media = content_type.partition(";")[0].strip().lower()
    if not body.strip():
        raise Unreadable("the page is empty", "empty")
    if body.lstrip()[:5] == b"%PDF-":
        title, text = _pdf_text(body, most_chars)
    elif media.startswith(("image/", "audio/", "video/", "font/")):
        raise Unreadable(f"{media} cannot be read as text", "unsupported")
    else:
        decoded = decode(body, content_type)
        if len(_NOISE.findall(decoded)) > _NOISE_SHARE * len(decoded):
            raise Unreadable(f"the page is binary data ({media or 'no content type'})", "binary")
        if "html" in media or (media not in ("text/plain", "text/markdown") and _LOOKS_HTML.search(body[:5000])):
            title, text = _html_text(decoded)
        elif not media or media.startswith("text/") or media in _TEXT_TYPES or media.endswith(("+json", "+xml")):
            title, text = "", decoded
        else:
            raise Unreadable(f"{media} cannot be read as text", "unsupported")
    if not text.strip():
        raise Unreadable("the page has no readable text", "empty")
    return title.strip(), text.strip()


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


def _html_text(decoded: str) -> tuple[str, str]:
    import html

    import trafilatura

    document = trafilatura.bare_extraction(
        decoded, favor_recall=True, include_comments=False, include_tables=True, with_metadata=True
    )
    title = text = ""
    if document is not None:
        title, text = document.title or "", document.text or ""
    if not text.strip():
        # Short or unusual pages have no main part to find; then everything visible counts.
        text = trafilatura.html2txt(decoded) or ""
    if not title and (match := _TITLE.search(decoded)):
        title = " ".join(html.unescape(match.group(1)).split())
    return title, text


def _pdf_text(body: bytes, most_chars: int) -> tuple[str, str]:
    import pypdfium2

    parts: list[str] = []
    length = 0
    with _pdfium:
        try:
            document = pypdfium2.PdfDocument(body)
        except pypdfium2.PdfiumError as error:
            raise Unreadable(f"the PDF cannot be opened ({error})", "binary") from error
        try:
            title = document.get_metadata_value("Title")
            for number in range(min(len(document), PDF_PAGES)):
                page = document[number]
                text_page = page.get_textpage()
                text = text_page.get_text_bounded()
                text_page.close()
                page.close()
                parts.append(text.replace("\r\n", "\n"))
                length += len(text)
                if length >= most_chars:
                    break
        except pypdfium2.PdfiumError as error:
            raise Unreadable(f"the PDF is damaged ({error})", "binary") from error
        finally:
            document.close()
    return title, "\n\n".join(parts)
