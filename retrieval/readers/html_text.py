"""The readable text of an HTML page, in bounded time whatever the page is made of."""

from __future__ import annotations

import html
import re
from itertools import islice

MAX_CHARS = 2_000_000
"""Characters of markup looked at, scripts and comments left out."""
MAX_TAGS = 30_000
"""Tags looked at; extraction takes up to 0.06 ms for each."""
MAX_SPANS = 1_000
"""Sum of all `rowspan` and `colspan`; beyond it they are left out, as each cell is copied that many times."""
_TITLE_CHARS = 500
_HEAD_CHARS = 200_000
_VISIBLE_CHARS = 30_000

_ROOT = re.compile(r"<(?:html|body|head|frameset)\b", re.IGNORECASE)
_OPAQUE = re.compile(r"<(?:!--|(script|style)\b)", re.IGNORECASE)
_CLOSERS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{0,5000})", re.IGNORECASE)
_META = re.compile(r"<meta\b([^<>]{0,1000})>", re.IGNORECASE)
_OG_TITLE = re.compile(r"""(?:property|name)\s*=\s*["']?og:title\b""", re.IGNORECASE)
_CONTENT = re.compile(r"""\bcontent\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_SPAN = re.compile(r"""\b(?:row|col)span\s*=\s*["']?\s*(\d{1,9})\d*\s*["']?""", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{0,2000}>")


def html_text(page: str) -> tuple[str, str]:
    """Extract title and main text.

    A page whose main part cannot be told gives everything visible. Only the first `MAX_CHARS` characters and
    `MAX_TAGS` tags are looked at, so that a hostile page takes seconds at worst.

    Args:
        page: HTML, well-formed or not.

    Returns:
        Title and text, either possibly empty. `<meta http-equiv="refresh">` is not followed: it would be a redirect
        that the caps of the HTTP client do not see, and pages that hold nothing else are mostly walls.
    """
    import trafilatura

    bounded = bounded_html(page)
    if not _ROOT.search(bounded):
        # A lone `<p>` is no document for trafilatura.
        bounded = f"<html><body>{bounded}</body></html>"
    document = trafilatura.bare_extraction(
        bounded, favor_recall=True, include_comments=False, include_tables=True, with_metadata=False
    )
    text = (document.text or "") if document is not None else ""
    if not text.strip():
        # Short or unusual pages have no main part to find; then everything visible counts.
        text = trafilatura.html2txt(bounded) or ""
    return og_title(page) or html_title(page), text


def bounded_html(page: str) -> str:
    """Leave scripts, styles and comments out, then cut to `MAX_CHARS` characters, `MAX_TAGS` tags and `MAX_SPANS`.

    Args:
        page: HTML.

    Returns:
        HTML that a parser can afford; takes time in proportion to the page.
    """
    kept: list[str] = []
    position = length = 0
    while length < MAX_CHARS:
        opening = _OPAQUE.search(page, position)
        piece = page[position : opening.start() if opening else len(page)]
        kept.append(piece)
        length += len(piece)
        if opening is None:
            break
        end = _end_of(page, opening)
        if end < 0:
            # Browsers take all the rest for the script as well; a comment that never ends is left to the parser.
            if opening.group(1) is None:
                kept.append(page[opening.start() : opening.start() + MAX_CHARS])
            break
        position = end
    joined = "".join(kept)[:MAX_CHARS]
    over = next(islice(re.finditer("<", joined), MAX_TAGS, None), None)
    joined = joined if over is None else joined[: over.start()]
    spans = sum(int(match.group(1)) for match in _SPAN.finditer(joined))
    return joined if spans <= MAX_SPANS else _SPAN.sub("", joined)


def html_title(page: str) -> str:
    """Return what `<title>` says, on one line; empty without one."""
    match = _TITLE.search(page, 0, _HEAD_CHARS)
    return _line(match.group(1)) if match else ""


def og_title(page: str) -> str:
    """Return the page's own title, without the site's name, as `og:title` gives it; empty without one."""
    for match in _META.finditer(page, 0, _HEAD_CHARS):
        if _OG_TITLE.search(match.group(1)) and (content := _CONTENT.search(match.group(1))):
            return _line(content.group(1) or content.group(2) or "")
    return ""


def visible_text(page: str) -> str:
    """Return roughly what stands between the tags, `<noscript>` and buttons included, a line for each piece.

    Args:
        page: HTML; the start of it is enough for the pages this is meant for, which are short.

    Returns:
        Text.
    """
    pieces = (html.unescape(piece).strip() for piece in _TAG.split(bounded_html(page[:_HEAD_CHARS])[:_VISIBLE_CHARS]))
    return "\n".join(" ".join(piece.split()) for piece in pieces if piece)


def _end_of(page: str, opening: re.Match[str]) -> int:
    if opening.group(1) is None:
        end = page.find("-->", opening.start() + 2)
        return end + 3 if end >= 0 else -1
    closing = _CLOSERS[opening.group(1).lower()].search(page, opening.end())
    # The closing tag stays: on its own it is harmless, and pages put things between its name and `>`.
    return closing.start() if closing else -1


def _line(text: str) -> str:
    return " ".join(html.unescape(text).split())[:_TITLE_CHARS]
