"""Reading one turn: what of it is kept, and what the model asks for with it.

Servers differ: some include the stop string, some do not, some ignore it, and a token may run past it. All of them end
in the same kept text here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from programs.operations import Generation
from signatures.markup import (
    BEGIN_FULL_PAGE,
    BEGIN_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    BEGIN_URL,
    END_SEARCH_QUERY,
    END_URL,
)

Action = Literal["query", "urls", "no_query", "end", "truncated"]

_BOX = re.compile(r"\\boxed\s*\{")
_BRACES = re.compile(r"\\.|\{|\}", re.DOTALL)

LOOP_CHARS = 200
LOOP_TIMES = 4


@dataclass(frozen=True)
class Turn:
    """One turn as the chain keeps it.

    Attributes:
        kept: The text that enters the chain.
        action: `query` to search, `urls` to fetch, `no_query` for an empty or unpaired query or a result the model made
            up, `end` when the model ended its reasoning, `truncated` when tokens ran out.
        content: The query (white space folded) or the text between the URL markers.
    """

    kept: str
    action: Action
    content: str = ""


def stop_strings(*, fetches: bool) -> tuple[str, ...]:
    """Return the stop strings of a method that searches; with `fetches` also the end-url marker of the RAG agent."""
    return (END_SEARCH_QUERY, BEGIN_SEARCH_RESULT, *((END_URL,) if fetches else ()))


def read_turn(
    generation: Generation, *, fetches: bool = False, layout_stops: tuple[str, ...] = (), ends_at_box: bool = False
) -> Turn:
    """Read a turn of a method that searches.

    Args:
        generation: The reply.
        fetches: True for the RAG agent, which may also fetch URLs.
        layout_stops: Stop strings of the layout (raw completion), at the first of which the model's text ends.
        ends_at_box: The model's text ends with its first answer box (raw completion).

    Returns:
        What is kept and what it asks for.
    """
    text, ended_by_layout = cut_at_end(generation.text, layout_stops, ends_at_box=ends_at_box)
    ends = {END_SEARCH_QUERY: BEGIN_SEARCH_QUERY, **({END_URL: BEGIN_URL} if fetches else {})}
    stop = generation.stop
    if stop in stop_strings(fetches=fetches) and stop not in text and not ended_by_layout:
        # The server cut its stop string off; with it the text reads as from any other server.
        text += stop
    found = [(text.index(end), end) for end in ends if end in text]
    position, end = min(found) if found else (len(text), "")
    kept = text[: position + len(end)]
    made_up = [kept.index(marker) for marker in (BEGIN_SEARCH_RESULT, BEGIN_FULL_PAGE) if marker in kept]
    if made_up:
        return _pending(kept[: min(made_up)].rstrip(), ends, complete=True)
    if end:
        begin = ends[end]
        if begin not in kept:
            return Turn(kept, "no_query")
        return _asked(kept, kept[kept.rindex(begin) + len(begin) : position], end)
    if generation.finish == "length" and not ended_by_layout:
        return Turn(kept, "truncated")
    if any(_open_at(kept, begin, end) >= 0 for end, begin in ends.items()):
        return _pending(kept, ends, complete=not generation.stop_known and not ended_by_layout)
    return Turn(kept, "end")


def cut_at(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    """Cut a text before the first of some strings.

    Args:
        text: Any text.
        stops: Strings to cut at.

    Returns:
        (text before the first of them, whether one was found).
    """
    positions = [text.index(stop) for stop in stops if stop in text]
    return (text[: min(positions)], True) if positions else (text, False)


def cut_at_end(text: str, stops: tuple[str, ...], *, ends_at_box: bool) -> tuple[str, bool]:
    """Cut a text where the layout says that it ends.

    A raw completion has no end of turn: after its answer a model goes on with whatever it has read after such texts.

    Args:
        text: What the model wrote in one turn.
        stops: Stop strings of the layout.
        ends_at_box: The text ends with its first closed answer box too.

    Returns:
        (the text up to the first of them, a box included and a stop string not; whether one was found).
    """
    kept, ended = cut_at(text, stops)
    end = end_of_box(kept) if ends_at_box else -1
    return (kept[:end], True) if end >= 0 else (kept, ended)


def end_of_box(text: str) -> int:
    """Return the position after the first closed answer box that holds something, or -1.

    Braces inside the box are paired, escaped ones not.
    """
    for opened in _BOX.finditer(text):
        depth = 1
        for brace in _BRACES.finditer(text, opened.end()):
            depth += {"{": 1, "}": -1}.get(brace.group(), 0)
            if not depth:
                if text[opened.end() : brace.start()].strip():
                    return brace.end()
                break
    return -1


def find_loop(text: str) -> bool:
    """Say whether a passage of at least 200 characters stands four times in a turn.

    Args:
        text: The text of one turn.

    Returns:
        True for a loop. The last 200 characters are looked for, which is where a turn that ran out of tokens is caught.
    """
    tail = text[-LOOP_CHARS:]
    return len(text) >= LOOP_CHARS * LOOP_TIMES and text.count(tail) >= LOOP_TIMES


def _open_at(text: str, begin: str, end: str) -> int:
    start = text.rfind(begin)
    return start if start >= 0 and end not in text[start:] else -1


def _pending(kept: str, ends: dict[str, str], *, complete: bool) -> Turn:
    open_markers = [(start, end, begin) for end, begin in ends.items() if (start := _open_at(kept, begin, end)) >= 0]
    if not open_markers or not complete:
        return Turn(kept, "no_query")
    start, end, begin = max(open_markers)
    return _asked(kept + end, kept[start + len(begin) :], end)


def _asked(kept: str, inner: str, end: str) -> Turn:
    content = " ".join(inner.split())
    if not content:
        return Turn(kept, "no_query")
    return Turn(kept, "query" if end == END_SEARCH_QUERY else "urls", content)
