"""What a vLLM engine does to a text it generates: a block-wise prefix cache, stop strings, budgets, finish reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.servers.tokenizer import IM_END, TextStream, Tokenizer

BLOCK_SIZE = 16


class PrefixCache:
    """Remembers whole blocks of token ids, each together with all that came before it.

    Source: vLLM's automatic prefix caching; a prompt's last token is always computed anew, since the first output
    token comes out of it.
    """

    def __init__(self) -> None:
        self._blocks: set[int] = set()
        self.queries = 0
        self.hits = 0

    def lookup(self, prompt: Sequence[int]) -> int:
        """Return how many leading tokens of a prompt are cached: a multiple of the block size."""
        cached = 0
        for key in self._keys(prompt[: max(len(prompt) - 1, 0)]):
            if key not in self._blocks:
                break
            cached += BLOCK_SIZE
        self.queries += len(prompt)
        self.hits += cached
        return cached

    def store(self, ids: Sequence[int]) -> None:
        """Keep the whole blocks of a prompt with its output."""
        self._blocks.update(self._keys(ids))

    def clear(self) -> None:
        """Forget everything, as a restarted server has."""
        self._blocks.clear()

    @staticmethod
    def _keys(ids: Sequence[int]) -> Iterator[int]:
        key = 0
        for start in range(0, len(ids) - BLOCK_SIZE + 1, BLOCK_SIZE):
            key = hash((key, *ids[start : start + BLOCK_SIZE]))
            yield key


@dataclass
class Output:
    """One finished generation.

    Attributes:
        text: The answer as the client sees it.
        token_ids: All generated tokens, the last one whole even where the text ends inside it, the end token included.
        finish_reason: `stop` or `length`.
        stop_reason: The stop string that ended it, else None.
        steps: The same for streaming: each token with the text that may be sent after it.
    """

    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str = "length"
    stop_reason: str | None = None
    steps: list[tuple[int, str]] = field(default_factory=list)


def generate(tokenizer: Tokenizer, reply: str, max_tokens: int, stop: Sequence[str], *, include_stop: bool) -> Output:
    """Generate a reply token by token under stop strings and a token budget.

    A stop string is looked for after every token, so the text is cut inside the token that completes it while the
    token stays. Without `include_stop`, the streamed text lags by the longest stop string less one character.

    Args:
        tokenizer: The server's tokenizer.
        reply: Everything the model would say if nothing stopped it; `<|im_end|>` in it ends it.
        max_tokens: Largest number of tokens, the end token counted.
        stop: Stop strings; the one that is complete first wins.
        include_stop: Keep the stop string in the text.

    Returns:
        The generation.
    """
    output, stream, sent = Output(), TextStream(tokenizer), 0
    held = 0 if include_stop else max((len(s) for s in stop), default=1) - 1
    for token_id in [*tokenizer.encode(reply), IM_END][:max_tokens]:
        output.token_ids.append(token_id)
        before = len(output.text)
        output.text += stream.step(token_id)
        found = _first_stop(output.text, before, stop)
        if token_id == IM_END:
            output.finish_reason = "stop"
        elif found is not None:
            output.finish_reason, output.stop_reason = "stop", found[1]
            output.text = output.text[: found[0] if include_stop else found[0] - len(found[1])]
        finished = output.finish_reason == "stop" or len(output.token_ids) == max_tokens
        end = len(output.text) if finished else max(len(output.text) - held, sent)
        output.steps.append((token_id, output.text[sent:end]))
        sent = end
        if finished:
            break
    return output


def _first_stop(text: str, before: int, stop: Sequence[str]) -> tuple[int, str] | None:
    ends = []
    for string in stop:
        start = text.find(string, max(before - len(string) + 1, 0))
        if start >= 0:
            ends.append((start + len(string), string))
    return min(ends, key=lambda pair: pair[0], default=None)
