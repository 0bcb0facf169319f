"""One Markdown, HTML, plain text or PDF file as documents: its title, and its text in parts if it is long."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from pathlib import Path

from retrieval.corpus.documents import LONGEST_BYTES, Document, Malformed
from retrieval.readers import pdf_worker

CONTENT_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".txt": "text/plain",
    ".text": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".xhtml": "text/html",
    ".pdf": "application/pdf",
}
"""What is read as text, by the end of its name."""

PART_CHARS = 20_000
"""A longer file becomes several documents of at most so many characters: as much as a snippet is chosen from."""

PDF_PAGES = 100_000
PDF_MEMORY_BYTES = 1_500_000_000
PDF_SECONDS = 120
"""Processor time for one PDF."""

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_FRONT_TITLE = re.compile(r"^title[ \t]*:[ \t]*(\S.*?)[ \t\r]*$", re.IGNORECASE | re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}#[ \t]+(\S.*?)(?:[ \t]+#+)?[ \t\r]*$|^ {0,3}(\S.*?)[ \t\r]*\n {0,3}={2,}[ \t\r]*$", re.M)
_FENCED = re.compile(r"^ {0,3}(```+|~~~+).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
# From the best place to cut to the worst: paragraph, line, sentence, word.
_BREAKS = ("\n\n", "\n", "。", ". ", " ")


def read_file(path: Path, identity: str) -> tuple[Document, ...]:
    """Read a file as documents.

    The title is that of front matter, the first `# heading`, `<title>` or the PDF's metadata, else the file's name.

    Args:
        path: The file; its suffix is one of `CONTENT_TYPES`.
        identity: Id of the document; the parts of a long file are called `identity#1`, `identity#2` and so on.

    Returns:
        One document, or the parts in order.

    Raises:
        Malformed: It cannot be read, is too long, or has no text.
    """
    try:
        found = path.stat()
        # Opening a pipe would wait for someone to write into it.
        if not stat.S_ISREG(found.st_mode):
            raise Malformed("not a regular file.")
        if path.suffix.lower() == ".pdf":
            title, text = _read_pdf(path)
        elif found.st_size > LONGEST_BYTES:
            raise Malformed(f"longer than {LONGEST_BYTES:,} bytes; cut it into several files.")
        else:
            title, text = _read_text(path.read_bytes(), CONTENT_TYPES[path.suffix.lower()])
    except OSError as error:
        raise Malformed(f"cannot be read: {error.strerror or error}.") from error
    title = " ".join(title.split()) or path.stem
    parts = split_parts(text)
    if len(parts) == 1:
        return (Document(identity, title, parts[0]),)
    return tuple(Document(f"{identity}#{number}", title, part) for number, part in enumerate(parts, start=1))


def split_parts(text: str, most_chars: int = PART_CHARS) -> list[str]:
    """Split a long text, at the end of a paragraph where there is one in the second half of a part.

    Args:
        text: Any text.
        most_chars: Characters of a part at most.

    Returns:
        The parts in order, stripped; nothing but white space is lost.
    """
    parts = []
    rest = text.strip()
    while len(rest) > most_chars:
        cut = _cut(rest[:most_chars])
        parts.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*parts, rest]


def _cut(window: str) -> int:
    for mark in _BREAKS:
        found = window.rfind(mark, len(window) // 2)
        if found > 0:
            return found + len(mark)
    return len(window)


def _read_text(body: bytes, content_type: str) -> tuple[str, str]:
    from retrieval.readers.extraction import Unreadable, extract

    try:
        title, text = extract(body, content_type, LONGEST_BYTES)
    except Unreadable as error:
        raise Malformed(f"{error}.") from error
    if content_type == "text/markdown":
        return _markdown(text)
    return title, text


def _markdown(text: str) -> tuple[str, str]:
    title = ""
    if front := _FRONT_MATTER.match(text):
        if found := _FRONT_TITLE.search(front.group(1)):
            title = found.group(1)
            if len(title) > 1 and title[0] == title[-1] and title[0] in "\"'":
                title = title[1:-1]
        text = text[front.end() :].strip()
        if not text:
            raise Malformed("nothing follows its front matter.")
    if not title and (heading := _HEADING.search(_FENCED.sub("", text))):
        title = heading.group(1) or heading.group(2)
    return title, text


def _read_pdf(path: Path) -> tuple[str, str]:
    # A process of its own, since a PDF that crashes PDFium would otherwise stop every attempt at the same place.
    limits = (PDF_PAGES, LONGEST_BYTES + 1, PDF_MEMORY_BYTES, PDF_SECONDS)
    command = [sys.executable, "-P", pdf_worker.__file__, *map(str, limits)]
    try:
        with open(path, "rb") as file:
            child = subprocess.run(command, stdin=file, capture_output=True, timeout=4 * PDF_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Malformed(f"the PDF takes longer than {4 * PDF_SECONDS} s to read.") from error
    if child.returncode:
        raise Malformed(
            f"the PDF takes more than {PDF_SECONDS} s or {PDF_MEMORY_BYTES // 10**6:,} MB to read, or crashes PDFium "
            f"(exit status {child.returncode})."
        )
    reply = json.loads(child.stdout)
    if "error" in reply:
        raise Malformed(f"the PDF cannot be opened or is damaged ({reply['error']}).")
    if len(reply["text"]) > LONGEST_BYTES:
        raise Malformed(f"longer than {LONGEST_BYTES:,} characters; cut it into several files.")
    if not reply["text"].strip():
        raise Malformed("the PDF holds no text; scanned pages need text recognition first.")
    return reply["title"], reply["text"]
