"""The text of a PDF, read in a child process with limits on time and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PdfLimits:
    """What reading one PDF may take.

    Attributes:
        pages: Pages read at most.
        memory_bytes: Address space of the child; not kept by every system (macOS, Windows).
        cpu_s: Seconds of processor time of the child; not kept by Windows.
        wall_s: Seconds in all, waiting for a processor included.
    """

    pages: int = 200
    memory_bytes: int = 1_500_000_000
    cpu_s: int = 15
    wall_s: float = 40.0


LIMITS = PdfLimits()
_WORKER = Path(__file__).with_name("pdf_worker.py")


class PdfError(Exception):
    """A PDF cannot be read.

    Args:
        message: Why, for people.
        reason: `binary` or `too_large`; see `signatures.errors.ReadError`.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


def pdf_text(data: bytes, most_chars: int, limits: PdfLimits = LIMITS) -> tuple[str, str]:
    """Read a PDF; blocks for at least the third of a second that a process takes to start.

    Args:
        data: The file.
        most_chars: It is read until it has given so many characters.
        limits: What that may take.

    Returns:
        Title and text, pages joined by blank lines.

    Raises:
        PdfError: It is damaged or locked, or takes more time or memory than a page may.
    """
    numbers = (limits.pages, most_chars, limits.memory_bytes, limits.cpu_s)
    # -P keeps the modules beside the worker from standing in for others of the same name.
    command = [sys.executable, "-P", str(_WORKER), *map(str, numbers)]
    try:
        child = subprocess.run(command, input=data, capture_output=True, timeout=limits.wall_s)
    except subprocess.TimeoutExpired as error:
        raise PdfError(f"the PDF takes longer than {limits.wall_s:g} s to read", "too_large") from error
    if child.returncode:
        raise PdfError(
            f"the PDF takes more than {limits.cpu_s} s or {limits.memory_bytes // 10**6} MB to read, or crashes PDFium "
            f"(exit status {child.returncode})",
            "too_large",
        )
    reply = json.loads(child.stdout)
    if "error" in reply:
        raise PdfError(f"the PDF cannot be opened or is damaged ({reply['error']})", "binary")
    return reply["title"], reply["text"]
