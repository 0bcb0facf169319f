"""Fitting prompts and injected blocks into the context, with real token counts (design section 2, Budgets).

Order of cuts: document windows are shortened evenly, then the lowest ranks are dropped, then the previous reasoning is
shortened. Counting is asked for only where the UTF-8 length, which bounds the tokens of a byte-level tokenizer, does
not settle the matter already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from programs.documents import Record
from programs.language_model import upper_bound
from programs.messages import Block
from programs.operations import CountTokens, Steps
from signatures.errors import ContextLengthError

MESSAGE_OVERHEAD = 64
"""Tokens allowed a message for the chat template around it, where only the text's bound is used."""
SMALLEST_WINDOW = 200
"""Windows are shortened to this many characters before ranks are dropped; the last rank's other fields after that."""
_ELLIPSIS = " ..."

Messages = Sequence[dict[str, str]]


@dataclass
class Fitted:
    """Documents and reasoning that fit.

    Attributes:
        records: The documents kept, their contexts shortened.
        reasoning: The previous reasoning kept.
        messages: The rendered messages.
        tokens: Tokens of the messages: exact, or an upper bound where that already fits.
        cuts: What was cut, as events.
    """

    records: list[Record]
    reasoning: str
    messages: Messages
    tokens: int
    cuts: list[dict[str, Any]] = field(default_factory=list)


def prompt_bound(messages: Messages) -> int:
    """Return a number of tokens that the rendered messages cannot exceed."""
    return sum(upper_bound(m["content"]) + MESSAGE_OVERHEAD for m in messages)


def count_or_bound(messages: Messages, room: int, chain_id: str, *, exact: bool) -> Steps[int]:
    """Return the tokens of messages, asking the tokenizer only when their bound exceeds `room`.

    Args:
        messages: Rendered messages.
        room: Tokens there are.
        chain_id: Names the chain.
        exact: True when the tokenizer can be asked; otherwise the count is an estimate and is always asked for.

    Returns:
        The bound when it fits in `room`, otherwise the count.
    """
    bound = prompt_bound(messages)
    if exact and bound <= room:
        return bound
    count: int = yield CountTokens(messages, chain_id)
    return count


def fit_documents(
    render: Callable[[list[Record], str], Messages],
    records: Sequence[Record],
    reasoning: str,
    room: int,
    chain_id: str,
    *,
    exact: bool,
) -> Steps[Fitted]:
    """Shorten documents, then drop the lowest ranks, then shorten the reasoning, until the prompt fits.

    Args:
        render: Renders the messages for given documents and reasoning.
        records: Documents, best first.
        reasoning: Previous reasoning, or empty.
        room: Tokens the prompt may have.
        chain_id: Names the chain.
        exact: True when the tokenizer can be asked.

    Returns:
        What fits, with an event a kind of cut.

    Raises:
        ContextLengthError: Not even the bare prompt fits.
    """
    kept = [dict(r) for r in records]
    before = {"chars": sum(len(r["context"]) for r in kept), "documents": len(kept), "reasoning": len(reasoning)}
    while True:
        messages = render(kept, reasoning)
        tokens = yield from count_or_bound(messages, room, chain_id, exact=exact)
        if tokens <= room:
            break
        scale = max(0.05, 0.95 * room / tokens)
        longest = max((len(r["context"]) for r in kept), default=0)
        if longest > SMALLEST_WINDOW:
            limit = max(SMALLEST_WINDOW, int(longest * scale))
            kept = [{**r, "context": shorten(r["context"], limit)} for r in kept]
        elif len(kept) > 1:
            kept = kept[: max(1, min(len(kept) - 1, int(len(kept) * scale)))]
        elif any(len(text) > SMALLEST_WINDOW for text in _texts(kept)):
            kept = [{k: shorten(v, SMALLEST_WINDOW) if isinstance(v, str) else v for k, v in kept[0].items()}]
        elif len(reasoning) > SMALLEST_WINDOW:
            limit = max(SMALLEST_WINDOW, int(len(reasoning) * scale))
            reasoning = "..." + reasoning[len(reasoning) - limit + 3 :]
        else:
            raise ContextLengthError(
                f"The prompt has {tokens} tokens and the context leaves {room}; serve the model with a longer context "
                "or shorten the question and the demos."
            )
    after = {"chars": sum(len(r["context"]) for r in kept), "documents": len(kept), "reasoning": len(reasoning)}
    names = {"chars": "windows", "documents": "ranks", "reasoning": "reasoning"}
    cuts = [
        {"type": "cut", "what": names[key], "before": before[key], "after": after[key]}
        for key in before
        if after[key] < before[key]
    ]
    return Fitted(kept, reasoning, messages, tokens, cuts)


def _texts(records: Sequence[Record]) -> list[str]:
    return [value for record in records for value in record.values() if isinstance(value, str)]


def fit_block(
    block: Block, known: int, room: int, count: Callable[[str], Steps[int]]
) -> Steps[tuple[Block, int, bool]]:
    """Shorten an injected block until the chain with it has at most `room` tokens.

    Args:
        block: The block.
        known: Tokens of the prompt and the chain before it.
        room: Tokens that prompt, chain and block may have together.
        count: Counts prompt, chain and a given injected text together.

    Returns:
        (block, tokens with it, whether it was shortened). An empty body that still does not fit is returned as it is.
    """
    shortened = False
    while True:
        tokens = known + upper_bound(block.text)
        if tokens > room:
            tokens = yield from count(block.text)
        if tokens <= room or not block.body:
            return block, tokens, shortened
        over = tokens - room
        share = max(0.0, 1 - 1.1 * over / max(1, tokens - known))
        block = Block(block.opening, shorten(block.body, int(len(block.body) * share)), block.closing)
        shortened = True


def shorten(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters, at a word's end where there is one, and mark the cut."""
    if len(text) <= limit:
        return text
    room = limit - len(_ELLIPSIS)
    if room <= 0:
        return ""
    cut = text[:room]
    space = cut.rfind(" ")
    return (cut[:space] if space > room // 2 else cut) + _ELLIPSIS
