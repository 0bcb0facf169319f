"""A chain is continued with the very token ids of the turn before (design section 2, Prefix-exact)."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_REMEMBERED_CHAINS = 4_096
_REMEMBERED_PROMPTS = 1_024

Messages = Sequence[Mapping[str, str]]


@dataclass
class _Chain:
    """What was sent and written so far; `whole` says that `ids` hold the model's own last output too."""

    base: str
    text: str
    ids: list[int]
    whole: bool


class TokenPrefix(ABC):
    """Renders the template once a question, remembers the ids of every chain, and knows the token-boundary rule."""

    def __init__(self) -> None:
        self._chains: OrderedDict[str, _Chain] = OrderedDict()
        self._prompts: OrderedDict[str, list[int]] = OrderedDict()
        self._boundaries: dict[str, bool] = {}

    @abstractmethod
    async def render_ids(self, messages: Messages, raw: bool) -> list[int]:
        """Return the ids of a prompt: chat template with generation prompt, or raw text with its special tokens."""

    @abstractmethod
    async def tokenise(self, text: str) -> list[int]:
        """Return the token ids of a text, without special tokens around it."""

    @abstractmethod
    async def detokenise(self, ids: Sequence[int]) -> str:
        """Return the text of token ids."""

    async def count_tokens(self, messages: Messages, chain_id: str, raw: bool) -> int:
        """Return the number of tokens that a generation from these messages would send."""
        ids, _ = await self.prompt_ids(messages, chain_id, raw)
        return len(ids)

    async def hold_back(self, text: str) -> str:
        """Return `text` without trailing white space that would tokenise differently once text follows."""
        stripped = text.rstrip()
        if len(stripped) == len(text):
            return text
        tail = text[max(0, len(stripped) - 24) :]
        if tail not in self._boundaries:
            self._boundaries[tail] = await self.stands_alone(tail)
        return text if self._boundaries[tail] else stripped

    async def stands_alone(self, tail: str) -> bool:
        """Return whether a text ending in white space keeps its tokens once more text follows."""
        alone, followed = await self.tokenise(tail), await self.tokenise(tail + "The")
        return followed[: len(alone)] == alone

    async def prompt_ids(self, messages: Messages, chain_id: str, raw: bool) -> tuple[list[int], bool]:
        """Return the ids to send: the rendered prompt, the remembered ids of the chain, and what came after them.

        Args:
            messages: Rendered messages.
            chain_id: Names the chain; empty for a single call.
            raw: True when the profile wants raw text.

        Returns:
            (ids, whether text that the model wrote had to be tokenised again).
        """
        base, chain = _split(messages)
        base_digest = digest(base, raw)
        prompt = self._prompts.get(base_digest)
        if prompt is None:
            prompt = self._prompts[base_digest] = await self.render_ids(base, raw)
            while len(self._prompts) > _REMEMBERED_PROMPTS:
                self._prompts.popitem(last=False)
        self._prompts.move_to_end(base_digest)
        if not chain:
            return list(prompt), False
        known = self._chains.get(chain_id)
        if known is None or known.base != base_digest:
            return [*prompt, *await self.tokenise(chain)], True
        return await self._continue(prompt, known, chain)

    async def _continue(self, prompt: list[int], known: _Chain, chain: str) -> tuple[list[int], bool]:
        """Keep as many remembered ids as spell a prefix of the chain, and tokenise the rest."""
        low, high, step = len(prompt), len(known.ids), 1
        spelled: dict[int, str] = {low: ""}

        async def spells(count: int) -> bool:
            if count not in spelled:
                spelled[count] = await self.detokenise(known.ids[low:count])
            # Ids that end inside a character spell U+FFFD at their end.
            return chain.startswith(spelled[count].rstrip("\ufffd"))

        count = high
        # A token that ran past a stop string is one step back, the output of a server that ignored it many.
        while not await spells(count):
            high, count, step = count, max(low, count - step), step * 2
        while high - count > 1:
            middle = (count + high) // 2
            if await spells(middle):
                count = middle
            else:
                high = middle
        while not chain.startswith(spelled[count]):
            count -= 1
            await spells(count)
        rest = chain[len(spelled[count]) :]
        # Ids that do not spell the text back lose even a first token that was kept whole; a cut inside it is no loss.
        lost = count == low < high and known.text[: len(spelled[high])] == chain[: len(spelled[high])]
        return [*known.ids[:count], *(await self.tokenise(rest) if rest else [])], lost or not known.whole

    def remember(
        self, messages: Messages, chain_id: str, raw: bool, *, sent: list[int], text: str, written: list[int]
    ) -> None:
        """Keep what a generation sent and wrote, for the next turn of its chain.

        Args:
            messages: Rendered messages of the generation.
            chain_id: Names the chain.
            raw: True when the profile wants raw text.
            sent: Token ids of the prompt.
            text: The text that was generated.
            written: Its token ids; empty when the server does not tell them.
        """
        base, chain = _split(messages)
        whole = bool(written) or not text
        self._chains[chain_id] = _Chain(digest(base, raw), chain + text, sent + written, whole)
        self._chains.move_to_end(chain_id)
        while len(self._chains) > _REMEMBERED_CHAINS:
            self._chains.popitem(last=False)


def _split(messages: Messages) -> tuple[Messages, str]:
    if messages[-1]["role"] == "assistant":
        return messages[:-1], messages[-1]["content"]
    return messages, ""


def digest(messages: Messages, raw: bool) -> str:
    """Return a hash of rendered messages, and of whether they are sent as raw text."""
    joined = "\x1e".join(f"{m['role']}\x1f{m['content']}" for m in messages)
    return hashlib.sha256(f"{raw}\x1d{joined}".encode()).hexdigest()
