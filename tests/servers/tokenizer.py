"""A small tokenizer with the properties of real ones that matter to a chain: byte-level, GPT-2 style, lossless.

Text is cut as GPT-2 cuts it (contractions, words with their leading space, numbers, punctuation, white space that
leaves its last character to the word after it), then every stretch into pieces of at most six bytes. So a trailing
blank line is one token, and two tokens once text follows; a punctuation token may run past a marker; and a token may
end in the middle of a character. Token ids are computed, not looked up: the same in every process.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence

PIECE_BYTES = 6
SPECIALS = ("<s>", "<|endoftext|>", "<|im_start|>", "<|im_end|>")
BOS, _, IM_START, IM_END = range(len(SPECIALS))

_PIECES = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")
_SPECIAL = re.compile("|".join(map(re.escape, SPECIALS)))


class Tokenizer:
    """Text to token ids and back, with a ChatML template.

    Args:
        bos: Put `<s>` before every text that is encoded with special tokens.
        think: End the generation prompt in `<think>` and a line break, as QwQ-32B does.
    """

    def __init__(self, *, bos: bool = False, think: bool = False) -> None:
        self.bos = bos
        self.think = think

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Return the token ids of a text; special tokens written in the text become their own ids."""
        ids = [BOS] if self.bos and add_special_tokens else []
        position = 0
        for special in _SPECIAL.finditer(text):
            ids += _ordinary(text[position : special.start()])
            ids.append(SPECIALS.index(special.group()))
            position = special.end()
        return ids + _ordinary(text[position:])

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """Return the text of token ids; bytes that make no character become U+FFFD, as in real decoders."""
        data = b"".join(self.piece(i) for i in ids if not (skip_special_tokens and i < len(SPECIALS)))
        return data.decode("utf-8", "replace")

    def piece(self, token_id: int) -> bytes:
        """Return the bytes of one token.

        Raises:
            ValueError: If the id lies outside the vocabulary.
        """
        if token_id < len(SPECIALS):
            return SPECIALS[token_id].encode()
        if token_id >= self.size:
            raise ValueError(f"Token id {token_id} is out of vocabulary")
        data, number = bytearray(), token_id - len(SPECIALS) + 1
        while number:
            number, digit = divmod(number - 1, 256)
            data.append(digit)
        return bytes(reversed(data))

    @property
    def size(self) -> int:
        """Number of token ids."""
        pieces: int = sum(256**length for length in range(1, PIECE_BYTES + 1))
        return len(SPECIALS) + pieces

    def render(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
    ) -> str:
        """Return messages as ChatML text, open at the end when the last message is to be continued."""
        text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        if continue_final_message:
            return text.removesuffix("<|im_end|>\n")
        if add_generation_prompt:
            text += "<|im_start|>assistant\n" + ("<think>\n" if self.think else "")
        return text


class TextStream:
    """Turns tokens into text one at a time, holding back the bytes of an unfinished character.

    Args:
        tokenizer: The tokenizer that made the ids.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def step(self, token_id: int) -> str:
        """Return the text that this token completes; special tokens have none."""
        return "" if token_id < len(SPECIALS) else self._decoder.decode(self._tokenizer.piece(token_id))


def _ordinary(text: str) -> list[int]:
    ids = []
    for piece in _PIECES.findall(text):
        data = piece.encode("utf-8", "replace")
        for start in range(0, len(data), PIECE_BYTES):
            number = 0
            for byte in data[start : start + PIECE_BYTES]:
                number = number * 256 + byte + 1
            ids.append(number + len(SPECIALS) - 1)
    return ids
