"""The marker protocol: the eight markers, cutting a chain into model text and injected blocks, neutralising.

This module is a leaf: it imports the standard library only and may be imported from every package.
Source: Search-o1 (arXiv 2501.05366), section 3.3 and appendix A.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

BEGIN_SEARCH_QUERY = "<|begin_search_query|>"
END_SEARCH_QUERY = "<|end_search_query|>"
BEGIN_SEARCH_RESULT = "<|begin_search_result|>"
END_SEARCH_RESULT = "<|end_search_result|>"
BEGIN_URL = "<|begin_url|>"
END_URL = "<|end_url|>"
BEGIN_FULL_PAGE = "<|begin_full_page|>"
END_FULL_PAGE = "<|end_full_page|>"

MARKERS = (
    BEGIN_SEARCH_QUERY,
    END_SEARCH_QUERY,
    BEGIN_SEARCH_RESULT,
    END_SEARCH_RESULT,
    BEGIN_URL,
    END_URL,
    BEGIN_FULL_PAGE,
    END_FULL_PAGE,
)

_SPECIAL_TOKEN = re.compile(r"<\|([^<>|\s][^<>|]{0,60})\|>|<｜([^<>｜\s][^<>｜]{0,60})｜>")
_TAG_TOKEN = re.compile(
    r"<(/?(?:s|think|tool_call|tool_response|start_of_turn|end_of_turn|bos|eos|unk|pad)|/?INST|</?SYS>)>"
    r"|\[(/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|SYSTEM_PROMPT))\]"
)
_BLOCK = re.compile(
    f"{re.escape(BEGIN_SEARCH_RESULT)}.*?(?:{re.escape(END_SEARCH_RESULT)}|\\Z)"
    f"|{re.escape(BEGIN_FULL_PAGE)}.*?(?:{re.escape(END_FULL_PAGE)}|\\Z)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Segment:
    """A stretch of a chain.

    Attributes:
        kind: `model` for text the model wrote, `injected` for a result or full-page block with its markers.
        text: The stretch itself; joining all segments gives the chain back.
    """

    kind: Literal["model", "injected"]
    text: str


def segments(chain: str) -> Iterator[Segment]:
    """Cut a chain into what the model wrote and what was injected.

    A block that is opened and never closed reaches to the end of the chain. White space around a block belongs to
    the model text beside it.

    Args:
        chain: A whole chain, model text and injected blocks in order.

    Yields:
        Non-empty segments in order; joined they equal `chain`.
    """
    position = 0
    for block in _BLOCK.finditer(chain):
        if block.start() > position:
            yield Segment("model", chain[position : block.start()])
        yield Segment("injected", block.group())
        position = block.end()
    if position < len(chain):
        yield Segment("model", chain[position:])


def model_text(chain: str) -> str:
    """Return only what the model wrote: the chain without its injected blocks.

    Args:
        chain: A whole chain.

    Returns:
        The model's own text, its stretches joined by a line break.
    """
    return "\n".join(segment.text for segment in segments(chain) if segment.kind == "model")


def neutralise(text: str) -> str:
    """Make marker and chat-template tokens in untrusted text harmless, visibly.

    `<|end_search_result|>` becomes `<¦end_search_result¦>`: a reader sees what stood there, no parser and no tokenizer
    takes it for the token. Repeating the call changes nothing more. Lone surrogates, which no server accepts,
    become U+FFFD.

    Args:
        text: Text from a page, a snippet or a refinement.

    Returns:
        The same text in which no marker and no special token can be opened or closed.
    """
    text = text.encode("utf-8", "replace").decode("utf-8") if any("\ud800" <= c <= "\udfff" for c in text) else text
    # Tags first: a tag inside a special token's frame would otherwise leave a new frame behind.
    text = _TAG_TOKEN.sub(lambda m: f"‹{m.group(1)}›" if m.group(1) else f"({m.group(2)})", text)
    return _SPECIAL_TOKEN.sub(lambda m: f"<¦{m.group(1) or m.group(2)}¦>", text)
