"""Reads one PDF in a process of its own; `retrieval.readers.pdf_text` starts it.

PDFium is a large C++ library that reads what strangers wrote: a few hundred kilobytes can make it take gigabytes,
minutes, or crash. Here that costs one process. It imports nothing of this project, so that it starts quickly.
"""

from __future__ import annotations

import json
import sys


def main(most_pages: int, most_chars: int, memory_bytes: int, cpu_s: int) -> None:
    """Read a PDF from standard input and write `{"title", "text"}` or `{"error"}` as JSON to standard output.

    Args:
        most_pages: Pages read at most.
        most_chars: No further page is read once so many characters are there; the text is cut to them.
        memory_bytes: Address space this process may take.
        cpu_s: Seconds of processor time it may take.
    """
    data = sys.stdin.buffer.read()
    _limit(memory_bytes, cpu_s)
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
        parts: list[str] = []
        length = 0
        for number in range(min(len(document), most_pages)):
            page = document[number]
            text_page = page.get_textpage()
            text = text_page.get_text_bounded()
            text_page.close()
            page.close()
            parts.append(text.replace("\r\n", "\n"))
            length += len(text)
            if length >= most_chars:
                break
        reply = {"title": document.get_metadata_value("Title"), "text": "\n\n".join(parts)[:most_chars]}
    except pypdfium2.PdfiumError as error:
        reply = {"error": str(error)}
    sys.stdout.write(json.dumps(reply))


def _limit(memory_bytes: int, cpu_s: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the parent's time limit holds there too.
        return
    for kind, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CPU, cpu_s), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, hard))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
