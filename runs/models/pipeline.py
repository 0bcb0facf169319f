"""The embedded model: OpenVINO GenAI with continuous batching and prefix caching, fed by one worker thread.

Requests of many chains are added as they come and decoded together; the thread sleeps when nothing is to be done.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runs.models.engine import Reply
from signatures.errors import ModelError

BLOCK_TOKENS = 32
"""Tokens in one block of OpenVINO's KV cache on the CPU."""
CACHE_BLOCKS = 3_072
"""Blocks of the KV cache: 98,304 tokens."""
WORTH_WAITING = 8
"""Blocks that a prompt must share with one still being read for it to wait: 256 tokens."""


class PrefixAccount:
    """Counts which leading blocks of a prompt the KV cache holds.

    OpenVINO GenAI reuses cached blocks but does not tell how many. This keeps the same book: the hashes of all full
    blocks computed so far, the least recently used dropped when the cache is full.

    Args:
        blocks: Blocks that the cache holds.
        block_tokens: Tokens a block.
    """

    def __init__(self, blocks: int = CACHE_BLOCKS, block_tokens: int = BLOCK_TOKENS) -> None:
        self.blocks = blocks
        self.block_tokens = block_tokens
        self._held: OrderedDict[int, None] = OrderedDict()

    def blocks_of(self, ids: Sequence[int]) -> list[int]:
        """Return a hash for each full block of a sequence; it stands for the block and all before it."""
        hashes, running = [], 0
        for start in range(0, len(ids) - self.block_tokens + 1, self.block_tokens):
            running = hash((running, *ids[start : start + self.block_tokens]))
            hashes.append(running)
        return hashes

    def cached(self, ids: Sequence[int]) -> int:
        """Return how many leading tokens of a prompt are in the cache; at least its last token is always computed."""
        held = 0
        for block in self.blocks_of(ids):
            if block not in self._held:
                break
            self._held.move_to_end(block)
            held += self.block_tokens
        return min(held, max(0, len(ids) - 1))

    def add(self, ids: Sequence[int]) -> None:
        """Record that all full blocks of a sequence were computed."""
        for block in self.blocks_of(ids):
            self._held[block] = None
            self._held.move_to_end(block)
        while len(self._held) > self.blocks:
            self._held.popitem(last=False)

    def missing(self, ids: Sequence[int]) -> list[int]:
        """Return the hashes of the leading run of blocks, after those in the cache, that must be computed."""
        blocks = self.blocks_of(ids)
        return blocks[self.cached(ids) // self.block_tokens :] if blocks else []


@dataclass
class _Running:
    """A request that OpenVINO has; `reading` are the blocks of its prompt that it was the first to need."""

    handle: Any
    ids: list[int]
    cached: int
    config: Any
    future: Future[Reply]
    reading: list[int]


class Pipeline:
    """A loaded GGUF model.

    Args:
        path: The GGUF file.

    Raises:
        ModelError: OpenVINO refuses the file.
    """

    def __init__(self, path: Path) -> None:
        import openvino_genai

        scheduler = openvino_genai.SchedulerConfig()
        scheduler.num_kv_blocks = CACHE_BLOCKS
        scheduler.enable_prefix_caching = True
        scheduler.dynamic_split_fuse = True
        scheduler.max_num_batched_tokens = 512
        scheduler.max_num_seqs = 64
        try:
            self._pipeline = openvino_genai.ContinuousBatchingPipeline(str(path), scheduler, "CPU")
        except Exception as error:
            # OpenVINO's own checks raise RuntimeError, what it trips over arrives as IndexError, ValueError and others.
            first = (str(error).strip().splitlines() or [type(error).__name__])[-1]
            raise ModelError(
                f"OpenVINO cannot load {path}: {first}. Use another GGUF file (Q4_0, Q4_1, Q4_K_M or Q8_0)."
            ) from error
        self._tokenizer = self._pipeline.get_tokenizer()
        self._account = PrefixAccount()
        self._numbers = itertools.count()
        self._inbox: queue.SimpleQueue[tuple[list[int], Any, Future[Reply]]] = queue.SimpleQueue()
        self._waiting: list[tuple[list[int], Any, Future[Reply]]] = []
        self._running: dict[int, _Running] = {}
        threading.Thread(target=self._work, name="openvino", daemon=True).start()

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the token ids of a text; with `special` those around it that the model was trained with."""
        if not text:
            return []
        data = self._tokenizer.encode(text, add_special_tokens=special).input_ids.data
        return [int(i) for i in data.reshape(-1)]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, special tokens left out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)) if ids else ""

    def render(self, messages: Sequence[dict[str, str]]) -> str:
        """Render messages through the model's own chat template, with the generation prompt."""
        return str(self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True))

    def generation_config(self, **fields: Any) -> Any:
        """Build OpenVINO's generation configuration from its field names."""
        import openvino_genai

        config = openvino_genai.GenerationConfig()
        config.apply_chat_template = False
        config.include_stop_str_in_output = True
        for name, value in fields.items():
            setattr(config, name, value)
        return config

    def submit(self, ids: list[int], config: Any) -> Future[Reply]:
        """Queue a generation.

        Args:
            ids: Token ids of the prompt.
            config: Made by `generation_config`.

        Returns:
            A future of the reply.
        """
        future: Future[Reply] = Future()
        self._inbox.put((ids, config, future))
        return future

    def _work(self) -> None:
        while True:
            self._take(block=not self._running)
            self._add_waiting()
            try:
                self._pipeline.step()
            except Exception as error:
                # This thread serves all chains: it must outlive whatever one request brings.
                for entry in self._running.values():
                    entry.future.set_exception(ModelError(f"OpenVINO failed while generating: {error}"))
                self._running.clear()
                continue
            for number, entry in list(self._running.items()):
                done = _finished(entry.handle)
                if entry.reading and (done or entry.handle.can_read()):
                    self._account.add(entry.ids)
                    entry.reading = []
                if done:
                    del self._running[number]
                    self._answer(entry)

    def _answer(self, entry: _Running) -> None:
        try:
            entry.future.set_result(self._reply(entry.handle, entry.ids, entry.cached, entry.config))
        except ModelError as error:
            entry.future.set_exception(error)
        except Exception as error:
            entry.future.set_exception(ModelError(f"OpenVINO's reply could not be read: {error}"))

    def _take(self, *, block: bool) -> None:
        """Move what was submitted to the waiting ones; `block` waits for a first one."""
        block = block and not self._waiting
        while True:
            try:
                self._waiting.append(self._inbox.get(block=block))
            except queue.Empty:
                return
            block = False

    def _add_waiting(self) -> None:
        """Hand OpenVINO what waits, but for prompts that begin as one it is still reading.

        OpenVINO finds cached blocks when a request is added. Chains begun together with the same demos would each have
        the whole prefix computed anew; those that wait for the first find it in the cache.
        """
        kept = []
        for ids, config, future in self._waiting:
            missing = self._account.missing(ids)
            being_read = {block for entry in self._running.values() for block in entry.reading}
            if len(missing) >= WORTH_WAITING and being_read.issuperset(missing[:WORTH_WAITING]):
                kept.append((ids, config, future))
            elif future.set_running_or_notify_cancel():
                self._add(ids, config, future, missing)
        self._waiting = kept

    def _add(self, ids: list[int], config: Any, future: Future[Reply], missing: list[int]) -> None:
        import numpy
        import openvino

        number = next(self._numbers)
        tensor = openvino.Tensor(numpy.array([ids], dtype=numpy.int64))
        try:
            handle = self._pipeline.add_request(number, tensor, config)
        except Exception as error:
            future.set_exception(ModelError(f"OpenVINO refused a request of {len(ids)} tokens: {error}"))
            return
        self._running[number] = _Running(handle, ids, self._account.cached(ids), config, future, missing)

    def _reply(self, handle: Any, ids: list[int], cached: int, config: Any) -> Reply:
        import openvino_genai

        outputs = handle.read_all()
        if not outputs:
            raise ModelError(f"OpenVINO dropped a request of {len(ids)} tokens: its cache is too small for it.")
        output = outputs[0]
        generated = [int(i) for i in output.generated_ids]
        self._account.add([*ids, *generated])
        ended = generated[-1:] == [self._tokenizer.get_eos_token_id()]
        kept = generated[:-1] if ended else generated
        text = self.decode(kept)
        stops = [stop for stop in config.stop_strings if stop in text]
        length = output.finish_reason == openvino_genai.GenerationFinishReason.LENGTH
        return Reply(
            text=text,
            ids=kept,
            finish="length" if length else "stop",
            stop=min(stops, key=text.index) if stops else None,
            prompt_tokens=len(ids),
            cached_tokens=cached,
            completion_tokens=len(generated),
        )


def _finished(handle: Any) -> bool:
    import openvino_genai

    return bool(handle.get_status() != openvino_genai.GenerationStatus.RUNNING)
